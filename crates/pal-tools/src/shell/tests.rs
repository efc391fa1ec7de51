//! Real commands through the tools of the shell.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pal_model::{Text, ToolUseId};
use pal_permissions::{Confinement, SandboxLevel};
use pal_process::Cancel;
use pal_sandbox::{Fence, Policy};
use serde_json::json;

use super::{Sandbox, SandboxConfig, Shell, shell_tools};
use crate::{Abilities, Input, Output, Running, Tool, Workspace, find};

/// A workspace with a shell, and the session's folder beside it.
pub(super) struct Desk {
    pub(super) root: PathBuf,
    pub(super) outside: PathBuf,
    pub(super) workspace: Workspace,
    pub(super) shell: Arc<Shell>,
    pub(super) tools: Vec<Box<dyn Tool>>,
    pub(super) confinement: Confinement,
    cancel: Cancel,
    shown: Mutex<String>,
    _folder: tempfile::TempDir,
}

impl Desk {
    pub(super) fn new() -> Desk {
        Desk::with(None)
    }

    fn with(sandbox: Option<Sandbox>) -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let [root, outside, session] = ["root", "outside", "session"].map(|name| {
            std::fs::create_dir(real.join(name)).unwrap();
            real.join(name)
        });
        let level = if sandbox.is_some() { SandboxLevel::WorkspaceWrite } else { SandboxLevel::Full };
        let confinement = Confinement::whole(level);
        let shell = Arc::new(Shell::new(&session, sandbox, vec!["SECRET_*".to_owned()]));
        let abilities = Abilities::default();
        let workspace = Workspace::new(vec![root.clone()], session, None, abilities, BTreeMap::new());
        let tools = shell_tools(&shell);
        let (cancel, shown) = (Cancel::new(), Mutex::default());
        Desk { root, outside, workspace, shell, tools, confinement, cancel, shown, _folder: folder }
    }

    pub(super) fn call(&self, tool: &str, input: &serde_json::Value) -> Output {
        let input = Input(Text::from(input.to_string()));
        let call = ToolUseId::from("call/../1");
        let tool = find(&self.tools, tool).expect("it is there");
        let granted = tool.needs(&input, &self.workspace).unwrap_or_default();
        let progress = |text: &str| self.shown.lock().unwrap().push_str(text);
        let running = Running {
            workspace: &self.workspace,
            granted: &granted,
            confinement: &self.confinement,
            call: &call,
            cancel: &self.cancel,
            progress: &progress,
        };
        tool.run(&input, &running)
    }

    pub(super) fn bash(&self, command: &str) -> (String, bool) {
        said(&self.call("Bash", &json!({ "command": command })))
    }

    /// What a command said that went well.
    pub(super) fn well(&self, command: &str) -> String {
        let (text, is_error) = self.bash(command);
        assert!(!is_error, "{command}: {text}");
        text
    }
}

pub(super) fn said(output: &Output) -> (String, bool) {
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
    let desk = Desk::new();
    assert_eq!(desk.bash("echo out; echo err >&2"), ("out\nerr".to_owned(), false));
    assert_eq!(*desk.shown.lock().unwrap(), "out\nerr\n");
    assert_eq!(desk.bash("printf half; exit 3"), ("half\n[exit code 3]".to_owned(), true));
    assert_eq!(desk.bash("true"), ("(it printed nothing)".to_owned(), false));
    assert_eq!(desk.bash("kill -SEGV $$"), ("[signal SIGSEGV]".to_owned(), true));
    assert_eq!(desk.bash("printf '\\xff\\xc3\\xa9'"), ("\u{fffd}é".to_owned(), false));
    assert_eq!(desk.well("printf '\\033[31mred\\033[0m'"), "\u{1b}[31mred\u{1b}[0m");
    let (text, is_error) = desk.bash("if then");
    assert!(is_error && text.contains("syntax error") && text.contains("[exit code 2]"), "{text}");
    assert_eq!(desk.bash("set -x; echo a").0, "++ echo a\na", "nothing else of the frame shows");
    assert_eq!(desk.well("cat; read line; echo $?"), "1", "nothing stands on the input");
    assert_eq!(desk.well("echo \"it's\" '$HOME' \"[$#] [$1]\""), "it's $HOME [0] []");
    assert_eq!(desk.well("cat <<'END'\n'quoted' \\\nEND"), "'quoted' \\");
}

