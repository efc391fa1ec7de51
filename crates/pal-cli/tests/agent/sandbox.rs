//! Commands without a rule run harmlessly: the whole program with its permission checks and its sandbox.

use pal_sim::{ExtractiveModel, SimulatedModel};
use serde_json::{Value, json};

use crate::test_world::{RunOutput, TestWorld};
use pal_agent_testkit::{ProviderSetup, calls, is_summary, says};

/// A model that makes these calls, one an answer, and then says that it is done.
fn caller(steps: Vec<(&'static str, Value)>) -> ProviderSetup {
    ProviderSetup::answers(move |at, ask| match steps.get(at) {
        _ if is_summary(ask) => ExtractiveModel.answer(ask),
        Some(step) => calls(&format!("Step {at}."), std::slice::from_ref(step)),
        None => says("Done."),
    })
}

fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": command}))
}

/// A world with a home that has something to lose.
fn world(steps: Vec<(&'static str, Value)>) -> TestWorld {
    let world = TestWorld::new(caller(steps));
    for (name, text) in
        [(".bashrc", "# as it was\n"), (".ssh/id_rsa", "CANARY key\n"), (".aws/credentials", "CANARY aws\n")]
    {
        let path = world.home().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    world.file(".env", "CANARY env\n");
    world.file("server.pem", "CANARY pem\n");
    world
}

/// Results of the calls, in order.
fn results(world: &TestWorld) -> Vec<(String, bool)> {
    let mut results = Vec::new();
    world.log().iter().for_each(|line| collect(line, &mut results));
    results
}

fn collect(value: &Value, results: &mut Vec<(String, bool)>) {
    if value["type"] == "tool_result" {
        let text = match &value["content"] {
            Value::String(text) => text.clone(),
            blocks => {
                blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect()
            }
        };
        results.push((text, value["is_error"] == json!(true)));
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, results)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, results)),
        _ => {}
    }
}

fn check_home(world: &TestWorld) {
    let text = |name: &str| std::fs::read_to_string(world.home().join(name)).unwrap_or_default();
    assert_eq!((text(".bashrc").as_str(), text(".ssh/id_rsa").as_str()), ("# as it was\n", "CANARY key\n"));
    let names = std::fs::read_dir(world.home().join(".ssh")).unwrap().count();
    assert_eq!(names, 1, "nothing came to the keys");
}

fn denials(said: &RunOutput) -> usize {
    said.lines()[0]["permission_denials"].as_array().map_or(0, Vec::len)
}

#[test]
fn commands_that_run_their_input_are_never_read_only() {
    for mode in ["default", "accept-edits", "plan"] {
        let world = world(vec![
            bash("printf 'echo x >> ~/.bashrc' | bash -v"),
            bash("echo 'echo x >> ~/.bashrc' | sh --version"),
            bash("cargo --version"),
            bash("diff -N . src"),
            bash("cat ~/.ssh/id_rsa"),
        ]);
        let said = world.run(&["--permission-mode", mode, "--output-format", "json", "go"]);
        assert_eq!(denials(&said), 5, "{mode}: {}", said.out);
        check_home(&world);
        assert!(!world.provider.heard().asked.last().unwrap().text().contains("CANARY"), "{mode}");
    }
}

#[test]
fn read_only_commands_run_without_asking_and_see_no_credentials() {
    let world = world(vec![
        bash("cat README.md | head -1"),
        bash("grep -rh CANARY --exclude='.*' --exclude-dir=.git . ; echo over"),
        bash("git status --short"),
        bash("ls -a | grep env"),
    ]);
    let said = world.run(&["--output-format", "json", "go"]);
    assert_eq!(denials(&said), 0, "{}", said.out);
    let results = results(&world);
    assert_eq!(results[0], ("# Scratch".to_owned(), false));
    assert!(!results[1].0.contains("CANARY") && results[1].0.ends_with("over"), "{results:?}");
    assert!(results[2].0.contains("?? README.md"), "{results:?}");
    assert_eq!(results[3].0, ".env", "that it is there is no secret");
}

