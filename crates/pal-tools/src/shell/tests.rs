//! Real commands through the shell tools.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pal_model::{SharedText, ToolUseId};
use pal_permissions::{Confinement, SandboxLevel};
use pal_process::CancelToken;
use pal_process::sandbox::{Sandbox, SandboxPolicy};
use serde_json::json;

use super::{SandboxConfig, SessionSandbox, Shell, shell_tools};
use crate::{MediaSupport, ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace, find_tool};

/// Workspace with a shell, and a session folder next to it.
pub(super) struct ShellFixture {
    pub(super) root: PathBuf,
    pub(super) outside: PathBuf,
    pub(super) workspace: Workspace,
    pub(super) shell: Arc<Shell>,
    pub(super) tools: Vec<Box<dyn ToolHandler>>,
    pub(super) confinement: Confinement,
    cancel: CancelToken,
    shown: Mutex<String>,
    _folder: tempfile::TempDir,
}

impl ShellFixture {
    pub(super) fn new() -> ShellFixture {
        ShellFixture::with(None)
    }

    fn with(sandbox: Option<SessionSandbox>) -> ShellFixture {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let [root, outside, session] = ["root", "outside", "session"].map(|name| {
            std::fs::create_dir(real.join(name)).unwrap();
            real.join(name)
        });
        let level = if sandbox.is_some() { SandboxLevel::WorkspaceWrite } else { SandboxLevel::Full };
        let confinement = Confinement::whole(level);
        let shell = Arc::new(Shell::new(&session, sandbox, vec!["SECRET_*".to_owned()]));
        let abilities = MediaSupport::default();
        let workspace = Workspace::new(vec![root.clone()], session, None, abilities, BTreeMap::new());
        let tools = shell_tools(&shell);
        let (cancel, shown) = (CancelToken::new(), Mutex::default());
        ShellFixture { root, outside, workspace, shell, tools, confinement, cancel, shown, _folder: folder }
    }

    pub(super) fn call(&self, tool: &str, input: &serde_json::Value) -> ToolOutput {
        let input = ToolInput(SharedText::from(input.to_string()));
        let call = ToolUseId::from("call/../1");
        let tool = find_tool(&self.tools, tool).expect("it is there");
        let granted = tool.required_access(&input, &self.workspace).unwrap_or_default();
        let progress = |text: &str| self.shown.lock().unwrap().push_str(text);
        let context = ToolContext {
            workspace: &self.workspace,
            granted: &granted,
            confinement: &self.confinement,
            call: &call,
            cancel: &self.cancel,
            progress: &progress,
        };
        tool.run(&input, &context)
    }

    pub(super) fn bash(&self, command: &str) -> (String, bool) {
        text_of(&self.call("Bash", &json!({ "command": command })))
    }

    /// Output of a command that must succeed.
    pub(super) fn succeed(&self, command: &str) -> String {
        let (text, is_error) = self.bash(command);
        assert!(!is_error, "{command}: {text}");
        text
    }
}