#[test]
fn input_that_does_not_fit_is_an_answer() {
    let desk = Desk::new();
    for input in [json!({}), json!({"command": " "}), json!({"command": "a\u{0}b"}), json!({"cmd": "ls"})] {
        assert!(desk.call("Bash", &input).is_error, "{input}");
    }
    let long = format!(": {}", "x".repeat(200_000));
    assert!(desk.bash(&long).0.contains("Write it into a file"));
    let longest = format!(": {}", "'".repeat(30_000));
    assert!(!desk.bash(&longest).0.contains("could not be started"), "quoting makes it four times as long");
}

#[test]
fn the_environment_has_no_keys_and_no_pager() {
    let desk = Desk::new();
    assert_eq!(desk.well("echo $PAL $PAGER $GIT_PAGER $TERM"), "1 cat cat dumb");
    // The environment of this process is not changed by tests; which names go is tested where they are chosen.
    assert_eq!(desk.well("env | grep -c -e ^ANTHROPIC_ -e ^OPENAI_ || true"), "0");
}

#[test]
fn the_working_directory_persists() {
    let desk = Desk::new();
    let inner = desk.root.join("in ner");
    let output = desk.call("Bash", &json!({"command": "mkdir 'in ner' && cd 'in ner'"}));
    assert_eq!(output.aftermath.directory.as_deref(), inner.to_str());
    assert_eq!((desk.well("pwd"), desk.workspace.directory()), (inner.display().to_string(), inner.clone()));
    let output = desk.call("Bash", &json!({"command": "true"}));
    assert_eq!(output.aftermath.directory, None, "only what changes is remembered");

    // However the command ends.
    let back = |how: &str| {
        desk.workspace.change_directory(&inner);
        desk.bash(how);
        desk.workspace.directory()
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
        assert_eq!(back(how), desk.root, "{how}");
    }
    for how in
        ["(cd ..)", "cd .. | cat", "cd no-such-directory", "bash -c 'cd ..'", "cd ..; exec true", "if then"]
    {
        assert_eq!(back(how), inner, "{how}");
    }
}

#[test]
fn what_is_printed_is_no_report() {
    let desk = Desk::new();
    // A place that the working directory could be in, so that it would stay there.
    std::fs::create_dir(desk.root.join("sub")).unwrap();
    let place = desk.root.join("sub");
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
        let output = desk.call("Bash", &json!({ "command": attempt }));
        assert_eq!(
            (output.aftermath.directory, desk.workspace.directory()),
            (None, desk.root.clone()),
            "{attempt}"
        );
    }
}

#[test]
fn a_directory_outside_is_left_again() {
    let desk = Desk::new();
    desk.well("mkdir sub; cd sub");
    let text = desk.well(&format!("cd {}; pwd", desk.outside.display()));
    let expected = format!(
        "{out}\n[{out} is outside of the workspace: the working directory is {root} again]",
        out = desk.outside.display(),
        root = desk.root.display()
    );
    assert_eq!((text, desk.workspace.directory()), (expected, desk.root.clone()));
    // A link inside that leads outside is outside.
    std::os::unix::fs::symlink(&desk.outside, desk.root.join("link")).unwrap();
    assert!(desk.well("cd link").contains("is outside"));
    assert_eq!(desk.well("mkdir ../root-beside; cd ../root-beside").matches("is outside").count(), 1);

    desk.well("mkdir gone; cd gone");
    std::fs::remove_dir(desk.root.join("gone")).unwrap();
    let (text, is_error) = desk.bash("pwd");
    assert!(!is_error && text.contains("is gone") && text.ends_with(desk.root.to_str().unwrap()), "{text}");
}

