//! Commands that answer at once: from files, settings and the live state of the session.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pal_memory::MemoryKind;
use pal_model::text::count_noun;
use pal_model::{EntryBody, MessageOrigin, Timestamp};
use pal_report::{clip_line, sanitize, sanitize_lines};
use pal_tools::FileCheckpoints;
use pal_tui::{CommandInfo, KEY_HELP, PickerChoice, SlashOutcome, Theme};

use super::arguments::SlashArguments;
use super::{FrontEnd, SlashContext, pages, session_choices, with_notices};
use crate::arguments::{
    AgentsArgs, BreaksArgs, ConfigArgs, ConfigScopeArg, ContextArgs, CostArgs, ExportArgs, ExportFormat,
    OverviewArgs, RequestPartArg, ViewArgs,
};
use crate::commands;
use crate::commands::set_setting;
use crate::failure::Failure;
use crate::loaded_session::LoadedSession;
use crate::notices::Notices;
use crate::session_start::known_output_styles;
use crate::settings::{TypedSettings, from_environment};

/// Maximum number of files that the list of `/rewind` names.
const NAMED_FILES_MAX: usize = 4;

/// Most columns of a prompt in the list of `/rewind`.
const PROMPT_COLUMNS: usize = 200;

pub(super) fn help(context: &SlashContext<'_>, _arguments: &str) -> SlashOutcome {
    let row = |command: CommandInfo| {
        (format!("/{} {}", command.name, command.arguments).trim_end().to_owned(), command.about)
    };
    let commands: Vec<(String, String)> = context.commands.list().into_iter().map(row).collect();
    let keys: &[(&str, &str)] = match context.commands.front_end {
        FrontEnd::Terminal => KEY_HELP,
        FrontEnd::Editor | FrontEnd::Print => &[],
    };
    let keys: Vec<(String, String)> =
        keys.iter().map(|(keys, about)| ((*keys).to_owned(), (*about).to_owned())).collect();
    SlashOutcome::Print(pages::help(context.color(), &commands, &keys))
}

pub(super) fn exit(_context: &SlashContext<'_>, _arguments: &str) -> SlashOutcome {
    SlashOutcome::Leave
}

pub(super) fn context(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    let is_brief = match arguments {
        "" => true,
        "all" => false,
        _ => return context.usage("unexpected argument"),
    };
    show_context(context, ContextArgs { brief: is_brief, ..context_args(context) })
}

fn show_context(context: &SlashContext<'_>, arguments: ContextArgs) -> SlashOutcome {
    let session = match context.session() {
        Ok(session) => session,
        Err(outcome) => return outcome,
    };
    let arguments = ContextArgs { session: Some(session), ..arguments };
    context.print(|notices, out| commands::context(&arguments, context.settings, notices, out))
}

fn context_args(context: &SlashContext<'_>) -> ContextArgs {
    ContextArgs {
        directory: None,
        session: None,
        model: None,
        added: Vec::new(),
        bare: false,
        no_git: false,
        no_instructions: false,
        show: None,
        brief: false,
        color: context.color(),
        json: false,
    }
}

pub(super) fn cost(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    let mut words = SlashArguments::new(arguments);
    let (requests, json) =
        (words.take_flag("--requests") | words.take_flag("--verbose"), words.take_flag("--json"));
    if let Err(problem) = words.finish() {
        return context.usage(&problem);
    }
    match context.session() {
        Ok(session) => {
            let arguments = CostArgs {
                sessions: vec![session],
                requests,
                // Replays take seconds, in which the terminal would not respond.
                savings: false,
                window: None,
                overview: OverviewArgs::default(),
                color: context.color(),
                json,
            };
            context.print(|notices, out| commands::cost(&arguments, context.settings, notices, out))
        }
        Err(outcome) => outcome,
    }
}

pub(super) fn breaks(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    let mut words = SlashArguments::new(arguments);
    let (diff, all, json) = (words.take_flag("--diff"), words.take_flag("--all"), words.take_flag("--json"));
    let injects = words.take_flag("--inject");
    if let Err(problem) = words.finish() {
        return context.usage(&problem);
    }
    if injects {
        return SlashOutcome::NeedsSession;
    }
    match context.session() {
        Ok(session) => {
            let arguments = BreaksArgs { session: Some(session), diff, all, color: context.color(), json };
            context.print(|notices, out| commands::breaks(&arguments, context.settings, notices, out))
        }
        Err(outcome) => outcome,
    }
}

