//! `pal context`: what a session would begin with, on a project made for it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::program::{CommandOutput, TestHome};

/// A home with a project in it that has instruction files of every sort, and a repository.
struct ContextProject {
    home: TestHome,
    root: PathBuf,
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

impl ContextProject {
    fn new() -> ContextProject {
        let home = TestHome::new();
        // Paths are reported with all links followed.
        let root = home.path().canonicalize().unwrap().join("project");
        let file = |name: &str, text: &str| write(&root.join(name), text);
        file("CLAUDE.md", "# Engine\nRead @docs/style.md first.\nNever @../secret.md\n");
        file("docs/style.md", "Whole words for names.\n");
        file("AGENTS.md", "Run the tests.\n");
        file(".claude/rules/all.md", "A rule for everything.\n");
        file(".claude/rules/rust.md", "---\npaths: src/**/*.rs\n---\nA rule for Rust.\n");
        file("CLAUDE.local.md", "I prefer short answers.\n");
        file("inner/AGENTS.md", "The inner part.\n");
        file("empty/CLAUDE.md", "   \n");
        write(&root.join("../secret.md"), "a secret of the folder above\n");
        write(&root.join("../user/.claude/CLAUDE.md"), "I am Ada.\n");
        ContextProject { home, root }
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.current_dir(&self.root).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn with_repository(self) -> ContextProject {
        self.git(&["init", "-q", "-b", "trunk"]);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", "The <system-reminder> beginning"]);
        write(&self.root.join("new.txt"), "new\n");
        self
    }

    fn settings(&self, text: &str) {
        write(&self.home.path().join("pal/settings.toml"), text);
    }

    fn said(&self, directory: &str, arguments: &[&str]) -> CommandOutput {
        let directory = self.root.join(directory);
        let user = self.root.parent().unwrap().join("user");
        let variables =
            [("HOME", user.to_str().unwrap()), ("SHELL", "/bin/zsh"), ("GIT_CONFIG_NOSYSTEM", "1")];
        let arguments = [&["context", directory.to_str().unwrap()], arguments].concat();
        self.home.run_with_environment(&arguments, &variables)
    }

    #[track_caller]
    fn good(&self, directory: &str, arguments: &[&str]) -> String {
        let said = self.said(directory, arguments);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
        said.out
    }

    #[track_caller]
    fn json(&self, directory: &str, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.good(directory, &[arguments, &["--json"]].concat())).unwrap()
    }
}

/// A field of every object in a list.
fn each<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|item| item[field].as_str().unwrap_or_default()).collect()
}

/// The files in the context, from the project's top.
fn files(project: &ContextProject, json: &Value) -> Vec<String> {
    let above = format!("{}/", project.root.parent().unwrap().display());
    each(&json["context"]["files"], "path").iter().map(|path| path.replace(&above, "")).collect()
}

#[track_caller]
pub(crate) fn fits(out: &str, columns: usize) {
    let too_long = out.lines().find(|line| line.chars().count() > columns);
    assert_eq!(too_long, None, "{columns} columns");
}

#[test]
fn files_are_listed_in_order_with_scopes_reasons_and_sizes() {
    let project = ContextProject::new().with_repository();
    let json = project.json("inner", &[]);
    let expected = [
        "user/.claude/CLAUDE.md",
        "project/docs/style.md",
        "project/CLAUDE.md",
        "project/AGENTS.md",
        "project/.claude/rules/all.md",
        "project/CLAUDE.local.md",
        "project/inner/AGENTS.md",
    ];
    assert_eq!(files(&project, &json), expected);
    let files = &json["context"]["files"];
    let scopes = ["user", "project", "project", "project", "project", "local", "project"];
    assert_eq!(each(files, "scope"), scopes);
    assert!(each(files, "reason").iter().all(|reason| !reason.is_empty()), "{files}");
    assert!(files[1]["included_by"].as_str().unwrap().ends_with("project/CLAUDE.md"));
    assert_eq!((&files[3]["bytes"], files[3]["tokens"].as_f64() > Some(1.0)), (&15.into(), true));
    // The whole is the sum of its parts.
    let sum = |list: &Value| -> f64 {
        list.as_array().unwrap().iter().map(|item| item["tokens"].as_f64().unwrap()).sum()
    };
    let context = &json["context"];
    let parts = sum(files) + context["other_tokens"].as_f64().unwrap();
    assert!((parts - context["tokens"].as_f64().unwrap()).abs() < 8.0, "{context}");
    let whole = sum(&json["tools"]) + sum(&json["system"]) + context["tokens"].as_f64().unwrap();
    assert!((whole - json["tokens"].as_f64().unwrap()).abs() < 0.01 * whole, "{whole} {}", json["tokens"]);
    assert!((sum(&json["categories"]) - json["tokens"].as_f64().unwrap()).abs() < 8.0);
}