pub(super) fn text_of(output: &ToolOutput) -> (String, bool) {
    let texts = output.content.iter().map(|block| {
        let block: serde_json::Value = serde_json::from_str(block.raw().as_str()).unwrap();
        block["text"].as_str().unwrap().to_owned()
    });
    (texts.collect::<Vec<_>>().join("\n"), output.is_error)
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn output_and_exit_code() {
    let fixture = ShellFixture::new();
    assert_eq!(fixture.bash("echo out; echo err >&2"), ("out\nerr".to_owned(), false));
    assert_eq!(*fixture.shown.lock().unwrap(), "out\nerr\n");
    assert_eq!(fixture.bash("printf half; exit 3"), ("half\n[exit code 3]".to_owned(), true));
    assert_eq!(fixture.bash("true"), ("(it printed nothing)".to_owned(), false));
    assert_eq!(fixture.bash("kill -SEGV $$"), ("[signal SIGSEGV]".to_owned(), true));
    assert!(fixture.succeed("printf '\\xff\\xc3\\xa9'").starts_with("\u{fffd}é\n["));
    assert_eq!(fixture.succeed("printf '\\033[31mred\\033[0m'"), "\u{1b}[31mred\u{1b}[0m");
    let (text, is_error) = fixture.bash("if then");
    assert!(is_error && text.contains("syntax error") && text.contains("[exit code 2]"), "{text}");
    assert_eq!(fixture.bash("set -x; echo a").0, "++ echo a\na", "nothing else of the frame shows");
    assert_eq!(fixture.succeed("cat; read line; echo $?"), "1", "nothing stands on the input");
    assert_eq!(fixture.succeed("echo \"it's\" '$HOME' \"[$#] [$1]\""), "it's $HOME [0] []");
    assert_eq!(fixture.succeed("cat <<'END'\n'quoted' \\\nEND"), "'quoted' \\");
}

#[test]
fn invalid_input_is_an_error_result() {
    let fixture = ShellFixture::new();
    for input in [json!({}), json!({"command": " "}), json!({"command": "a\u{0}b"}), json!({"cmd": "ls"})] {
        assert!(fixture.call("Bash", &input).is_error, "{input}");
    }
    let long = format!(": {}", "x".repeat(200_000));
    assert!(fixture.bash(&long).0.contains("Write it into a file"));
    let longest = format!(": {}", "'".repeat(30_000));
    assert!(
        !fixture.bash(&longest).0.contains("could not be started"),
        "quoting makes it four times as long"
    );
}

#[test]
fn the_environment_has_no_keys_and_no_pager() {
    let fixture = ShellFixture::new();
    assert_eq!(fixture.succeed("echo $PAL $PAGER $GIT_PAGER $TERM"), "1 cat cat dumb");
    // Tests do not change the environment of this process; the choice of names has its own tests.
    assert_eq!(fixture.succeed("env | grep -c -e ^ANTHROPIC_ -e ^OPENAI_ || true"), "0");
}

#[test]
fn the_working_directory_persists() {
    let fixture = ShellFixture::new();
    let inner = fixture.root.join("in ner");
    let output = fixture.call("Bash", &json!({"command": "mkdir 'in ner' && cd 'in ner'"}));
    assert_eq!(output.aftermath.directory.as_deref(), inner.to_str());
    assert_eq!(
        (fixture.succeed("pwd"), fixture.workspace.directory()),
        (inner.display().to_string(), inner.clone())
    );
    let output = fixture.call("Bash", &json!({"command": "true"}));
    assert_eq!(output.aftermath.directory, None, "only what changes is remembered");

    // The directory persists in all cases.
    let back = |how: &str| {
        fixture.workspace.change_directory(&inner);
        fixture.bash(how);
        fixture.workspace.directory()
    };
    for how in [
        "cd ..; exit 4",
        "set -e; cd ..; false; cd /",
        "trap 'echo bye' EXIT; cd ..",
        "cd ..; sleep 100 & true",
        "cd ..; exec 9>&1 8>&2 1>&- 2>&-",
        "cd ..; set -u; set -o pipefail; IFS=0123456789/",
        "cd ..; printf() { echo no; }; pwd() { echo /etc; }",
        "cd ..; alias pwd='echo /etc'; readonly PWD",
    ] {
        assert_eq!(back(how), fixture.root, "{how}");
    }
    for how in
        ["(cd ..)", "cd .. | cat", "cd no-such-directory", "bash -c 'cd ..'", "cd ..; exec true", "if then"]
    {
        assert_eq!(back(how), inner, "{how}");
    }
}

#[test]
fn printed_text_is_not_a_directory_report() {
    let fixture = ShellFixture::new();
    // A folder inside the roots, where the working directory could stay.
    std::fs::create_dir(fixture.root.join("sub")).unwrap();
    let place = fixture.root.join("sub");
    let place = place.display();
    for attempt in [
        format!("printf '{place}\\0' >&9; exec true"),
        format!("bash -c \"printf '{place}\\\\0' >&9\"; kill -9 $$"),
        format!("printf '{place}\\0'"),
        format!("printf '{place}\\0' >&9"),
        format!("for fd in 0 1 2 3 4 5 6 7 8 9 10 11 12 13; do eval \"printf '{place}\\\\0' >&$fd\"; done"),
        format!("for fd in 0 1 2 3 4 5 6 7 8 9 10 11 12; do bash -c \"printf '{place}\\\\0' >&$fd\"; done"),
        format!("exec 9>&1; printf '{place}\\0' >&9"),
        format!("PWD={place}; OLDPWD={place}"),
    ] {
        let output = fixture.call("Bash", &json!({ "command": attempt }));
        assert_eq!(
            (output.aftermath.directory, fixture.workspace.directory()),
            (None, fixture.root.clone()),
            "{attempt}"
        );
    }
}

#[test]
fn a_directory_outside_the_roots_is_reset() {
    let fixture = ShellFixture::new();
    fixture.succeed("mkdir sub; cd sub");
    let text = fixture.succeed(&format!("cd {}; pwd", fixture.outside.display()));
    let expected = format!(
        "{out}\n[{out} is outside of the workspace: the working directory is {root} again]",
        out = fixture.outside.display(),
        root = fixture.root.display()
    );
    assert_eq!((text, fixture.workspace.directory()), (expected, fixture.root.clone()));
    // A link that leads outside counts as outside.
    std::os::unix::fs::symlink(&fixture.outside, fixture.root.join("link")).unwrap();
    assert!(fixture.succeed("cd link").contains("is outside"));
    assert_eq!(fixture.succeed("mkdir ../root-beside; cd ../root-beside").matches("is outside").count(), 1);

    fixture.succeed("mkdir gone; cd gone");
    std::fs::remove_dir(fixture.root.join("gone")).unwrap();
    let (text, is_error) = fixture.bash("pwd");
    assert!(
        !is_error && text.contains("is gone") && text.ends_with(fixture.root.to_str().unwrap()),
        "{text}"
    );
}

#[test]
fn a_timeout_keeps_the_output() {
    let fixture = ShellFixture::new();
    let began = Instant::now();
    let input = json!({"command": "echo so far; sleep 1000", "timeout": 300});
    let (text, is_error) = text_of(&fixture.call("Bash", &input));
    assert!(is_error && text.starts_with("so far\n[not done after 0.3 s"), "{text}");
    assert!(text.contains("`run_in_background`"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[test]
fn cancel_ends_the_command() {
    let fixture = ShellFixture::new();
    let cancel = fixture.cancel.clone();
    let (text, is_error) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while fixture.shown.lock().unwrap().is_empty() {
                std::thread::sleep(Duration::from_millis(5));
            }
            cancel.cancel();
        });
        fixture.bash("echo $$; sleep 1000")
    });
    assert!(is_error && text.contains("[cancelled after "), "{text}");
    assert!(!is_alive(text.lines().next().unwrap()));
}