#[test]
fn a_limit_keeps_what_was_printed() {
    let desk = Desk::new();
    let began = Instant::now();
    let input = json!({"command": "echo so far; sleep 1000", "timeout": 300});
    let (text, is_error) = said(&desk.call("Bash", &input));
    assert!(is_error && text.starts_with("so far\n[not done after 0.3 s"), "{text}");
    assert!(text.contains("`run_in_background`"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[test]
fn a_wish_to_stop_ends_it() {
    let desk = Desk::new();
    let cancel = desk.cancel.clone();
    let (text, is_error) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while desk.shown.lock().unwrap().is_empty() {
                std::thread::sleep(Duration::from_millis(5));
            }
            cancel.cancel();
        });
        desk.bash("echo $$; sleep 1000")
    });
    assert!(is_error && text.contains("[cancelled after "), "{text}");
    assert!(!is_alive(text.lines().next().unwrap()));
}

#[test]
fn what_it_leaves_running_is_ended_and_told() {
    let desk = Desk::new();
    let began = Instant::now();
    let text = desk.well("sleep 1000 & echo $!");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(text.contains("a process that it left running was ended: `sleep 1000` (pid "), "{text}");
    assert!(text.contains("`run_in_background` keeps a command running"), "{text}");
    assert!(!is_alive(text.lines().next().unwrap()));
}

#[test]
fn a_long_output_is_in_a_file_with_its_ends_shown() {
    let desk = Desk::new();
    let text = desk.well("echo first; yes 'a line' | head -c 50000000; echo; echo last");
    assert!(text.len() < 20_000, "{}", text.len());
    assert!(text.starts_with("first\na line\n") && text.ends_with("\nlast"));
    let file = desk.workspace.session.join("outputs/call____1.txt");
    assert!(text.contains(&format!("all of it is in {}", file.display())), "{}", &text[7_900..8_300]);
    assert_eq!(std::fs::metadata(file).unwrap().len(), 50_000_012);
    assert_eq!(
        desk.well("head -c 400000 /dev/zero | tr '\\0' x").len(),
        400_000,
        "shorter ones are given whole"
    );
}

#[test]
fn a_server_in_the_background_is_started_looked_at_and_killed() {
    let desk = Desk::new();
    let input = json!({
        "command": "cd /; echo $$ up; while :; do sleep 0.1; done",
        "run_in_background": true,
        "description": "Start the server",
    });
    let output = desk.call("Bash", &input);
    let (text, is_error) = said(&output);
    let file = desk.workspace.session.join("background/task_1.txt");
    assert!(!is_error && text.contains("as task_1.") && text.contains(file.to_str().unwrap()), "{text}");
    assert_eq!(output.aftermath.directory, None);

    let look = json!({"task_id": "task_1", "wait_ms": 10_000});
    let (text, is_error) = said(&desk.call("BashOutput", &look));
    assert!(!is_error && text.contains("is running, since") && text.contains(" up"), "{text}");
    let pid = text.lines().last().unwrap().trim_end_matches(" up").to_owned();
    assert!(is_alive(&pid));
    let (text, _) = said(&desk.call("BashOutput", &json!({"task_id": "task_1"})));
    assert!(text.ends_with("(nothing new)"), "{text}");
    let (text, is_error) = said(&desk.call("KillBash", &json!({"task_id": "task_1"})));
    assert!(!is_error && text.contains("was ended after"), "{text}");
    assert!(!is_alive(&pid));
    let (text, is_error) = said(&desk.call("KillBash", &json!({"task_id": "task_7"})));
    assert_eq!((text.as_str(), is_error), ("No background task is called task_7. There are: task_1.", true));
}

#[test]
fn nothing_runs_in_the_background_where_that_is_switched_off() {
    let mut desk = Desk::new();
    let session = desk.workspace.session.clone();
    let mut shell = Shell::new(&session, None, Vec::new());
    shell.allows_background = false;
    desk.shell = Arc::new(shell);
    desk.tools = shell_tools(&desk.shell);
    let (text, is_error) =
        said(&desk.call("Bash", &json!({"command": "touch ran", "run_in_background": true})));
    assert!(is_error && text.contains("switched off"), "{text}");
    assert!(!desk.root.join("ran").exists() && desk.shell.background.list().is_empty());
    assert_eq!(desk.well("echo waited for"), "waited for");
}