pub(super) fn view(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    let session = match context.session() {
        Ok(session) => session,
        Err(outcome) => return outcome,
    };
    let mut words = SlashArguments::new(arguments);
    let full = words.take_flag("--full");
    if let Err(problem) = words.finish() {
        return context.usage(&problem);
    }
    let arguments =
        ViewArgs { session: Some(session), at: None, model: None, full, color: context.color(), json: false };
    context.print(|_, out| commands::view(&arguments, context.settings, out))
}

pub(super) fn config(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    let mut words = SlashArguments::new(arguments);
    let (json, key) = (words.take_flag("--json"), words.take_word().map(str::to_owned));
    if let Err(problem) = words.finish() {
        return context.usage(&problem);
    }
    let arguments = ConfigArgs { command: None, key, other: None, color: context.color(), json };
    context.print(|notices, out| commands::config(&arguments, context.settings, notices, out))
}

pub(super) fn export(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    let mut words = SlashArguments::new(arguments);
    let (no_mask, format) = (words.take_flag("--no-mask"), words.take_option("--format"));
    let Some(file) = words.take_word() else { return context.usage("/export needs a file") };
    if let Err(problem) = words.finish() {
        return context.usage(&problem);
    }
    let format = match format {
        None => None,
        Some("markdown" | "md") => Some(ExportFormat::Markdown),
        Some("html") => Some(ExportFormat::Html),
        Some("json") => Some(ExportFormat::Json),
        Some(_) => return context.usage("FORMAT is markdown, html or json"),
    };
    match context.session() {
        Ok(session) => {
            let arguments = ExportArgs { session: Some(session), format, output: Some(file.into()), no_mask };
            context.print(|notices, out| commands::export(&arguments, context.settings, notices, out))
        }
        Err(outcome) => outcome,
    }
}

pub(super) fn memory(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    match arguments {
        "" => SlashOutcome::NeedsSession,
        "show" => show_context(
            context,
            ContextArgs { show: Some(RequestPartArg::Context), ..context_args(context) },
        ),
        _ => context.usage("unexpected argument"),
    }
}

pub(super) fn pin(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    match arguments.is_empty() {
        true => context.usage("/pin needs a text"),
        false => SlashOutcome::NeedsSession,
    }
}

/// Saves a memory at once. The session learns of it with its next request.
pub(super) fn remember(context: &SlashContext<'_>, text: &str) -> SlashOutcome {
    let named = text.split_once(':').and_then(|(name, rest)| Some((name.parse::<MemoryKind>().ok()?, rest)));
    let (kind, text) = named.map_or((MemoryKind::Project, text), |(kind, rest)| (kind, rest.trim()));
    // The command line reads standard input for a dash.
    if text.is_empty() || text == "-" {
        return SlashOutcome::Failed(String::from(
            "nothing to remember; examples: `# We release on Fridays.`, `# feedback: Keep commits small.`",
        ));
    }
    let notices = Notices::collected();
    match commands::remember(kind, text, context.settings, &notices) {
        Ok(saved) => {
            if let Ok(live) = context.live() {
                live.handle.remember(saved.path);
            }
            let line = format!(
                "remembered as {} (change {}; `pal memory undo` reverts it)",
                sanitize(&saved.slug),
                saved.point
            );
            SlashOutcome::Print(with_notices(notices, &line))
        }
        Err(failure) => SlashOutcome::Failed(failure.message()),
    }
}

pub(super) fn tasks(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    let live = context.live().ok();
    let dream = live.as_ref().and_then(|live| (live.dream)());
    match (arguments, dream) {
        ("", _) => {
            let tasks = live.map_or(Vec::new(), |live| live.background_tasks());
            let none = || vec![String::from("no background tasks are running")];
            SlashOutcome::Notes(if tasks.is_empty() { none() } else { tasks })
        }
        ("dream", Some(dream)) => SlashOutcome::Print(sanitize_lines(&dream.page())),
        ("dream stop", Some(dream)) if dream.state().is_running() => {
            dream.kill();
            SlashOutcome::Print(String::from("The dream is stopped and its changes are reverted."))
        }
        ("dream" | "dream stop", _) => {
            SlashOutcome::Failed(String::from("no dream is running in this session"))
        }
        _ => context.usage("unexpected argument"),
    }
}