#[test]
fn leftover_processes_are_ended_and_reported() {
    let fixture = ShellFixture::new();
    let began = Instant::now();
    let text = fixture.succeed("sleep 1000 & echo $!");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(text.contains("a process that it left running was ended: `sleep 1000` (pid "), "{text}");
    assert!(text.contains("`run_in_background` keeps a command running"), "{text}");
    assert!(!is_alive(text.lines().next().unwrap()));
}

#[test]
fn output_that_is_no_text_is_kept_byte_for_byte() {
    let fixture = ShellFixture::new();
    let text = fixture.succeed(r"printf 'a\377\200b\n'");
    let file = fixture.workspace.session.join("outputs/call____1.bin");
    assert!(text.starts_with("a\u{fffd}") && text.contains(&file.display().to_string()), "{text}");
    assert_eq!(std::fs::read(file).unwrap(), b"a\xff\x80b\n");
    assert!(!fixture.succeed("echo ä").contains("UTF-8"));
}

#[test]
fn a_long_output_is_in_a_file_with_its_ends_shown() {
    let fixture = ShellFixture::new();
    let text = fixture.succeed("echo first; yes 'a line' | head -c 50000000; echo; echo last");
    assert!(text.len() < 20_000, "{}", text.len());
    assert!(text.starts_with("first\na line\n") && text.ends_with("\nlast"));
    let file = fixture.workspace.session.join("outputs/call____1.txt");
    assert!(text.contains(&format!("all of it is in {}", file.display())), "{}", &text[7_900..8_300]);
    assert_eq!(std::fs::metadata(file).unwrap().len(), 50_000_012);
    assert_eq!(
        fixture.succeed("head -c 400000 /dev/zero | tr '\\0' x").len(),
        400_000,
        "shorter ones are given whole"
    );
}

