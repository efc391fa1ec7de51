//! Commands that begin with a slash: the program's own, which are those of the command line wherever there are such, and the
//! user's.

use std::path::{Path, PathBuf};

use clap::Parser;
use pal_memory::Kind;
use pal_model::{Body, Origin};
use pal_tui::{Choice, CommandInfo, Commands, Outcome};
use serde::Deserialize;

use super::running::Running;
use super::{listing, prompts, sessions};
use crate::arguments::{Arguments, Command};
use crate::aside;
use crate::colour::clipped;
use crate::commands;
use crate::failure::Failure;
use crate::own::{self, Own};
use crate::session::Session;
use crate::settings::Settings;
use crate::table::{harmless, harmless_lines};

/// The program's own commands: name, what may stand behind it, what it does.
const BUILT_IN: [(&str, &str, &str); 22] = [
    ("help", "", "what can be typed"),
    ("context", "[all]", "what fills the window, and where the thresholds are"),
    ("cost", "[--requests]", "what the session cost, and what the cache saved"),
    ("breaks", "[--all] [--diff]", "where the provider's cache was lost, and why"),
    ("compact", "[--preview] [what to dwell on]", "put a summary in the place of what was said"),
    ("uncompact", "", "take the last compaction back"),
    ("pin", "TEXT", "a text that every compaction carries word for word"),
    ("pins", "", "what is pinned"),
    ("unpin", "NUMBER", "take a pin away"),
    ("clear", "", "begin a new session; this one is kept"),
    ("resume", "[SESSION]", "go on with another session"),
    ("rewind", "", "go back to before an earlier prompt"),
    ("model", "[MODEL]", "ask another model from now on"),
    ("memory", "[show]", "the instruction files of this session, and what is remembered"),
    ("remember", "TEXT", "keep a memory for later sessions; a line that begins with # and a space does, too"),
    ("tasks", "[dream [stop]]", "what runs in the background"),
    ("agents", "", "agents at work, agents that can be sent, sessions of this machine"),
    ("mcp", "[restart SERVER]", "MCP servers and what they offer"),
    ("permissions", "", "what is allowed, asked about and refused, and by whom"),
    ("config", "[KEY]", "every setting and where it came from"),
    ("export", "FILE", "write the session down as Markdown, HTML or JSON"),
    ("exit", "", "leave"),
];