pub(super) fn agents(context: &SlashContext<'_>, _arguments: &str) -> SlashOutcome {
    let live = match context.live() {
        Ok(live) => live,
        Err(outcome) => return outcome,
    };
    match context.print(|_, out| commands::agents(&AgentsArgs { json: false }, context.settings, out)) {
        SlashOutcome::Print(sessions) => {
            SlashOutcome::Print(pages::agents(context.color(), &live, &sessions))
        }
        other => other,
    }
}

pub(super) fn mcp(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    let live = match context.live() {
        Ok(live) => live,
        Err(outcome) => return outcome,
    };
    match arguments.split_once(char::is_whitespace).unwrap_or((arguments, "")) {
        ("", _) => SlashOutcome::Print(pages::servers(context.color(), &live.servers)),
        ("restart", name) => match live.servers.restart(name.trim()) {
            Ok(()) => SlashOutcome::Print(format!("{} is restarting", sanitize(name.trim()))),
            Err(why) => SlashOutcome::Failed(why),
        },
        _ => context.usage("unexpected argument"),
    }
}

pub(super) fn permissions(context: &SlashContext<'_>, _arguments: &str) -> SlashOutcome {
    let permissions = &context.settings.permissions;
    let mode = if permissions.mode.is_empty() { "default" } else { &permissions.mode };
    let mut text = format!("initial mode: {mode}\n");
    for (name, rules) in
        [("allow", &permissions.allow), ("ask", &permissions.ask), ("deny", &permissions.deny)]
    {
        for rule in rules {
            text.push_str(&format!("{name:<6} {}  ({})\n", sanitize(&rule.value), rule.origin));
        }
    }
    SlashOutcome::Print(text)
}

pub(super) fn resume(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    if arguments.is_empty() {
        let choices = session_choices::list(context.settings, context.log);
        if choices.as_ref().is_ok_and(Vec::is_empty) {
            return SlashOutcome::Notes(vec![String::from(
                "this project has no other session; `pal sessions --all` lists those of other directories",
            )]);
        }
        return pick("Continue", choices);
    }
    match session_choices::directory_choices(context.settings, arguments) {
        Some((title, choices)) => SlashOutcome::Pick { title, choices, preface: String::new() },
        None => SlashOutcome::NeedsSession,
    }
}

pub(super) fn rewind(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    match arguments {
        "" => pick("Go back to before", prompts(context)),
        id => rewind_choices(context, id).unwrap_or(SlashOutcome::NeedsSession),
    }
}

/// Diff and choices of a rewind that could restore files; `None` if there is nothing to choose.
fn rewind_choices(context: &SlashContext<'_>, id: &str) -> Option<SlashOutcome> {
    let log = context.log?;
    let session = LoadedSession::read_log(log).ok()?;
    let prompt = session.branch.iter().find(|entry| entry.id.to_string() == id)?;
    let plan = checkpoints(log).plan(prompt.at);
    let (restorable, kept) = plan.iter().partition::<Vec<_>, _>(|file| file.obstacle.is_none());
    if plan.is_empty() {
        return None;
    }
    let preface = pages::restorations(context.color(), &plan);
    let choice = |label: String, detail: &str, option: &str| PickerChoice {
        label,
        detail: detail.to_owned(),
        command: (String::from("rewind"), format!("{id} {option}").trim_end().to_owned()),
    };
    let files = count_noun(restorable.len(), "file");
    let left = match kept.len() {
        0 => String::new(),
        count => format!("{} stay as they are; see above", count_noun(count, "file")),
    };
    // The bare id would open this list again.
    let mut choices = vec![choice(format!("the conversation and {files}"), &left, "--both")];
    choices.push(choice(String::from("the conversation only"), "", "--conversation"));
    choices.push(choice(format!("{files} only"), &left, "--files"));
    if restorable.is_empty() {
        choices.retain(|choice| choice.command.1.ends_with("--conversation"));
    }
    Some(SlashOutcome::Pick { title: String::from("Take back"), choices, preface })
}

/// Checkpoints of a session; they are only read.
fn checkpoints(log: &std::path::Path) -> FileCheckpoints {
    FileCheckpoints::of_session(log.parent().unwrap_or(log), || Timestamp::from_milliseconds(0))
}

