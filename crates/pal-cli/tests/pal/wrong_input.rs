//! Wrong inputs: each brings an error that names the fix, and no session.

use crate::program::TestHome;

/// Arguments as one line, variables, the exit code, and words of the error.
type WrongInput = (&'static str, &'static [(&'static str, &'static str)], i32, &'static [&'static str]);

const KEY: (&str, &str) = ("ANTHROPIC_API_KEY", "k");

const CASES: &[WrongInput] = &[
    ("sesions", &[], 2, &["did you mean \"sessions\"?"]),
    ("hi", &[], 2, &["unknown command", "pal -p"]),
    ("-p", &[], 2, &["no prompt", "pal -p '"]),
    ("-p x", &[], 1, &["no API key", "pal login", "--provider sim"]),
    ("-p x", &[KEY, ("ANTHROPIC_BASE_URL", "foo")], 1, &["URL", "correct ANTHROPIC_BASE_URL"]),
    ("-p x", &[KEY, ("ANTHROPIC_BASE_URL", "http://gateway.example")], 1, &["plain http", "use https"]),
    (
        "-p x --model gpt-6-sol",
        &[("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "foo")],
        1,
        &["correct OPENAI_BASE_URL"],
    ),
    ("-p x --add-dir /nowhere/at/all", &[KEY], 2, &["no such directory", "check the path"]),
    ("-p x --allowed-tools Bsh", &[KEY], 2, &["did you mean `Bash`?"]),
    ("-p x --allowed-tools Bsah(git:*)", &[KEY], 2, &["did you mean `Bash`?"]),
    ("-p x --allowed-tools Bash(", &[KEY], 2, &["does not end with `)`", "Bash(git status:*)"]),
    ("-p x --disallowed-tools Read(../x)", &[KEY], 2, &["contains `..`", "Read(/srv/shared/**)"]),
    ("-p x --permission-mode bypas", &[KEY], 2, &["bypass"]),
    ("-p x --dangerously-skip-permissions --permission-mode plan", &[KEY], 2, &["cannot be used with"]),
    ("-p x --effort hgh", &[KEY], 2, &["high"]),
    ("-p x --tools Raed", &[KEY], 2, &["did you mean `Read`?"]),
    ("-p x --agents {", &[KEY], 2, &["--agents", "reviewer"]),
    ("-p x --agents {\"r\":{\"prompt\":\"p\"}}", &[KEY], 2, &["no `description`"]),
    ("-p x --fallback-model gpt-6-sol", &[KEY], 2, &["another provider", "pal models"]),
    (
        "-p x --model gpt-6-sl",
        &[("OPENAI_BASE_URL", "foo"), ("OPENAI_API_KEY", "k")],
        1,
        &["Did you mean `gpt-6-sol`?"],
    ),
    (
        "-p x --model opsu",
        &[("OPENAI_BASE_URL", "foo"), ("OPENAI_API_KEY", "k"), ("PAL_PROVIDER", "openai")],
        1,
        &["Did you mean `opus`?"],
    ),
    ("-p x --model sonnet --fallback-model sonnet", &[KEY], 2, &["choose another one"]),
    ("-p x --setting-sources usr", &[KEY], 2, &["user, project and local"]),
    ("-p x --system-prompt-file absent.txt", &[KEY], 1, &["absent.txt", "check the path"]),
    ("-p x --system-prompt-file a --system-prompt b", &[KEY], 2, &["cannot be used with"]),
    ("-p x --worktree", &[KEY], 2, &["git repository"]),
    ("-p x --settings absent.json", &[KEY], 2, &["no such file", "git = false"]),
    ("-p x --settings modle=false", &[KEY], 2, &["did you mean `model`?"]),
    ("-p x --settings {\"$schema\":\"x\",\"permissions\":", &[KEY], 2, &["--settings", "line 1", "hint"]),
    ("-p x --mcp-config absent.json", &[KEY], 2, &["absent.json", "check the path"]),
    ("-p x --mcp-config {}", &[KEY], 2, &["mcpServers", "`pal help mcp`"]),
    ("-p x --resume", &[KEY], 2, &["session id", "pal sessions"]),
    ("-p x --resume nope", &[KEY], 1, &["pal sessions"]),
    ("-p x --cd /nowhere/at/all", &[KEY], 2, &["--cd", "check the path"]),
    ("-p x --max-turns 0", &[KEY], 2, &["--max-turns", "at least 1"]),
    ("-p x --max-cost-usd free", &[KEY], 2, &["2.50"]),
    ("-p x --output-format jsn", &[KEY], 2, &["json"]),
    ("-p x --provider bedrock", &[KEY], 1, &["AWS_REGION"]),
    ("-p x", &[("PAL_PROVIDER", "vertex")], 1, &["ANTHROPIC_VERTEX_PROJECT_ID"]),
    ("config modle", &[], 1, &["did you mean `model`?"]),
    ("config list", &[], 2, &["pal config KEY"]),
    ("config get model", &[], 2, &["`pal config model`"]),
    ("config set modle x", &[], 2, &["did you mean `model`?"]),
    ("config set max_turns many", &[], 2, &["at least 1"]),
    ("config set anthropic.api_key k", &[], 2, &["pal login"]),
    ("config set anthropic.base_url foo", &[], 2, &["http://"]),
    ("config unset model", &[], 1, &["not set", "pal config model"]),
    ("mcp add files", &[], 2, &["URL|COMMAND"]),
    ("mcp add a__b -- x", &[], 2, &["__"]),
    ("mcp add x --transport http -- prog", &[], 2, &["not a URL", "https://"]),
    ("mcp add x -e NOVALUE -- prog", &[], 2, &["NAME=VALUE"]),
    ("mcp add x --env NOVALUE -- prog", &[], 2, &["NAME=VALUE"]),
    ("mcp add x https://a.example --env A=b", &[], 2, &["--header"]),
    ("mcp remove nope", &[], 2, &["pal mcp list"]),
    ("help setings", &[], 2, &["did you mean `settings`?"]),
    ("login gogle", &[], 2, &["anthropic, openai"]),
    ("cost nope", &[], 1, &["pal sessions"]),
    ("eval --out report nosuch", &[], 1, &["nosuch", "\n  hint: check the path"]),
    ("sim --window many", &[], 2, &["expected a whole number, at least 1"]),
    ("sim --port 70000", &[], 2, &["the number is too large"]),
    ("recall x -n ten", &[], 2, &["expected a whole number"]),
    ("--worktree fix/../it", &[], 2, &["letters, digits"]),
];

#[test]
fn every_wrong_input_names_its_fix() {
    assert!(CASES.len() >= 40);
    let wrong: Vec<String> = CASES.iter().filter_map(check).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs the program with a wrong input; returns what is wrong with its answer.
fn check((line, variables, code, expected): &WrongInput) -> Option<String> {
    let home = TestHome::new();
    let words: Vec<&str> = line.split(' ').collect();
    let said = home.run_in_with(home.path(), &words, variables);
    let missing: Vec<&&str> = expected.iter().filter(|words| !said.err.contains(**words)).collect();
    let has_session = home.written().iter().any(|path| path.ends_with("log.jsonl"));
    let is_long = said.err.lines().count() > 12 || said.err.contains("panicked");
    let is_right = said.code == *code && missing.is_empty() && !has_session && !is_long;
    let problem = || {
        format!(
            "pal {line}: exit code {}, missing {missing:?}, session: {has_session}\n{}",
            said.code, said.err
        )
    };
    (!is_right).then(problem)
}

#[test]
fn a_wrong_settings_file_is_named_with_its_line() {
    for (file, text, expected) in [
        (
            "pal/settings.toml",
            "git = false\nmodle = 1\n",
            "settings.toml, line 2: `modle` is not a setting; did you mean `model`?",
        ),
        ("pal/settings.toml", "git = \n", "settings.toml"),
        ("pal/settings.toml", "[permissions]\nmode = \"plann\"\n", "line 2: permissions.mode"),
        ("pal/settings.toml", "anthropic.api_key = \"k\"\n", "an environment variable, never a file"),
        ("user/.claude/settings.json", "{\"model\": }", ".claude/settings.json: not valid JSON"),
        ("pal/models.toml", "[models.x]\nwindow = \"big\"\n", "models.toml"),
    ] {
        let home = TestHome::new();
        for folder in ["pal", "user/.claude"] {
            std::fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        home.file(file, text);
        let user = home.path().join("user").display().to_string();
        let said = home.run_with_environment(&["config"], &[("HOME", &user)]);
        assert!(
            said.code == 1 && said.err.contains(expected) && said.err.contains("hint"),
            "{file}: {}",
            said.err
        );
    }
}