/// What can be pressed.
const KEYS: [(&str, &str); 13] = [
    ("Enter", "send; while it works, steer it"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    ("Esc", "stop what it does; twice on an empty line, go back to an earlier prompt"),
    ("Ctrl-C", "stop or empty the line; twice, leave"),
    ("Shift-Tab", "the next permission mode"),
    ("Ctrl-O", "the results of the last calls in full"),
    ("Ctrl-Z", "stop the program until fg"),
    ("Up, Down", "earlier prompts"),
    ("# TEXT", "keep a memory for later sessions"),
    ("@, a pasted path", "a file of the project; a picture goes along"),
    ("Ctrl-A, Ctrl-E", "beginning and end of the line"),
    ("Ctrl-K, Ctrl-U, Ctrl-W, Ctrl-Y", "cut to the end, to the beginning, a word; put it back"),
    ("Ctrl-L", "clear what is seen"),
];

/// What is said where a command is about the session and there is none.
const NO_SESSION: &str = "no session is open yet";

/// Answers commands.
pub(super) struct Slash {
    settings: Settings,
    own: Vec<Own>,
    running: Running,
}

impl Slash {
    /// For sessions in a directory.
    pub(super) fn new(settings: Settings, directory: &Path, running: Running) -> Slash {
        let own = own::found(&settings, directory);
        Slash { settings, own, running }
    }

    /// What a command of the command line prints.
    fn printed(&self, words: &[&str]) -> Outcome {
        let parsed = match Arguments::try_parse_from([&["pal"], words].concat()) {
            Ok(parsed) => parsed,
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        let mut out = Vec::new();
        let settings = &self.settings;
        // Whatever they tell beside that would be written across what is drawn.
        let (done, aside) = aside::kept(|| match parsed.command {
            Some(Command::Context(context)) => Some(commands::context(&context, settings, &mut out)),
            Some(Command::Cost(cost)) => Some(commands::cost(&cost, settings, &mut out)),
            Some(Command::Breaks(breaks)) => Some(commands::breaks(&breaks, settings, &mut out)),
            Some(Command::Config(config)) => Some(commands::config(&config, settings, &mut out)),
            Some(Command::Agents(agents)) => Some(commands::agents(&agents, settings, &mut out)),
            Some(Command::Memory(memory)) => Some(commands::memory(&memory, settings, &mut out)),
            Some(Command::Export(export)) => Some(commands::export(&export, settings, &mut out)),
            _ => None,
        });
        match done {
            Some(Ok(_)) => {
                let lines = aside.into_iter().map(|line| format!("{}\n", harmless(&line)));
                Outcome::Print(lines.chain([String::from_utf8_lossy(&out).into_owned()]).collect())
            }
            Some(Err(failure)) => Outcome::Failed(failure.words()),
            None => Outcome::Unknown,
        }
    }

    /// The same of the session at hand.
    fn of_session(&self, name: &str, flag: Option<&str>, arguments: &str, log: Option<&Path>) -> Outcome {
        let Some(log) = log else { return Outcome::Failed(String::from(NO_SESSION)) };
        let log = log.display().to_string();
        let mut words = vec![name];
        words.extend(arguments.split_whitespace());
        words.extend(flag);
        words.push(&log);
        self.printed(&words)
    }

    fn agents(&self) -> Outcome {
        let Some(live) = self.running.get() else { return Outcome::Failed(String::from(NO_SESSION)) };
        match self.printed(&["agents"]) {
            Outcome::Print(sessions) => Outcome::Print(listing::agents(&live, &sessions)),
            other => other,
        }
    }

    /// Keeps a memory at once. The session at hand hears of it with its next request.
    fn remember(&self, text: &str) -> Outcome {
        let named = text.split_once(':').and_then(|(name, rest)| Some((name.parse::<Kind>().ok()?, rest)));
        let (kind, text) = named.map_or((Kind::Project, text), |(kind, rest)| (kind, rest.trim()));
        // A dash would mean that standard input is read, which is not there for that.
        if text.is_empty() || text == "-" {
            return Outcome::Failed(String::from(
                "say what to remember: # we release on Fridays; # feedback: small commits, please",
            ));
        }
        let outcome = self.printed(&["memory", "--json", "add", "--type", kind.name(), "--", text]);
        let Outcome::Print(printed) = outcome else { return outcome };
        // What was told beside it stands before it.
        let (told, object) = printed.trim_end().rsplit_once('\n').unwrap_or(("", printed.trim_end()));
        let Ok(kept) = serde_json::from_str::<Kept>(object) else { return Outcome::Print(printed) };
        if let Some(live) = self.running.get() {
            live.handle.remember(kept.path);
        }
        let told = if told.is_empty() { String::new() } else { format!("{told}\n") };
        Outcome::Print(format!(
            "{told}remembered as {} (change {}; `pal memory undo` takes it back)",
            harmless(&kept.slug),
            kept.point
        ))
    }

    fn mcp(&self, arguments: &str) -> Outcome {
        let Some(live) = self.running.get() else { return Outcome::Failed(String::from(NO_SESSION)) };
        match arguments.split_once(char::is_whitespace).unwrap_or((arguments, "")) {
            ("", _) => Outcome::Print(listing::servers(&live.servers)),
            ("restart", name) => match live.servers.restart(name.trim()) {
                Ok(()) => Outcome::Print(format!("{} is started again", harmless(name.trim()))),
                Err(why) => Outcome::Failed(why),
            },
            _ => {
                Outcome::Failed(String::from("/mcp lists the servers, /mcp restart SERVER starts one again"))
            }
        }
    }

    /// A dream that runs or ran in the background, turn by turn.
    fn dream(&self, arguments: &str) -> Outcome {
        let dream = self.running.get().and_then(|live| (live.dream)());
        match (arguments, dream) {
            ("dream", Some(dream)) => Outcome::Print(harmless_lines(&dream.page())),
            ("dream stop", Some(dream)) if dream.state().is_running() => {
                dream.kill();
                Outcome::Print(String::from("The dream is stopped, and what it changed is taken back."))
            }
            ("dream" | "dream stop", _) => Outcome::Failed(String::from("no dream runs in this session")),
            _ => Outcome::Failed(String::from(
                "/tasks lists what runs, /tasks dream shows a dream, /tasks dream stop ends it",
            )),
        }
    }

    fn help(&self) -> Outcome {
        let command = |command: CommandInfo| {
            (format!("/{} {}", command.name, command.arguments).trim_end().to_owned(), command.about)
        };
        let commands: Vec<(String, String)> = self.list().into_iter().map(command).collect();
        let keys = KEYS.map(|(keys, about)| (keys.to_owned(), about.to_owned()));
        Outcome::Print(listing::help(&commands, &keys))
    }

    /// A prompt of an MCP server, which has to be asked for it.
    fn prompt_of_server(&self, name: &str, arguments: &str) -> Outcome {
        let prompt = self.running.get().and_then(|live| prompts::find(&live.servers, name));
        match prompt.map(|prompt| prompts::arguments(&prompt, arguments)) {
            Some(Ok(_)) => Outcome::Session,
            Some(Err(why)) => Outcome::Failed(format!("/{name}: {why}")),
            None => Outcome::Unknown,
        }
    }

    /// The prompts of a session, the newest first.
    fn rewind(log: Option<&Path>) -> Result<Vec<Choice>, Failure> {
        let Some(log) = log else { return Ok(Vec::new()) };
        let session = Session::read_log(log).map_err(|error| Failure::new(error.to_string()))?;
        let prompts = session.branch.iter().rev().filter_map(|entry| match &entry.body {
            Body::User(user) if user.origin == Origin::Person => {
                let words = user.content.blocks().iter().filter_map(|block| block.string("text"));
                let label = clipped(&words.collect::<Vec<_>>().join(" "), 200);
                Some(Choice {
                    label,
                    detail: String::new(),
                    command: (String::from("rewind"), entry.id.to_string()),
                })
            }
            _ => None,
        });
        Ok(prompts.collect())
    }

    fn models(&self) -> Vec<Choice> {
        let choice = |name: &str| Choice {
            label: name.to_owned(),
            detail: String::new(),
            command: (String::from("model"), name.to_owned()),
        };
        self.settings.cards.names().map(choice).collect()
    }

    fn permissions(&self) -> Outcome {
        let permissions = &self.settings.permissions;
        let mode = if permissions.mode.is_empty() { "default" } else { &permissions.mode };
        let mut text = format!("mode at the beginning: {mode}\n");
        for (name, rules) in
            [("allowed", &permissions.allow), ("asked", &permissions.ask), ("refused", &permissions.deny)]
        {
            for rule in rules {
                text.push_str(&format!("{name:<8} {}  ({})\n", harmless(&rule.value), rule.origin));
            }
        }
        Outcome::Print(text)
    }
}

/// What is printed of a memory that was kept.
#[derive(Deserialize)]
struct Kept {
    slug: String,
    point: u64,
    path: PathBuf,
}

fn own_info(own: &Own) -> CommandInfo {
    CommandInfo { name: own.name.clone(), arguments: own.arguments.clone(), about: own.about.clone() }
}

impl Commands for Slash {
    fn list(&self) -> Vec<CommandInfo> {
        let info = |(name, arguments, about): &(&str, &str, &str)| CommandInfo {
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
            about: (*about).to_owned(),
        };
        let of_servers = self.running.get().map_or(Vec::new(), |live| prompts::list(&live.servers));
        BUILT_IN.iter().map(info).chain(self.own.iter().map(own_info)).chain(of_servers).collect()
    }

    fn run(&mut self, name: &str, arguments: &str, log: Option<&Path>) -> Outcome {
        match name {
            "help" => self.help(),
            "context" if arguments == "all" => self.of_session("context", Some("--session"), "", log),
            "context" => self.of_session("context", Some("--session"), "--brief", log),
            "cost" | "breaks" => self.of_session(name, None, arguments, log),
            "config" => {
                let words: Vec<&str> = ["config"].into_iter().chain(arguments.split_whitespace()).collect();
                self.printed(&words)
            }
            "export" if arguments.is_empty() => Outcome::Failed(String::from("/export wants a file")),
            "export" => self.of_session("export", None, &format!("--output {arguments}"), log),
            "permissions" => self.permissions(),
            "memory" if arguments == "show" => {
                self.of_session("context", Some("--session"), "--show context", log)
            }
            "agents" => self.agents(),
            "mcp" => self.mcp(arguments),
            "remember" => self.remember(arguments),
            "tasks" => self.dream(arguments),
            "pin" if arguments.is_empty() => {
                Outcome::Failed(String::from("/pin wants the text to be pinned"))
            }
            "memory" | "compact" | "uncompact" | "pin" | "pins" | "unpin" | "clear" => Outcome::Session,
            "rewind" | "resume" | "model" if !arguments.is_empty() => Outcome::Session,
            "rewind" => match Slash::rewind(log) {
                Ok(choices) => Outcome::Pick { title: String::from("Go back to before"), choices },
                Err(failure) => Outcome::Failed(failure.words()),
            },
            "resume" => match sessions::choices(&self.settings, log) {
                Ok(choices) => Outcome::Pick { title: String::from("Go on with"), choices },
                Err(failure) => Outcome::Failed(failure.words()),
            },
            "model" => Outcome::Pick { title: String::from("Ask"), choices: self.models() },
            _ => match self.own.iter().find(|own| own.name == name) {
                Some(own) => Outcome::Prompt(own.prompt(arguments)),
                None => self.prompt_of_server(name, arguments),
            },
        }
    }
}
