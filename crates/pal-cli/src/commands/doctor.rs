//! `pal doctor`: checks of the installation, each with its next step.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pal_background::LearnedPauses;
use pal_mcp::ServerTransport;
use pal_model::text::count_noun;
use pal_process::sandbox::{Sandbox, SandboxProbe};
use pal_report::TextStyle;
use pal_settings::{KEYS_FILE, KillSwitch, ProjectTrust, SandboxSetting, StoredKey, find_stored_key};
use serde_json::{Value, json};

use crate::agent::configured_servers;
use crate::arguments::{ColorArg, DoctorArgs};
use crate::exit_codes;
use crate::failure::Failure;
use crate::loaded_session::card;
use crate::notices::Notices;
use crate::provider::{chosen_provider, endpoint};
use crate::settings::{Settings, variable};
use crate::terminal_style::style_for;

/// State of one check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CheckState {
    Ok,
    Warning,
    Problem,
}

/// One check with its result.
struct CheckResult {
    name: &'static str,
    state: CheckState,
    text: String,
}

/// Checks everything that can be checked without sending anything.
pub(crate) fn doctor(
    arguments: &DoctorArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let mut checks = vec![ok("version", format!("pal {}", env!("CARGO_PKG_VERSION")))];
    checks.push(check_home(settings));
    checks.extend(check_settings(settings));
    checks.push(check_trust(settings));
    checks.extend(check_keys(settings));
    checks.push(check_model(settings));
    checks.extend(check_pauses(settings));
    checks.push(check_sandbox(settings));
    checks.push(check_program(
        "git",
        "git",
        "sessions start without a snapshot of the repository; install git",
    ));
    checks.extend(check_hooks(settings));
    checks.extend(check_servers(settings));
    report(arguments, &checks, out)
}

/// Reports settings that cannot be read, which every other check depends on.
pub(crate) fn doctor_without_settings(
    arguments: &DoctorArgs,
    failure: &Failure,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let checks =
        [ok("version", format!("pal {}", env!("CARGO_PKG_VERSION"))), problem("settings", failure.message())];
    report(arguments, &checks, out)
}

fn report(arguments: &DoctorArgs, checks: &[CheckResult], out: &mut dyn Write) -> Result<ExitCode, Failure> {
    if arguments.json {
        let all: Vec<Value> = checks
            .iter()
            .map(|check| json!({"check": check.name, "state": state_name(check.state), "text": check.text}))
            .collect();
        writeln!(out, "{}", Value::from(all))?;
    } else {
        let style = style_for(ColorArg::Auto);
        for check in checks {
            writeln!(
                out,
                "{} {:<9} {}",
                mark(check.state, style),
                check.name,
                check.text.replace('\n', "\n            ")
            )?;
        }
        let count = |state: CheckState| checks.iter().filter(|check| check.state == state).count();
        let problems = match count(CheckState::Problem) {
            0 => String::from("No problems"),
            n_problems => count_noun(n_problems, "problem"),
        };
        let summary = match count(CheckState::Warning) {
            0 => format!("{problems}."),
            n_warnings => format!("{problems}, {}.", count_noun(n_warnings, "warning")),
        };
        writeln!(out, "{}", style.bold(&summary))?;
    }
    let has_problem = checks.iter().any(|check| check.state == CheckState::Problem);
    Ok(ExitCode::from(if has_problem { exit_codes::ERROR } else { exit_codes::SUCCESS }))
}

fn state_name(state: CheckState) -> &'static str {
    match state {
        CheckState::Ok => "ok",
        CheckState::Warning => "warning",
        CheckState::Problem => "problem",
    }
}

fn mark(state: CheckState, style: TextStyle) -> String {
    match state {
        CheckState::Ok => style.dim("✓"),
        CheckState::Warning => style.bold("!"),
        CheckState::Problem => style.bold("✗"),
    }
}

fn ok(name: &'static str, text: impl Into<String>) -> CheckResult {
    CheckResult { name, state: CheckState::Ok, text: text.into() }
}

fn warning(name: &'static str, text: impl Into<String>) -> CheckResult {
    CheckResult { name, state: CheckState::Warning, text: text.into() }
}

fn problem(name: &'static str, text: impl Into<String>) -> CheckResult {
    CheckResult { name, state: CheckState::Problem, text: text.into() }
}