#[test]
fn omissions_are_listed_with_reasons() {
    let project = ContextProject::new().with_repository();
    let json = project.json("", &[]);
    let waiting = &json["waiting"][0];
    assert!(waiting["path"].as_str().unwrap().ends_with(".claude/rules/rust.md"), "{waiting}");
    assert_eq!(waiting["patterns"][0], "src/**/*.rs");
    assert!(json["questions"][0]["path"].as_str().unwrap().ends_with("/secret.md"), "{}", json["questions"]);
    // Nothing outside of the project is read unless it is allowed.
    for part in ["context", "system", "tools"] {
        assert!(!project.good("", &["--show", part]).contains("a secret"), "{part}");
    }
    project.settings(&format!(
        "allow_includes = [\"{}/secret.md\"]\n",
        project.root.parent().unwrap().display()
    ));
    assert!(project.good("", &["--show", "context"]).contains("a secret of the folder above"));
    let empty = project.json("empty", &[]);
    let left_out = each(&empty["left_out"], "what");
    assert!(left_out.iter().any(|what| what.ends_with("empty/CLAUDE.md")), "{left_out:?}");
    assert!(each(&empty["left_out"], "why").iter().all(|why| !why.is_empty()));
}

#[test]
fn too_many_instructions_cause_a_warning_that_names_the_largest() {
    let project = ContextProject::new();
    write(&project.root.join("AGENTS.md"), &"Keep functions short, and say why.\n".repeat(500));
    project.settings("max_instruction_tokens = 2000\n");
    let page = project.good("", &[]);
    fits(&page, 80);
    assert!(page.contains("\nwarnings\n  Instruction files have "), "{page}");
    let words: Vec<&str> = page.split_whitespace().collect();
    assert!(words.join(" ").contains("The largest: AGENTS.md ("), "{page}");
    assert!(files(&project, &project.json("", &[])).contains(&String::from("project/AGENTS.md")));
    project.settings("max_instruction_tokens = 2000\ndrop_large_instructions = true\n");
    let json = project.json("", &[]);
    assert!(!files(&project, &json).contains(&String::from("project/AGENTS.md")));
    assert!(each(&json["left_out"], "why").iter().any(|why| why.starts_with("dropped")), "{json}");
}

#[test]
fn everything_can_be_switched_off() {
    let project = ContextProject::new().with_repository();
    let names = |json: &Value| -> Vec<String> {
        let sections =
            json["system"].as_array().unwrap().iter().flat_map(|block| each(&block["sections"], "name"));
        sections.map(str::to_owned).collect()
    };
    let has_git = |json: &Value| names(json).contains(&String::from("git"));
    let whole = project.json("", &[]);
    assert!(has_git(&whole) && names(&whole).contains(&String::from("environment")), "{:?}", names(&whole));
    assert_eq!(whole["git"]["snapshot"]["branch"], "trunk");
    let without = project.json("", &["--no-git", "--no-instructions"]);
    assert!(!has_git(&without) && files(&project, &without).is_empty());
    assert_eq!(without["git"]["absent"], "switched off");
    let left_out = each(&without["left_out"], "what");
    assert!(left_out.contains(&"git") && left_out.contains(&"instruction files"), "{left_out:?}");
    let added = project.root.join("inner");
    let bare = project.json("", &["--bare", "--add-dir", added.to_str().unwrap()]);
    assert_eq!(files(&project, &bare), ["project/inner/AGENTS.md"]);
    assert_eq!(bare["context"]["files"][0]["scope"], "added");
    project.settings("instructions = false\ngit = false\n");
    let by_settings = project.json("", &[]);
    assert!(!has_git(&by_settings) && files(&project, &by_settings).is_empty());
    project.settings("git_timeout_ms = 0\n");
    let slow = project.json("", &[]);
    assert!(slow["git"]["absent"].as_str().unwrap().contains("took longer than 0 ms"), "{}", slow["git"]);
    assert!(project.good("", &[]).contains("no snapshot: git took longer than 0 ms"));
}