#[test]
fn a_repository_runs_nothing_under_commands_that_need_no_rule() {
    let commands =
        ["git status", "git diff", "git log -p", "git show HEAD", "git blame tracked.txt", "git grep -n two"];
    let world = world(commands.iter().map(|command| bash(command)).collect());
    world.file("tracked.txt", "one\n");
    world.git(&["add", "tracked.txt"]);
    world.git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"]);
    world.file("tracked.txt", "two\n");
    world.file(".gitattributes", "*.txt diff=evil filter=evil\n");
    let evil = world.repository().join("evil");
    world.file(
        "evil",
        &format!(
            "#!/bin/sh\ntouch {0}/ran {1}/ran\ncat\n",
            world.home().display(),
            world.repository().display()
        ),
    );
    std::fs::set_permissions(&evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let evil = evil.display().to_string();
    for key in [
        "core.fsmonitor",
        "core.pager",
        "diff.external",
        "diff.evil.textconv",
        "filter.evil.clean",
        "gpg.program",
    ] {
        world.git(&["config", key, &evil]);
    }
    let said = world.run(&["--output-format", "json", "go"]);
    assert_eq!(denials(&said), 0, "{}", said.out);
    assert!(
        !world.home().join("ran").exists() && !world.repository().join("ran").exists(),
        "{:?}",
        results(&world)
    );
}

#[test]
fn a_rule_for_a_command_does_not_open_guarded_paths() {
    let hook = "cp README.md .git/hooks/pre-commit";
    // Which file these mean is known only when they run: the kernel refuses them.
    let hidden = [
        "cp README.md \"$(printf .g)it/hooks/pre-commit\"",
        "x=.ssh; cp ~/$x/id_rsa stolen",
        "cp -t $(echo .g)it/hooks README.md",
    ];
    let mut steps = vec![bash(hook), bash("cp README.md copied"), bash("cat .env")];
    steps.extend(hidden.map(bash));
    let world = world(steps);
    let said = world.run(&["--allowed-tools", "Bash(cp:*),Bash(cat:*)", "--output-format", "json", "go"]);
    assert!(denials(&said) >= 2, "{}", said.out);
    assert!(world.repository().join("copied").exists(), "{:?}", results(&world));
    if std::process::Command::new("bwrap").arg("--version").output().is_ok() {
        assert!(!world.repository().join(".git/hooks/pre-commit").exists(), "{:?}", results(&world));
        assert!(!world.repository().join(".git/hooks/README.md").exists());
        assert!(!world.text("stolen").contains("CANARY"), "{:?}", results(&world));
    }
}

#[test]
fn every_part_of_a_line_runs_at_its_own_level() {
    let world = world(vec![
        // The rule is about the first command alone: the second one cannot write.
        bash("./make.sh | head -1"),
        bash("./make.sh > out.txt; cat out.txt | tail -1"),
        bash("for x in 1 2; do ./make.sh | wc -l; done"),
    ]);
    world.file("make.sh", "#!/bin/sh\ntouch made\necho one\necho two\n");
    let script = world.repository().join("make.sh");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let rules = "Bash(./make.sh:*),Edit(out.txt)";
    let said = world.run(&["--allowed-tools", rules, "--output-format", "json", "go"]);
    assert_eq!(denials(&said), 0, "{}", said.out);
    let results = results(&world);
    assert_eq!(results, [("one".to_owned(), false), ("two".to_owned(), false), ("2\n2".to_owned(), false)]);
    assert!(world.repository().join("made").exists());
}

#[test]
fn bypass_mode_is_the_sandbox_for_all_tools() {
    let world = world(Vec::new());
    let home = world.home().display().to_string();
    let write = |path: &str| ("Write", json!({"file_path": path, "content": "evil"}));
    let steps = vec![
        write(&format!("{home}/.ssh/authorized_keys")),
        write(".git/hooks/pre-commit"),
        write(".pal/settings.toml"),
        write(".mcp.json"),
        ("Read", json!({"file_path": format!("{home}/.ssh/id_rsa")})),
        ("WebFetch", json!({"url": "http://127.0.0.1:9/", "prompt": "x"})),
        bash("echo evil > ~/.bashrc"),
        bash("sh plant.sh"),
        bash("cat ~/.ssh/id_rsa ~/.aws/credentials .env"),
        write("fine.txt"),
        bash("echo fine > also-fine.txt; mkdir -p deep; touch deep/x"),
    ];
    drop(world);
    let world = self::world(steps);
    world.file(
        "plant.sh",
        "echo evil > ~/.bashrc\necho evil > .mcp.json\nmkdir -p .husky\necho evil > .husky/pre-commit\necho evil > .git/config\n\
         echo evil > .git/hooks/pre-commit\ngit init -q planted\ngit -C planted config core.fsmonitor evil\n",
    );
    let said = world.run(&["--permission-mode", "bypass", "--output-format", "json", "go"]);
    assert_eq!(said.code, 0, "{}", said.err);
    check_home(&world);
    let results = results(&world);
    assert!(!results.iter().any(|(text, _)| text.contains("CANARY")), "{results:?}");
    for name in [".git/hooks/pre-commit", ".pal/settings.toml", ".mcp.json", ".husky/pre-commit"] {
        assert!(!world.repository().join(name).exists(), "{name}: {results:?}");
    }
    assert_eq!(world.text("fine.txt"), "evil");
    if std::process::Command::new("bwrap").arg("--version").output().is_ok() {
        assert_eq!(world.text("also-fine.txt"), "fine\n", "{results:?}");
        assert!(results[7].0.contains(".mcp.json was renamed"), "{results:?}");
        assert!(!world.text("planted/.git/config").contains("fsmonitor"), "{results:?}");
        assert!(world.text("planted/.git/config.blocked").contains("fsmonitor"), "nothing is lost");
        assert!(!world.text(".git/config").contains("evil"));
    }
}

#[test]
fn without_a_sandbox_read_only_commands_ask() {
    let world = world(vec![bash("cat README.md"), bash("echo plain")]);
    let said = world.run(&["--no-sandbox", "--output-format", "json", "go"]);
    assert_eq!(denials(&said), 1, "{}", said.out);
    assert!(said.out.contains("the sandbox is switched off"), "{}", said.out);
}

#[test]
fn git_works_in_a_folder_of_a_repository() {
    let world = world(vec![bash("git status --short"), bash("git log --oneline"), bash("cat ../README.md")]);
    world.git(&["add", "README.md", "src"]);
    world.git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "First"]);
    world.file("src/lib.rs", "changed\n");
    let mut command = world.command(&["-p", "--output-format", "json", "go"]);
    let said =
        crate::test_world::finish(command.current_dir(world.repository().join("src")).spawn().unwrap());
    assert_eq!(said.code, 0, "{}", said.err);
    let results = results(&world);
    assert!(results[0].0.contains(" M lib.rs") || results[0].0.contains(" M src/lib.rs"), "{results:?}");
    assert!(results[1].0.ends_with("First"), "{results:?}");
    assert!(results[2].1, "what lies above is asked about: {results:?}");
}
