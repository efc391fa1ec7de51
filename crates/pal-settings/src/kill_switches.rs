//! Kill switches: every subsystem can be switched off, by settings, by a variable, and while a session runs by a file.
//!
//! The file is checked on demand, at most once a second, and read when it has changed: there is no thread and no
//! watch. What touches the prefix of requests is decided when a session starts, because a change would cost the cache.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use pal_model::did_you_mean;
use serde::Deserialize;

use crate::sources::{ResolvedSetting, SettingsSource};
use crate::text_file::text_of;

/// Minimum interval between checks of the file.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// A file that was written so shortly before it was read may be written again without a new time.
const SETTLE_TIME: Duration = Duration::from_secs(2);

macro_rules! switches {
    ($($(#[$doc:meta])* $switch:ident = $name:literal,)*) => {
        /// A subsystem that can be switched off.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum KillSwitch {
            $($(#[$doc])* $switch,)*
        }

        impl KillSwitch {
            /// All of them.
            pub const ALL: &[KillSwitch] = &[$(KillSwitch::$switch,)*];

            /// Its name in settings and in the flags file.
            pub fn name(self) -> &'static str {
                match self {
                    $(KillSwitch::$switch => $name,)*
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
    /// Files are restored after a compaction.
    Restoration = "restoration",
    /// Hooks run.
    Hooks = "hooks",
    /// Pages are fetched.
    WebFetch = "web_fetch",
    /// The provider searches the web.
    WebSearch = "web_search",
    /// Commands run in the background.
    Background = "background",
    /// Agents are sent.
    Agents = "agents",
    /// Progress lines of agents by the small model.
    Progress = "progress",
    /// MCP servers are started.
    Mcp = "mcp",
    /// Skills are offered.
    Skills = "skills",
    /// Announcements of tools, agents, skills and servers that were added or removed.
    Announcements = "announcements",
    /// Reminders of the todo list.
    Reminders = "reminders",
    /// Causes of cache-read drops.
    BreakDetector = "break_detector",
    /// Requests are marked for the provider's cache.
    CacheBreakpoints = "cache_breakpoints",
    /// Memory is read and written.
    Memory = "memory",
    /// Memories that fit are handed over as a session goes on.
    Prefetch = "prefetch",
    /// Notes of the session are kept.
    Notes = "notes",
    /// Memory is put in order in the background.
    Dreaming = "dreaming",
    /// Pauses are counted, and those of earlier sessions expected.
    PauseHistory = "pause_history",
    /// Sessions get titles.
    Titles = "titles",
    /// Figures are exported.
    Telemetry = "telemetry",
}

/// Names of the last release, which still work and bring a warning.
const FORMER_NAMES: [(&str, KillSwitch); 1] = [("cache_marks", KillSwitch::CacheBreakpoints)];

impl KillSwitch {
    /// Prefix of the variables' names.
    pub(crate) const PREFIX: &'static str = "PAL_DISABLE_";

    /// The switch with this name, or with this name in the last release.
    pub fn find(name: &str) -> Option<KillSwitch> {
        let former = || FORMER_NAMES.iter().find(|(former, _)| *former == name).map(|(_, switch)| *switch);
        KillSwitch::ALL.iter().copied().find(|switch| switch.name() == name).or_else(former)
    }

    /// The variable that switches it off.
    pub fn variable(self) -> String {
        format!("{}{}", KillSwitch::PREFIX, self.name().to_ascii_uppercase())
    }

    /// True if it changes the start of requests, so that it is fixed when a session starts.
    pub fn touches_prefix(self) -> bool {
        matches!(
            self,
            KillSwitch::WebFetch
                | KillSwitch::WebSearch
                | KillSwitch::Background
                | KillSwitch::Agents
                | KillSwitch::Mcp
                | KillSwitch::Skills
                | KillSwitch::Announcements
                | KillSwitch::CacheBreakpoints
                | KillSwitch::Memory
        )
    }
}

/// Which subsystems are switched off. Clones look at the same file.
#[derive(Clone, Debug)]
pub struct KillSwitches {
    /// Switched off by settings and variables, and by which.
    fixed: Arc<BTreeMap<KillSwitch, String>>,
    /// Switches fixed when the session started.
    frozen: Option<Arc<BTreeMap<KillSwitch, String>>>,
    watched: Arc<FlagsFile>,
}

/// The flags file.
#[derive(Debug)]
struct FlagsFile {
    path: Option<PathBuf>,
    state: Mutex<FlagsState>,
}

#[derive(Debug, Default)]
struct FlagsState {
    looked: Option<Instant>,
    stamp: Option<FileStamp>,
    off: SwitchSet,
    /// Error in the current file, reported once.
    wrong: Option<String>,
    notices: Vec<String>,
}

/// Kill switches that are off, one bit each.
#[derive(Clone, Copy, Debug, Default)]
struct SwitchSet(u64);

impl SwitchSet {
    fn with(self, switch: KillSwitch) -> SwitchSet {
        SwitchSet(self.0 | 1 << switch as u64)
    }

    fn contains(self, switch: KillSwitch) -> bool {
        self.with(switch).0 == self.0
    }
}

/// Time and size of the file, to notice changes.
#[derive(Clone, Copy, PartialEq, Debug)]
struct FileStamp {
    modified: Option<SystemTime>,
    bytes: u64,
    /// True if a later write would change the time.
    is_settled: bool,
}

/// `flags.toml`, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    disabled: Vec<String>,
}

impl KillSwitches {
    /// Switches of the settings, and the flags file of a home directory.
    pub(crate) fn new(disabled: Vec<ResolvedSetting<String>>, home: Option<&Path>) -> KillSwitches {
        let mut fixed = BTreeMap::new();
        for item in disabled {
            let Some(switch) = KillSwitch::find(&item.value) else { continue };
            let why = match item.origin.place {
                SettingsSource::Environment => item.origin.to_string(),
                _ => format!("`disabled` in {}", item.origin),
            };
            fixed.entry(switch).or_insert(why);
        }
        let path = home.map(|home| home.join("flags.toml"));
        let watched = FlagsFile { path, state: Mutex::default() };
        KillSwitches { fixed: Arc::new(fixed), frozen: None, watched: Arc::new(watched) }
    }

    /// No kill switch is set, and no file is watched.
    pub fn none() -> KillSwitches {
        KillSwitches::new(Vec::new(), None)
    }

    /// The same for one session: what touches the prefix of its requests stays as it is now.
    pub fn for_session(&self) -> KillSwitches {
        let touching = KillSwitch::ALL.iter().copied().filter(|switch| switch.touches_prefix());
        let frozen = touching.filter(|&switch| self.is_off(switch)).map(|switch| (switch, self.why(switch)));
        KillSwitches { frozen: Some(Arc::new(frozen.collect())), ..self.clone() }
    }

    /// True if a subsystem is switched off.
    pub fn is_off(&self, switch: KillSwitch) -> bool {
        self.is_off_at(switch, Instant::now())
    }

    /// The same at a given time.
    pub fn is_off_at(&self, switch: KillSwitch, now: Instant) -> bool {
        if self.fixed.contains_key(&switch) {
            return true;
        }
        match &self.frozen {
            Some(frozen) if switch.touches_prefix() => frozen.contains_key(&switch),
            _ => self.watched.off(now).contains(switch),
        }
    }

    /// Variable, setting or flags file that switched it off.
    pub fn why(&self, switch: KillSwitch) -> String {
        let frozen = self.frozen.as_ref().and_then(|frozen| frozen.get(&switch));
        let flags = || self.watched.path.as_ref().map_or(String::new(), |path| path.display().to_string());
        self.fixed.get(&switch).or(frozen).cloned().unwrap_or_else(|| format!("`disabled` in {}", flags()))
    }

    /// Takes the errors in the flags file since the last call; the previous state stays in force meanwhile.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.watched.state().notices)
    }
}

impl FlagsFile {
    fn off(&self, now: Instant) -> SwitchSet {
        let mut state = self.state();
        let is_due = state.looked.is_none_or(|looked| now.duration_since(looked) >= POLL_INTERVAL);
        if let Some(path) = self.path.as_deref().filter(|_| is_due) {
            state.looked = Some(now);
            state.reload_if_changed(path);
        }
        state.off
    }

    fn state(&self) -> MutexGuard<'_, FlagsState> {
        // Every change is one assignment: there is nothing half done behind a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FlagsState {
    /// Reads the file if it changed since.
    fn reload_if_changed(&mut self, path: &Path) {
        let stamp = std::fs::metadata(path).ok().map(|file| FileStamp::of(&file));
        if stamp == self.stamp && stamp.is_none_or(|stamp| stamp.is_settled) {
            return;
        }
        self.stamp = stamp;
        match stamp.map_or(Ok(SwitchSet::default()), |_| read(path)) {
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

impl FileStamp {
    fn of(file: &std::fs::Metadata) -> FileStamp {
        let modified = file.modified().ok();
        let age = modified.and_then(|modified| SystemTime::now().duration_since(modified).ok());
        FileStamp { modified, bytes: file.len(), is_settled: age.is_some_and(|age| age >= SETTLE_TIME) }
    }
}

fn read(path: &Path) -> Result<SwitchSet, String> {
    let text = text_of(path).map_err(|error| error.to_string())?;
    let file: File = toml::from_str(&text).map_err(|error| error.message().to_owned())?;
    let names: Vec<&str> = KillSwitch::ALL.iter().map(|switch| switch.name()).collect();
    file.disabled.iter().try_fold(SwitchSet::default(), |off, name| match KillSwitch::find(name) {
        Some(switch) => Ok(off.with(switch)),
        None => Err(format!("there is no subsystem `{name}`{}", did_you_mean(name, &names))),
    })
}