#[test]
fn a_background_server_is_started_read_and_killed() {
    let fixture = ShellFixture::new();
    let input = json!({
        "command": "cd /; echo $$ up; while :; do sleep 0.1; done",
        "run_in_background": true,
        "description": "Start the server",
    });
    let output = fixture.call("Bash", &input);
    let (text, is_error) = text_of(&output);
    let file = fixture.workspace.session.join("background/task_1.txt");
    assert!(!is_error && text.contains("as task_1.") && text.contains(file.to_str().unwrap()), "{text}");
    assert_eq!(output.aftermath.directory, None);

    let look = json!({"task_id": "task_1", "wait_ms": 10_000});
    let (text, is_error) = text_of(&fixture.call("BashOutput", &look));
    assert!(!is_error && text.contains("is running, since") && text.contains(" up"), "{text}");
    let pid = text.lines().last().unwrap().trim_end_matches(" up").to_owned();
    assert!(is_alive(&pid));
    let (text, _) = text_of(&fixture.call("BashOutput", &json!({"task_id": "task_1"})));
    assert!(text.ends_with("(nothing new)"), "{text}");
    let (text, is_error) = text_of(&fixture.call("KillBash", &json!({"task_id": "task_1"})));
    assert!(!is_error && text.contains("was ended after"), "{text}");
    assert!(!is_alive(&pid));
    let (text, is_error) = text_of(&fixture.call("KillBash", &json!({"task_id": "task_7"})));
    assert_eq!((text.as_str(), is_error), ("No background task is called task_7. There are: task_1.", true));
}

#[test]
fn background_commands_can_be_disabled() {
    let mut fixture = ShellFixture::new();
    let session = fixture.workspace.session.clone();
    let mut shell = Shell::new(&session, None, Vec::new());
    shell.allows_background = false;
    fixture.shell = Arc::new(shell);
    fixture.tools = shell_tools(&fixture.shell);
    let (text, is_error) =
        text_of(&fixture.call("Bash", &json!({"command": "touch ran", "run_in_background": true})));
    assert!(is_error && text.contains("switched off"), "{text}");
    assert!(!fixture.root.join("ran").exists() && fixture.shell.background.list().is_empty());
    assert_eq!(fixture.succeed("echo waited for"), "waited for");
}

#[test]
fn read_only_git_runs_no_repository_programs() {
    let fixture = ShellFixture::new();
    fixture.succeed(
        "git init -q . && git config user.name a && git config user.email a@b && echo 1 > file && git add file \
         && git commit -qm first && mkdir -p .git/hooks && cd .git/hooks && printf '#!/bin/sh\\ntouch hook-ran\\n' > \
         post-index-change && chmod +x post-index-change && cd ../..",
    );
    fixture.succeed("git config core.fsmonitor 'touch ran; false' && git config log.showSignature true");
    let has = |name: &str| fixture.root.join(name).exists();
    for line in
        ["git status", "git log", "git show", "git blame file", "git grep 1", "git ls-files -m", "git diff"]
    {
        fixture.succeed("sleep 0.01; touch file; rm -f ran hook-ran");
        fixture.succeed(line);
        assert!(!has("ran"), "{line}");
        // This one writes the index anyway.
        assert!(!has("hook-ran") || line == "git diff", "{line}");
    }
    // Hooks of changing commands still run.
    fixture.succeed(
        "rm -f hook-ran; echo 2 > file && git commit -qam second && git log --oneline | grep second",
    );
    assert!(has("hook-ran"));
}