#[test]
fn looking_at_a_repository_runs_nothing_of_it() {
    let desk = Desk::new();
    desk.well(
        "git init -q . && git config user.name a && git config user.email a@b && echo 1 > file && git add file \
         && git commit -qm first && mkdir -p .git/hooks && cd .git/hooks && printf '#!/bin/sh\\ntouch hook-ran\\n' > \
         post-index-change && chmod +x post-index-change && cd ../..",
    );
    desk.well("git config core.fsmonitor 'touch ran; false' && git config log.showSignature true");
    let has = |name: &str| desk.root.join(name).exists();
    for line in
        ["git status", "git log", "git show", "git blame file", "git grep 1", "git ls-files -m", "git diff"]
    {
        desk.well("sleep 0.01; touch file; rm -f ran hook-ran");
        desk.well(line);
        assert!(!has("ran"), "{line}");
        // This one writes the index all the same.
        assert!(!has("hook-ran") || line == "git diff", "{line}");
    }
    // Hooks are for what changes something, and work as ever.
    desk.well("rm -f hook-ran; echo 2 > file && git commit -qam second && git log --oneline | grep second");
    assert!(has("hook-ran"));
}

#[test]
fn the_end_of_a_background_command_is_told_once() {
    let desk = Desk::new();
    desk.call("Bash", &json!({"command": "echo done; exit 5\necho never", "run_in_background": true}));
    desk.shell.background.wait("task_1", Duration::from_secs(10), &Cancel::new());
    let told = desk.shell.finished_since_last_asked();
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("Background task_1 (echo done; exit 5 …) ended with exit code 5 after "),
        "{told:?}"
    );
    assert!(desk.shell.finished_since_last_asked().is_empty());
    let (text, _) = said(&desk.call("BashOutput", &json!({"task_id": "task_1"})));
    assert!(text.ends_with("\ndone"), "{text}");
}

#[test]
fn commands_run_behind_the_fence() {
    // A helper that shows what it was asked to enforce, and runs the command all the same.
    let folder = tempfile::tempdir().unwrap();
    let helper = folder.path().join("helper");
    std::fs::write(&helper, "#!/bin/sh\necho \"$1 $2 $3\"\nshift 3\nexec \"$@\"\n").unwrap();
    std::fs::set_permissions(&helper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let policy = Policy { writable: vec!["/here".into()], ..Policy::default() };
    let fence = Fence::Landlock { abi: 1 };
    let desk = Desk::with(Some(Sandbox::from(SandboxConfig {
        probe: fence.into(),
        policy: policy.clone(),
        helper: helper.clone(),
        ..SandboxConfig::default()
    })));
    let text = desk.well("mkdir sub; cd sub; echo inside");
    assert!(
        text.starts_with("__sandbox {") && text.contains("/here") && text.ends_with(" --\ninside"),
        "{text}"
    );
    assert_eq!(desk.workspace.directory(), desk.root.join("sub"));
    desk.call("Bash", &json!({"command": "echo inside", "run_in_background": true}));
    desk.shell.background.wait("task_1", Duration::from_secs(10), &Cancel::new());
    let (text, _) = said(&desk.call("BashOutput", &json!({"task_id": "task_1"})));
    assert!(text.contains("__sandbox {"), "{text}");

    let fence = Fence::None { why: "a test".to_owned() };
    let desk = Desk::with(Some(Sandbox::from(SandboxConfig {
        probe: fence.into(),
        policy,
        helper,
        ..SandboxConfig::default()
    })));
    for background in [false, true] {
        let input = json!({"command": "touch ran", "run_in_background": background});
        let (text, is_error) = said(&desk.call("Bash", &input));
        assert!(is_error && text.contains("did not run") && text.contains("a test"), "{text}");
    }
    assert!(!desk.root.join("ran").exists());
}

#[test]
fn a_process_that_left_its_group_is_ended_and_named() {
    let desk = Desk::new();
    let line = "setsid sleep 86561 >/dev/null 2>&1 & (setsid sleep 86561 >/dev/null 2>&1 &) & sleep 86562 & sleep 0.3; echo over";
    let output = desk.call("Bash", &json!({"command": line}));
    let told: String = output.content.iter().filter_map(|block| block.string("text")).collect();
    assert!(told.starts_with("over\n[3 processes that it left running were ended: "), "{told}");
    assert!(told.contains("`sleep 86561` (2 times), `sleep 86562` (pid "), "{told}");
}