pub(super) fn output_style(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    if !arguments.is_empty() {
        return SlashOutcome::NeedsSession;
    }
    let choice = |name: String| PickerChoice {
        label: name.clone(),
        detail: String::new(),
        command: (String::from("output-style"), name),
    };
    let directory = std::env::current_dir().unwrap_or_default();
    let mut names = known_output_styles(&directory, context.settings);
    names.insert(0, String::from("default"));
    pick("Output style", Ok(names.into_iter().map(choice).collect()))
}

pub(super) fn theme(_context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    let Some(theme) = Theme::named(arguments) else {
        let choice = |name: &str| PickerChoice {
            label: name.to_owned(),
            detail: String::new(),
            command: (String::from("theme"), name.to_owned()),
        };
        return match arguments {
            "" => pick("Theme", Ok(Theme::names().map(choice).collect())),
            _ => {
                let names: Vec<&str> = Theme::names().collect();
                SlashOutcome::Failed(format!("there is no theme of this name; themes: {}", names.join(", ")))
            }
        };
    };
    restyle("theme", arguments, (Some(theme), None))
}

pub(super) fn vim(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    let is_on = match arguments {
        "on" => true,
        "off" => false,
        "" => match from_environment(TypedSettings::default()) {
            Ok(settings) => !settings.terminal.has_vi_keys,
            Err(failure) => return SlashOutcome::Failed(failure.message()),
        },
        _ => return context.usage("it is on or off"),
    };
    restyle("editor_mode", if is_on { "vim" } else { "normal" }, (None, Some(is_on)))
}

/// Stores a setting of the terminal for the user, as `pal config set` does, and applies it.
fn restyle(key: &str, value: &str, (theme, has_vi_keys): (Option<Theme>, Option<bool>)) -> SlashOutcome {
    let mut out = Vec::new();
    match set_setting(key, value, ConfigScopeArg::User, &mut out) {
        Ok(()) => {
            SlashOutcome::Restyle { theme, has_vi_keys, text: String::from_utf8_lossy(&out).into_owned() }
        }
        Err(failure) => SlashOutcome::Failed(failure.message()),
    }
}

pub(super) fn model(context: &SlashContext<'_>, arguments: &str) -> SlashOutcome {
    if !arguments.is_empty() {
        return SlashOutcome::NeedsSession;
    }
    let choice = |name: &str| PickerChoice {
        label: name.to_owned(),
        detail: String::new(),
        command: (String::from("model"), name.to_owned()),
    };
    pick("Model", Ok(context.settings.cards.names().map(choice).collect()))
}

fn pick(title: &str, choices: Result<Vec<PickerChoice>, Failure>) -> SlashOutcome {
    match choices {
        Ok(choices) => SlashOutcome::Pick { title: title.to_owned(), choices, preface: String::new() },
        Err(failure) => SlashOutcome::Failed(failure.message()),
    }
}

/// The prompts of the open session, newest first.
fn prompts(context: &SlashContext<'_>) -> Result<Vec<PickerChoice>, Failure> {
    let Some(log) = context.log else { return Ok(Vec::new()) };
    let session = LoadedSession::read_log(log).map_err(|error| Failure::new(error.to_string()))?;
    let changes = checkpoints(log).changed_files();
    let prompts = session.branch.iter().rev().filter_map(|entry| match &entry.body {
        EntryBody::User(user) if user.origin == MessageOrigin::Person => {
            let words = user.content.blocks().iter().filter_map(|block| block.string("text"));
            Some(PickerChoice {
                label: clip_line(&words.collect::<Vec<_>>().join(" "), PROMPT_COLUMNS),
                detail: changed_since(entry.at, &changes),
                command: (String::from("rewind"), entry.id.to_string()),
            })
        }
        _ => None,
    });
    Ok(prompts.collect())
}

/// Files that tools changed since a prompt, in a few words.
fn changed_since(since: Timestamp, changes: &[(Timestamp, PathBuf)]) -> String {
    let changed = changes.iter().filter(|(at, _)| at.milliseconds() >= since.milliseconds());
    let names: BTreeSet<&std::path::Path> = changed.map(|(_, path)| path.as_path()).collect();
    if names.is_empty() {
        return String::from("no files changed since");
    }
    let shown: Vec<String> = names
        .iter()
        .take(NAMED_FILES_MAX)
        .filter_map(|path| Some(sanitize(&path.file_name()?.to_string_lossy())))
        .collect();
    let more = if names.len() > NAMED_FILES_MAX { ", …" } else { "" };
    format!("{} changed since: {}{more}", count_noun(names.len(), "file"), shown.join(", "))
}
