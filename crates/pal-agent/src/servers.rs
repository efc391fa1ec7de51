//! MCP servers of a session: their tools as tools of ours, and what is told of them.
//!
//! No request lists what servers offer. The ways to their tools (`ToolSearch`, `CallTool`) stand in the prefix from the
//! beginning, and announcements behind what was sent say what came and went: so nothing that a server does costs the cache.

mod tools;

use std::sync::Arc;
use std::time::Duration;

use pal_engine::Session;
use pal_mcp::{Servers, State};
use pal_model::{Text, fields, member, member_string};
use pal_process::Cancel;
use pal_prompt::{CALL_TOOL, Catalogue, McpInstructions, ToolOrigin, ToolSpec};
use pal_settings::Switch;
use pal_tools::{Shell, Tool};
use smol_str::SmolStr;

use crate::agents::{AgentTool, SendMessage, Team};
use crate::desk::Desk;
use crate::event::Event;
use crate::options::Options;

/// How long after the start a search for tools waits for servers that still come up.
const AWAITED: Duration = Duration::from_secs(10);

/// The servers, and what was last seen of them.
pub(crate) struct Served {
    pub(crate) servers: Arc<Servers>,
    /// The tools that were last seen, so that nothing is done where nothing changed.
    seen: Vec<ToolSpec>,
    /// Whether the user was told that this session cannot use them yet.
    is_excused: bool,
    /// Whether they are those of the agent that sent this one, who stops them.
    is_shared: bool,
}

/// The servers that the session has, by name.
pub(crate) fn names(options: &Options) -> Vec<SmolStr> {
    if options.switches.is_off(Switch::Mcp) {
        return Vec::new();
    }
    let mut names: Vec<SmolStr> =
        options.serving.servers.iter().map(|server| SmolStr::new(&server.name)).collect();
    names.sort();
    names.dedup();
    names
}

impl Served {
    /// Begins to start the servers.
    pub(crate) fn start(options: &Options) -> Served {
        let serving = &options.serving;
        let is_off = options.switches.is_off(Switch::Mcp);
        let configs = if is_off { Vec::new() } else { serving.servers.clone() };
        let can = &options.lens.card.can;
        let settings = pal_mcp::Settings {
            directory: options.sources.search.directory.clone(),
            variables: pal_tools::open_variables(&options.secret_variables),
            allows_plain_http: serving.allows_plain_http,
            start_limit: serving.start_limit,
            call_limit: serving.call_limit,
            images: can.images,
            documents: can.documents,
            version: options.version.clone(),
        };
        let shared = options.shared_servers.clone();
        let is_shared = shared.is_some();
        Served {
            servers: shared.unwrap_or_else(|| Arc::new(Servers::start(configs, settings))),
            seen: Vec::new(),
            is_excused: false,
            is_shared,
        }
    }

    /// Stops them, if nobody else uses them.
    pub(crate) fn stop(&self) {
        if !self.is_shared {
            self.servers.stop();
        }
    }

    /// All tools that can be carried out: our own, and those of servers that the catalogue names.
    pub(crate) fn all_tools(
        &self,
        shell: &Arc<Shell>,
        team: &Arc<Team>,
        catalogue: &Catalogue,
    ) -> Vec<Box<dyn Tool>> {
        let mut all = pal_tools::tools();
        all.extend(pal_tools::shell_tools(shell));
        all.push(Box::new(AgentTool(Arc::clone(team))));
        all.push(Box::new(SendMessage(Arc::clone(team))));
        all.extend(tools::of_servers(&self.servers, catalogue));
        all
    }

    /// Waits for a server that still comes up, if it is early enough for that; whether one more is there or will never be.
    pub(crate) fn await_one(&self, cancel: &Cancel) -> bool {
        self.servers.await_one(AWAITED, cancel)
    }

    /// What is said of servers that offer nothing now.
    pub(crate) fn missing(&self) -> Option<String> {
        let told = self.servers.states().into_iter().filter_map(|(name, state)| match state {
            State::Starting => Some(format!("{name} is still coming up")),
            State::Failed(why) => Some(format!("{name} did not come up ({})", first_line(&why))),
            State::Gone(why) => Some(format!("{name} is gone ({})", first_line(&why))),
            State::Ready { .. } => None,
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| format!("Of the MCP servers, {}.", told.join("; ")))
    }

    /// What servers offer now, as the catalogue takes it in.
    fn specs(&self) -> Vec<ToolSpec> {
        let offered = self.servers.tools().into_iter().map(|tool| ToolSpec {
            name: SmolStr::new(&tool.name),
            description: tool.description,
            schema: tool.schema,
            origin: ToolOrigin::Mcp { server: SmolStr::new(&tool.server) },
            is_deferred: true,
        });
        let mut specs: Vec<ToolSpec> = offered.collect();
        if !self.servers.resources().is_empty() {
            specs.extend(tools::resource_specs());
        }
        specs
    }
}

impl Desk<'_> {
    /// Takes in what servers offer now, where the requests of this session lead to it.
    pub(crate) fn look_at_servers(&mut self, session: &Session) {
        self.tell_servers();
        let specs = self.served.specs();
        let has_way = session.view().prefix().is_some_and(|prefix| lists_way(&prefix.tools));
        if !has_way {
            self.excuse(&specs);
            return;
        }
        let said = self.served.servers.instructions();
        self.around.servers =
            said.into_iter().map(|(server, text)| McpInstructions { server, text }).collect();
        if specs == self.served.seen {
            return;
        }
        self.catalogue.set_late(&specs);
        self.tools = Arc::new(self.served.all_tools(&self.shell, &self.team, &self.catalogue));
        self.served.seen = specs;
    }

    /// Tells the user what became of servers.
    pub(crate) fn tell_servers(&mut self) {
        for notice in self.served.servers.take_changes() {
            (self.sink)(Event::Notice(notice));
        }
    }

    /// A session that began without servers lists no way to them, and its list must not change.
    fn excuse(&mut self, specs: &[ToolSpec]) {
        if !specs.is_empty() && !self.served.is_excused {
            self.served.is_excused = true;
            let text = "this session began without MCP servers; their tools join it with its next compaction, or are there at once \
                        in a new session";
            (self.sink)(Event::Notice(text.to_owned()));
        }
    }

    /// The call that is meant by one of the dispatcher.
    pub(crate) fn dispatched(&self, input: &Text) -> Result<(SmolStr, Text), String> {
        let Ok(fields) = fields(input) else { return Err(String::from("The input is no JSON object.")) };
        let name = member_string(&fields, "name").unwrap_or_default();
        let is_meant = self.catalogue.named(&name).is_some_and(|tool| tool.spec.is_deferred);
        if !is_meant {
            return Err(format!(
                "CallTool calls tools that ToolSearch found, and `{name}` is none of them. Tools of your own list are called \
                 directly."
            ));
        }
        let meant = member(&fields, "input").unwrap_or("{}");
        if !meant.trim_start().starts_with('{') {
            return Err(String::from("`input` has to be an object that fits the tool's schema."));
        }
        Ok((SmolStr::new(name), Text::from(meant)))
    }
}

/// Whether a list of tools has the dispatcher.
fn lists_way(tools: &Text) -> bool {
    tools.contains(&format!("\"name\":\"{CALL_TOOL}\""))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