fn check_home(settings: &Settings) -> CheckResult {
    let Some(home) = &settings.home else {
        return problem("home", "no home directory is known; set HOME, or set PAL_HOME");
    };
    if !home.exists() {
        return ok("home", format!("{} does not exist yet; the first session creates it", home.display()));
    }
    let probe = home.join(format!(".doctor-{}", std::process::id()));
    match std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe)) {
        Ok(()) => ok("home", home.display().to_string()),
        Err(error) => problem("home", format!("{} cannot be written: {error}", home.display())),
    }
}

fn check_settings(settings: &Settings) -> Vec<CheckResult> {
    let files = &settings.imported.files;
    let others = match files.len() {
        0 => String::from("none of other agents"),
        n_files => format!("{} of other agents", count_noun(n_files, "file")),
    };
    let mut checks = vec![ok("settings", format!("valid; {others}"))];
    checks.extend(files.iter().map(|file| ok("settings", format!("uses {}", file.display()))));
    checks.extend(settings.imported.unused.iter().map(|unused| warning("settings", unused.as_str())));
    checks.extend(settings.warnings.iter().map(|text| warning("settings", text.as_str())));
    checks
}

fn check_trust(settings: &Settings) -> CheckResult {
    let Some(project) = &settings.project.top else { return ok("project", "none") };
    let name = project.display();
    match settings.project.trust() {
        ProjectTrust::Yes => ok("project", format!("{name} is trusted")),
        ProjectTrust::Changed(files) => warning(
            "project",
            format!(
                "{name}: {} changed since you trusted it; `pal trust` shows and trusts them",
                files.join(", ")
            ),
        ),
        ProjectTrust::No => match pal_settings::files_to_trust(project) {
            files if files.is_empty() => ok("project", format!("{name} has no settings of its own")),
            files => warning(
                "project",
                format!(
                    "{name} is not trusted, so parts of {} are ignored; see `pal trust`",
                    files.join(", ")
                ),
            ),
        },
    }
}

/// Origin of each API key; an environment variable goes before a stored key.
fn check_keys(settings: &Settings) -> Vec<CheckResult> {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.trim().is_empty());
    let providers = [
        ("anthropic", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"].as_slice()),
        ("openai", &["OPENAI_API_KEY"]),
    ];
    let mut checks = Vec::new();
    for (provider, names) in providers {
        let stored = settings.home.as_deref().map(|home| (home, find_stored_key(home, provider)));
        let place = match stored {
            Some((home, Ok(Some(StoredKey::File(_))))) => Some(home.join(KEYS_FILE).display().to_string()),
            Some((_, Ok(Some(StoredKey::Keyring)))) => Some(String::from("the system keyring")),
            _ => None,
        };
        let variable = names.iter().find(|name| is_set(name));
        checks.extend(match (variable, place) {
            (Some(name), Some(place)) => Some(warning(
                "keys",
                format!("{provider}: {name}, which goes before the stored key in {place}"),
            )),
            (Some(name), None) => Some(ok("keys", format!("{provider}: {name}"))),
            (None, Some(place)) => Some(ok("keys", format!("{provider}: {place}"))),
            (None, None) => None,
        });
    }
    checks
}

/// The model, and whether its provider can be asked.
fn check_model(settings: &Settings) -> CheckResult {
    let name = settings.model.as_deref().unwrap_or(pal_settings::DEFAULT_MODEL);
    let notices = Notices::collected();
    let card = card(settings, name, &notices);
    let provider = chosen_provider(None, &card, settings);
    let said = notices.into_lines().join("; ");
    match endpoint(provider, settings) {
        Err(failure) => problem("model", format!("{}: {}", card.model, failure.message())),
        Ok(endpoint) if said.is_empty() => ok("model", format!("{} at {}", card.model, endpoint.address())),
        Ok(endpoint) => warning("model", format!("{} at {}; {said}", card.model, endpoint.address())),
    }
}