#[test]
fn the_end_of_a_background_command_is_reported_once() {
    let fixture = ShellFixture::new();
    fixture.call("Bash", &json!({"command": "echo done; exit 5\necho never", "run_in_background": true}));
    fixture.shell.background.wait("task_1", Duration::from_secs(10), &CancelToken::new());
    let told = fixture.shell.take_finished();
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("Background task_1 (echo done; exit 5 …) ended with exit code 5 after "),
        "{told:?}"
    );
    assert!(fixture.shell.take_finished().is_empty());
    let (text, _) = text_of(&fixture.call("BashOutput", &json!({"task_id": "task_1"})));
    assert!(text.ends_with("\ndone"), "{text}");
}

#[test]
fn commands_run_in_the_sandbox() {
    // A helper that prints its policy and runs the command unconfined.
    let folder = tempfile::tempdir().unwrap();
    let helper = folder.path().join("helper");
    std::fs::write(&helper, "#!/bin/sh\necho \"$1 $2 $3\"\nshift 3\nexec \"$@\"\n").unwrap();
    std::fs::set_permissions(&helper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let policy = SandboxPolicy { writable: vec!["/here".into()], ..SandboxPolicy::default() };
    let mechanism = Sandbox::Landlock { abi: 1 };
    let fixture = ShellFixture::with(Some(SessionSandbox::from(SandboxConfig {
        probe: mechanism.into(),
        policy: policy.clone(),
        helper: helper.clone(),
        ..SandboxConfig::default()
    })));
    let text = fixture.succeed("mkdir sub; cd sub; echo inside");
    assert!(
        text.starts_with("__sandbox {") && text.contains("/here") && text.ends_with(" --\ninside"),
        "{text}"
    );
    assert_eq!(fixture.workspace.directory(), fixture.root.join("sub"));
    fixture.call("Bash", &json!({"command": "echo inside", "run_in_background": true}));
    fixture.shell.background.wait("task_1", Duration::from_secs(10), &CancelToken::new());
    let (text, _) = text_of(&fixture.call("BashOutput", &json!({"task_id": "task_1"})));
    assert!(text.contains("__sandbox {"), "{text}");

    let mechanism = Sandbox::None { why: "a test".to_owned() };
    let fixture = ShellFixture::with(Some(SessionSandbox::from(SandboxConfig {
        probe: mechanism.into(),
        policy,
        helper,
        ..SandboxConfig::default()
    })));
    for background in [false, true] {
        let input = json!({"command": "touch ran", "run_in_background": background});
        let (text, is_error) = text_of(&fixture.call("Bash", &input));
        assert!(is_error && text.contains("did not run") && text.contains("a test"), "{text}");
    }
    assert!(!fixture.root.join("ran").exists());
}

#[test]
fn a_process_that_left_its_group_is_ended_and_named() {
    let fixture = ShellFixture::new();
    let line = "setsid sleep 86561 >/dev/null 2>&1 & (setsid sleep 86561 >/dev/null 2>&1 &) & sleep 86562 & sleep 0.3; echo over";
    let output = fixture.call("Bash", &json!({"command": line}));
    let told: String = output.content.iter().filter_map(|block| block.string("text")).collect();
    assert!(told.starts_with("over\n[3 processes that it left running were ended: "), "{told}");
    assert!(told.contains("`sleep 86561` (2 times), `sleep 86562` (pid "), "{told}");
}
