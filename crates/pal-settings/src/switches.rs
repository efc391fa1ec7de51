//! Kill switches: every subsystem can be switched off, by settings, by a variable, and while a session runs by a file.
//!
//! The file is looked at when somebody asks, at most once a second, and read when it changed: there is no thread and no
//! watch. What touches the prefix of requests is decided when a session starts, because a change would cost the cache.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use pal_model::meant;
use serde::Deserialize;

use crate::file::text_of;
use crate::place::{Place, Resolved};

/// How often the file is looked at, at most.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(1);
/// A file that was written so shortly before it was read may be written again without a new time.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

macro_rules! switches {
    ($($(#[$doc:meta])* $switch:ident = $name:literal,)*) => {
        /// A subsystem that can be switched off.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Switch {
            $($(#[$doc])* $switch,)*
        }

        impl Switch {
            /// All of them.
            pub const ALL: &[Switch] = &[$(Switch::$switch,)*];

            /// Its name in settings and in the flags file.
            pub fn name(self) -> &'static str {
                match self {
                    $(Switch::$switch => $name,)*
                }
            }
        }
    };
}

switches! {
    /// Large tool results and pastes go to disk.
    Spill = "spill",
    /// Verbose results are shortened before they are first sent.
    Condense = "condense",
    /// Redundant stretches are hidden.
    Snip = "snip",
    /// Old results are cleared.
    Microcompact = "microcompact",
    /// Old stretches are folded.
    Fold = "fold",
    /// Sessions are compacted by themselves.
    AutoCompact = "auto_compact",
    /// Sessions are compacted at all, by hand, too.
    Compact = "compact",
    /// What was read last is put back after a compaction.
    Restoration = "restoration",
    /// Hooks run.
    Hooks = "hooks",
    /// Pages are fetched.
    WebFetch = "web_fetch",
    /// Commands run in the background.
    Background = "background",
    /// Agents are sent.
    Agents = "agents",
    /// The small model says what agents do.
    Progress = "progress",
    /// MCP servers are started.
    Mcp = "mcp",
    /// Skills are offered.
    Skills = "skills",
    /// The model is told of tools, agents, skills and servers that came or went.
    Announcements = "announcements",
    /// The model is reminded of what it has on its list.
    Reminders = "reminders",
    /// Reads from the provider's cache that fell are explained.
    BreakDetector = "break_detector",
    /// Requests are marked for the provider's cache.
    CacheMarks = "cache_marks",
    /// Memory is read and written.
    Memory = "memory",
    /// Memories that fit are handed over as a session goes on.
    Prefetch = "prefetch",
    /// Notes of the session are kept.
    Notes = "notes",
    /// Memory is put in order in the background.
    Dreaming = "dreaming",
    /// Sessions get titles.
    Titles = "titles",
    /// Figures are exported.
    Telemetry = "telemetry",
}

impl Switch {
    /// How the names of the variables begin.
    pub(crate) const PREFIX: &'static str = "PAL_DISABLE_";

    /// The switch of this name.
    pub fn find(name: &str) -> Option<Switch> {
        Switch::ALL.iter().copied().find(|switch| switch.name() == name)
    }

    /// The variable that switches it off.
    pub fn variable(self) -> String {
        format!("{}{}", Switch::PREFIX, self.name().to_ascii_uppercase())
    }

    /// Whether it changes what stands at the beginning of requests, so that a session decides it once.
    pub fn touches_prefix(self) -> bool {
        matches!(
            self,
            Switch::WebFetch
                | Switch::Background
                | Switch::Agents
                | Switch::Mcp
                | Switch::Skills
                | Switch::Announcements
                | Switch::CacheMarks
                | Switch::Memory
        )
    }
}

/// Which subsystems are switched off. Clones look at the same file.
#[derive(Clone, Debug)]
pub struct Switches {
    /// Switched off by settings and variables, and by which.
    fixed: Arc<BTreeMap<Switch, String>>,
    /// What a session decided when it started.
    frozen: Option<Arc<BTreeMap<Switch, String>>>,
    watched: Arc<Watched>,
}

/// The flags file.
#[derive(Debug)]
struct Watched {
    path: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    looked: Option<Instant>,
    stamp: Option<Stamp>,
    off: Off,
    /// What is wrong with the file as it is, which is told once.
    wrong: Option<String>,
    notices: Vec<String>,
}

/// Switches that are off, one bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Off(u64);

impl Off {
    fn with(self, switch: Switch) -> Off {
        Off(self.0 | 1 << switch as u64)
    }

    fn contains(self, switch: Switch) -> bool {
        self.with(switch).0 == self.0
    }
}

/// What tells that a file changed.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    /// Whether another write would show.
    is_settled: bool,
}

/// `flags.toml`, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    disabled: Vec<String>,
}