/// The pauses that were counted in this project, which the cost-aware policy expects.
fn check_pauses(settings: &Settings) -> Option<CheckResult> {
    let home = settings.home.as_deref()?;
    if settings.switches.is_off(KillSwitch::PauseHistory) {
        let why = settings.switches.why(KillSwitch::PauseHistory);
        return Some(ok("pauses", format!("not counted: switched off by {why}")));
    }
    let project = pal_project::find_project(&std::env::current_dir().ok()?);
    let line = LearnedPauses::in_home(home).read().line(&pal_store::slug(&project));
    Some(ok("pauses", line.unwrap_or_else(|| String::from("none counted in this project yet"))))
}

fn check_sandbox(settings: &Settings) -> CheckResult {
    if settings.sandbox.when == SandboxSetting::Off {
        return warning("sandbox", "off by the settings: read-only commands ask");
    }
    match SandboxProbe::default().sandbox() {
        Sandbox::None { why } => {
            warning("sandbox", format!("there is none ({why}); read-only commands ask. Install bubblewrap"))
        }
        Sandbox::Bubblewrap { .. } => ok("sandbox", "bubblewrap"),
        Sandbox::Landlock { .. } => ok("sandbox", "Landlock and seccomp"),
    }
}

fn check_program(check: &'static str, program: &str, hint: &str) -> CheckResult {
    match find_program(program) {
        Some(path) => ok(check, path.display().to_string()),
        None => warning(check, format!("`{program}` is not in PATH: {hint}")),
    }
}

/// Programs of hooks that cannot be found: such a guard does not guard.
fn check_hooks(settings: &Settings) -> Vec<CheckResult> {
    let groups =
        settings.hooks.iter().flat_map(|hooks| hooks.value.groups.iter().map(move |group| (hooks, group)));
    let commands =
        groups.flat_map(|(hooks, group)| group.commands.iter().map(move |command| (hooks, command)));
    let mut n_hooks = 0;
    let mut checks = Vec::new();
    for (hooks, command) in commands {
        n_hooks += 1;
        // What stands in for a hook of another type has no program; a warning names it.
        if command.unsupported.is_some() {
            continue;
        }
        let program = match command.arguments {
            Some(_) => Some(command.command.as_str()),
            None => plain_program(&command.command),
        };
        let home = settings.user_home.as_deref();
        if let Some(program) = program.filter(|program| find_program(&expand_home(program, home)).is_none()) {
            checks.push(problem(
                "hooks",
                format!("{}: `{program}` cannot be found; correct the hook", hooks.origin),
            ));
        }
    }
    if n_hooks > 0 {
        checks.insert(0, ok("hooks", count_noun(n_hooks, "hook")));
    }
    checks
}

/// The program of a shell line, if it is a plain word.
fn plain_program(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next()?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-~+".contains(letter);
    let is_builtin = ["echo", "exit", "test", "true", "false", "cd", "if", "for", "while", "set", "export"]
        .contains(&word);
    (word.chars().all(is_plain) && !is_builtin).then_some(word)
}

fn expand_home(program: &str, home: Option<&Path>) -> String {
    match (program.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below).display().to_string(),
        _ => program.to_owned(),
    }
}

fn check_servers(settings: &Settings) -> Vec<CheckResult> {
    let notices = Notices::collected();
    let servers = match configured_servers(settings, &notices) {
        Ok(servers) => servers,
        Err(failure) => return vec![problem("mcp", failure.message())],
    };
    let mut checks: Vec<CheckResult> = servers
        .iter()
        .map(|configured| {
            let (server, name) = (&configured.server, &configured.server.name);
            match &server.transport {
                _ if configured.is_disabled => ok("mcp", format!("{name} is off (mcp_disabled)")),
                ServerTransport::Stdio { command, .. } => match find_program(command) {
                    Some(path) => ok("mcp", format!("{name}: {}", path.display())),
                    None => problem("mcp", format!("{name}: `{command}` cannot be found ({}); correct it or run `pal mcp remove {name}`", server.source)),
                },
                ServerTransport::Http { url, .. } => ok("mcp", format!("{name}: {url}")),
                ServerTransport::Host => ok("mcp", format!("{name}: in the program that drives pal")),
            }
        })
        .collect();
    checks.extend(notices.into_lines().into_iter().map(|notice| warning("mcp", notice)));
    checks
}

/// Path of a program: as it is if it has a slash, else in the directories of PATH.
fn find_program(program: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(is_program);
    }
    let path = variable("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(is_program)
}
