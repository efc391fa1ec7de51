//! What an agent is made of.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pal_context::NotesCadence;
use pal_engine::{CacheSettings, Engine};
use pal_memory::Place;
use pal_model::{EntryId, ToolUseId};
use pal_permissions::{Mode, Rules};
use pal_prompt::Prompts;
use pal_session::RunSettings;
use pal_settings::{NotesBy, OutputLimits, Switch, Switches};
use pal_view::{Lens, Limits};
use smol_str::SmolStr;

use crate::clock::Clock;
use crate::gate::Asking;
use crate::line::Line;

/// What an agent is made of.
#[derive(Clone)]
pub struct Options {
    /// Where our files are.
    pub home: PathBuf,
    /// How the session begins.
    pub beginning: Beginning,
    /// The model, and how its tokens are counted.
    pub lens: Lens,
    /// The model's limits.
    pub limits: Limits,
    /// What decides what the model sees.
    pub policy: pal_context::Policy,
    /// What the provider's cache depends on.
    pub cache: CacheSettings,
    /// The line to the provider.
    pub line: Arc<Line>,
    /// Where instruction files are looked for, where the session works, what is asked of git.
    pub sources: pal_sources::Request,
    /// Prompts beside the default.
    pub prompts: Prompts,
    /// How the program names itself to the model.
    pub attribution: String,
    /// The program's version.
    pub version: String,
    /// Says the date, as the model shall read it.
    pub today: fn() -> String,
    /// Limits of a prompt.
    pub run: RunSettings,
    /// Limits on spilled results and outputs of commands on disk.
    pub outputs: OutputLimits,
    /// The permission mode.
    pub mode: Mode,
    /// Whether it was chosen for this run, so that it counts more than what a resumed session was in.
    pub is_mode_chosen: bool,
    /// Permission rules.
    pub rules: Rules,
    /// Who asks a person; none if nobody is there.
    pub asking: Option<Asking>,
    /// Hooks, far to near.
    pub hooks: Vec<pal_hooks::Config>,
    /// Tools that are not offered, by name.
    pub without_tools: Vec<SmolStr>,
    /// Tools that the model finds by searching instead of having them in its list, by name.
    pub deferred_tools: Vec<SmolStr>,
    /// The sandbox of commands; none if a person switched it off.
    pub fence: Option<Fencing>,
    /// MCP servers.
    pub serving: Serving,
    /// Variables that commands do not get to see.
    pub secret_variables: Vec<String>,
    /// Whether pages of this machine and its own network may be fetched.
    pub allows_private_addresses: bool,
    /// What is switched off.
    pub switches: Switches,
    /// The clock.
    pub clock: Clock,
    /// Where the session's own folder is; none for one among the project's sessions.
    pub folder: Option<PathBuf>,
    /// How many agents stand above this one.
    pub depth: usize,
    /// Name and kind, if another agent sent it.
    pub agent: Option<(String, String)>,
    /// The MCP servers of the agent that sent it, which it uses, too.
    pub shared_servers: Option<Arc<pal_mcp::Servers>>,
    /// The agent that sent it, which it can speak to; none if nobody did, or it is in another process.
    pub above: Option<Above>,
    /// Whether it looks around and plans before it changes anything.
    pub begins_planning: bool,
    /// Starts our own program as a teammate ([`crate::work_as_teammate`]); none if there are no teammates.
    pub teammates: Option<Starting>,
    /// The models that can be asked over the same line.
    pub models: Models,
    /// Where memories are kept; none if nothing is remembered.
    pub memory: Option<Place>,
    /// Tools that an agent has for its memories alone, by name.
    pub memory_tools: Vec<SmolStr>,
    /// Most bytes of memories that fit that are handed over until a compaction.
    pub memory_bytes_max: u64,
    /// Who keeps notes of the session, and when; none for nobody.
    pub notes: Option<(NotesBy, NotesCadence)>,
    /// How many tokens all background work of a day may take, that of other processes included.
    pub background_tokens_daily: u64,
    /// Whether memories are drawn from the conversation when it comes to rest; none for never.
    pub learning: Option<Learning>,
    /// When memories are put in order in the background; none for never.
    pub dreaming: Option<crate::background::GateSettings>,
    /// How often somebody who watches agents is told what they do (§8.6); none for never.
    pub progress_every: Option<Duration>,
}

/// When memories are drawn from a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Learning {
    /// So many tokens have to be new since the last time; 0 for whenever somebody said something.
    pub tokens_least: u64,
}

/// The command that starts our own program as a teammate.
pub type Starting = Arc<dyn Fn() -> std::process::Command + Send + Sync>;

/// What holds for a model, by its name; none if it cannot be asked over the same line. No name means the smallest one.
pub type Models = Arc<dyn Fn(Option<&str>) -> Option<Known> + Send + Sync>;

/// A model that can be asked.
#[derive(Clone, Debug)]
pub struct Known {
    /// The model, and how its tokens are counted.
    pub lens: Lens,
    /// Its limits.
    pub limits: Limits,
    /// What the provider's cache depends on.
    pub cache: CacheSettings,
    /// Limits of a prompt.
    pub run: RunSettings,
}

/// The agent above another one of the same process.
#[derive(Clone)]
pub struct Above(pub(crate) Arc<crate::agents::Team>);

/// The sandbox of commands.
#[derive(Clone, Debug)]
pub struct Fencing {
    /// What this machine can do.
    pub probe: pal_sandbox::SandboxProbe,
    /// Whether commands run in it that a rule or a person allowed, too.
    pub is_for_all: bool,
    /// Whether commands in it that may change the project reach the network.
    pub network: bool,
    /// Folders that they may write to besides the workspace and temporary files.
    pub writable: Vec<PathBuf>,
    /// Our own program, which closes the sandbox from inside.
    pub program: PathBuf,
}

/// MCP servers, and what holds for them.
#[derive(Clone, Debug)]
pub struct Serving {
    /// The servers.
    pub servers: Vec<pal_mcp::ServerConfig>,
    /// How long one may take to come up.
    pub start_limit: Duration,
    /// How long a call may take.
    pub call_limit: Duration,
    /// Whether other machines may be spoken to in the clear.
    pub allows_plain_http: bool,
}

/// How a session begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Beginning {
    /// Anew, under this id if there is one.
    New(Option<EntryId>),
    /// Where it was left: its log.
    Resumed(PathBuf),
    /// As a copy of another one, which stays as it is: that one's log, and the id of the copy if it is to be a certain one.
    Forked(PathBuf, Option<EntryId>),
    /// As a copy of another one up to the answer that made a call: what an agent that is sent as a fork begins with.
    Branched {
        /// That one's log.
        of: PathBuf,
        /// The call.
        call: ToolUseId,
    },
}

impl Options {
    /// Whether a person talks with it: agents that were sent report to whoever sent them.
    pub(crate) fn is_attended(&self) -> bool {
        self.asking.is_some() && self.agent.is_none()
    }

    /// What the engine runs by, for a session whose log is here.
    pub(crate) fn engine(&self, log: &std::path::Path) -> Engine {
        let directory = log.parent().unwrap_or(std::path::Path::new("/"));
        Engine {
            policy: self.policy.clone(),
            limits: self.limits,
            place: pal_context::Place {
                directory: directory.display().to_string(),
                transcript: log.display().to_string(),
            },
            is_attended: self.is_attended(),
            ways: self.switches.is_off(Switch::Compact).then(Vec::new),
            max_tokens: self.run.output_tokens,
            cache: self.cache.clone(),
            inputs: pal_engine::Inputs::default(),
        }
    }
}