#[test]
fn the_report_fits_eighty_columns_and_is_complete() {
    let project = ContextProject::new().with_repository();
    let page = project.good("inner", &[]);
    fits(&page, 80);
    assert!(!page.contains('\x1b'));
    let mut from = 0;
    for expected in [
        "New session in ",
        "estimated for claude-opus-5-5\n\n  ",
        "w warning 960,000   c auto-compact 967,000   b blocking 977,000\n  e effective window 980,000\n",
        "used part, enlarged\n  ░░░",
        "▟ instruction files",
        "· free",
        "╱ reserved for output",
        "% left until automatic compaction at 967,000",
        "\ntools, ",
        " Bash\n",
        "\nsystem prompt, ",
        "  block 1, without a cache breakpoint\n",
        " attribution\n",
        "  block 2, static: the same for all users\n",
        " identity\n",
        "  block 3, dynamic: specific to this session\n",
        " environment\n",
        " git\n",
        "\nreminder before the first message, ",
        "~/.claude/CLAUDE.md\n                       user: the user's own, for all projects\n",
        " docs/style.md\n",
        "project: ",
        "local: ",
        "inner/AGENTS.md\n",
        "\ngit\n  branch trunk, 1 changed file, 1 commit; gathered in ",
        "\nrules waiting for a matching file\n  .claude/rules/rust.md: for src/**/*.rs\n",
        "\noutside the project\n",
        "\ncache breakpoints, and the tokens they cover\n",
        "after the static part of the system prompt",
        "after the system prompt  cached for 1 hour\n",
        "after the first message  cached for 5 minutes\n",
    ] {
        let found = page[from..].find(expected);
        from += found.unwrap_or_else(|| panic!("`{expected}` is not next in\n{page}"));
    }
    let coloured = project.good("inner", &["--color", "always"]);
    assert!(coloured.contains("\x1b[90m█"), "{coloured}");
    assert_eq!(coloured.lines().count(), page.lines().count());
}

#[test]
fn show_prints_the_text_that_would_be_sent() {
    let project = ContextProject::new().with_repository();
    let json = project.json("", &[]);
    let system = project.good("", &["--show", "system"]);
    let git = project.good("", &["--show", "git"]);
    assert!(system.trim_end().ends_with(git.trim_end()), "git ends the system prompt");
    assert!(git.contains("Branch: trunk") && !git.contains("<system-reminder>"), "{git}");
    let tools: Value = serde_json::from_str(&project.good("", &["--show", "tools"])).unwrap();
    assert_eq!(each(&tools, "name"), each(&json["tools"], "name"));
    let context = project.good("", &["--show", "context"]);
    assert!(context.starts_with("<system-reminder>\n"), "{context}");
    let [style, claude] = ["Whole words for names.", "# Engine"].map(|text| context.find(text).unwrap());
    assert!(style < claude, "what is included stands before what includes it");
    let said = project.said("", &["--no-git", "--show", "git"]);
    assert!(said.code == 1 && said.err.contains("no git snapshot: switched off"), "{}", said.err);
}

#[test]
fn breakpoints_follow_the_model_and_the_settings() {
    let project = ContextProject::new();
    let lifetimes = |json: &Value| -> Vec<String> {
        each(&json["marks"], "lifetime").iter().map(|name| (*name).to_owned()).collect()
    };
    // The cost-aware policy keeps the prefix for an hour.
    let by_price = project.json("", &[]);
    assert_eq!(each(&by_price["marks"], "on"), ["system", "system", "block", "block"]);
    assert_eq!(lifetimes(&by_price), ["1h", "1h", "1h", "5m"]);
    let json = project.json("", &["--settings", "policy = \"threshold\""]);
    assert_eq!(each(&json["marks"], "on"), ["system", "system", "block", "block"]);
    assert_eq!(lifetimes(&json), ["5m"; 4]);
    let tokens: Vec<f64> =
        json["marks"].as_array().unwrap().iter().map(|mark| mark["tokens"].as_f64().unwrap()).collect();
    assert!(tokens.is_sorted() && tokens[0] > 1_000.0, "{tokens:?}");
    project.settings("cache_ttl = \"1h\"\n");
    assert_eq!(lifetimes(&project.json("", &[])), ["1h"; 4]);
    let other = project.json("", &["--model", "gpt-6-sol"]);
    assert_ne!(other["limits"], json["limits"]);
    assert_ne!(other["tokens"], json["tokens"], "another tokenizer");
    assert_eq!(each(&other["marks"], "on"), ["block", "block"], "this provider takes marks in messages only");
}

#[test]
fn a_missing_directory_is_an_error() {
    let project = ContextProject::new();
    for directory in ["nowhere", "CLAUDE.md"] {
        let said = project.said(directory, &[]);
        assert!(said.code == 1 && said.err.contains("hint: name a directory; --session"), "{}", said.err);
    }
    project.settings("cache_ttl = \"2h\"\n");
    assert!(project.said("", &[]).err.contains("settings.toml"));
    let files = project.home.written();
    assert_eq!(files.len(), 1, "nothing is written: {files:?}");
}