impl Switches {
    /// What settings switch off, and the flags file in a home.
    pub(crate) fn new(disabled: Vec<Resolved<String>>, home: Option<&Path>) -> Switches {
        let mut fixed = BTreeMap::new();
        for item in disabled {
            let Some(switch) = Switch::find(&item.value) else { continue };
            let why = match item.origin.place {
                Place::Environment => item.origin.to_string(),
                _ => format!("`disabled` in {}", item.origin),
            };
            fixed.entry(switch).or_insert(why);
        }
        let path = home.map(|home| home.join("flags.toml"));
        let watched = Watched { path, state: Mutex::default() };
        Switches { fixed: Arc::new(fixed), frozen: None, watched: Arc::new(watched) }
    }

    /// Nothing is switched off, and no file is looked at.
    pub fn none() -> Switches {
        Switches::new(Vec::new(), None)
    }

    /// The same for one session: what touches the prefix of its requests stays as it is now.
    pub fn for_session(&self) -> Switches {
        let touching = Switch::ALL.iter().copied().filter(|switch| switch.touches_prefix());
        let frozen = touching.filter(|&switch| self.is_off(switch)).map(|switch| (switch, self.why(switch)));
        Switches { frozen: Some(Arc::new(frozen.collect())), ..self.clone() }
    }

    /// Whether a subsystem is switched off.
    pub fn is_off(&self, switch: Switch) -> bool {
        self.is_off_at(switch, Instant::now())
    }

    /// The same at a given time.
    pub fn is_off_at(&self, switch: Switch, now: Instant) -> bool {
        if self.fixed.contains_key(&switch) {
            return true;
        }
        match &self.frozen {
            Some(frozen) if switch.touches_prefix() => frozen.contains_key(&switch),
            _ => self.watched.off(now).contains(switch),
        }
    }

    /// What switched it off: a variable, a setting with its file, or the flags file.
    pub fn why(&self, switch: Switch) -> String {
        let frozen = self.frozen.as_ref().and_then(|frozen| frozen.get(&switch));
        let flags = || self.watched.path.as_ref().map_or(String::new(), |path| path.display().to_string());
        self.fixed.get(&switch).or(frozen).cloned().unwrap_or_else(|| format!("`disabled` in {}", flags()))
    }

    /// What was wrong with the flags file since this was last asked; what held before goes on to hold.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.watched.state().notices)
    }
}

impl Watched {
    fn off(&self, now: Instant) -> Off {
        let mut state = self.state();
        let is_due = state.looked.is_none_or(|looked| now.duration_since(looked) >= LOOKED_AT_EVERY);
        if let Some(path) = self.path.as_deref().filter(|_| is_due) {
            state.looked = Some(now);
            state.look(path);
        }
        state.off
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one assignment: there is nothing half done behind a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Reads the file if it changed since.
    fn look(&mut self, path: &Path) {
        let stamp = std::fs::metadata(path).ok().map(|file| Stamp::of(&file));
        if stamp == self.stamp && stamp.is_none_or(|stamp| stamp.is_settled) {
            return;
        }
        self.stamp = stamp;
        match stamp.map_or(Ok(Off::default()), |_| read(path)) {
            Ok(off) => (self.off, self.wrong) = (off, None),
            Err(wrong) if self.wrong.as_ref() == Some(&wrong) => {}
            Err(wrong) => {
                let held = "what it said before holds until it is corrected";
                self.notices.push(format!("{}: {wrong}; {held}", path.display()));
                self.wrong = Some(wrong);
            }
        }
    }
}

impl Stamp {
    fn of(file: &std::fs::Metadata) -> Stamp {
        let modified = file.modified().ok();
        let age = modified.and_then(|modified| SystemTime::now().duration_since(modified).ok());
        Stamp { modified, bytes: file.len(), is_settled: age.is_some_and(|age| age >= SETTLED_AFTER) }
    }
}

fn read(path: &Path) -> Result<Off, String> {
    let text = text_of(path).map_err(|error| error.to_string())?;
    let file: File = toml::from_str(&text).map_err(|error| error.message().to_owned())?;
    let names: Vec<&str> = Switch::ALL.iter().map(|switch| switch.name()).collect();
    file.disabled.iter().try_fold(Off::default(), |off, name| match Switch::find(name) {
        Some(switch) => Ok(off.with(switch)),
        None => Err(format!("there is no subsystem `{name}`{}", meant(name, &names))),
    })
}
