//! Lists of what there is around a session: agents, MCP servers, instruction files.

use pal_agent::{Agent, AtWork};
use pal_mcp::{Servers, State};
use pal_memory::Listed;
use pal_prompt::Instruction;

use super::running::Live;
use crate::arguments::ColourName;
use crate::colour::{Colours, clipped, columns, wrapped};
use crate::commands::scope_name;
use crate::table::{counted, duration, harmless, money, thousands};

/// What needs no definition to be sent.
const ALWAYS: [(&str, &str); 2] = [
    ("general", "starts with nothing but what it is told"),
    ("fork", "knows this conversation and reads its cache"),
];

/// The widest name that others are lined up with.
const NAME_MOST: usize = 30;

/// Lines that are put together for people.
struct Page {
    text: String,
    colours: Colours,
    columns: usize,
}

impl Page {
    fn new() -> Page {
        let columns = columns().saturating_sub(1);
        Page { text: String::new(), colours: Colours::of(ColourName::Auto), columns }
    }

    fn title(&mut self, title: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text.push_str(&format!("{gap}{}\n", self.colours.bold(title)));
    }

    /// A name and what is said of it, broken below itself; below a name that is too long from the beginning.
    fn row(&mut self, name: &str, wide: usize, about: &str) {
        let mut before = format!("  {}", clipped(&harmless(name), self.columns.saturating_sub(2)));
        if columns_of(&before) > wide + 2 {
            self.text.push_str(&format!("{before}\n"));
            before.clear();
        }
        let room = self.columns.saturating_sub(wide + 4).max(20);
        for line in wrapped(&harmless(about), room) {
            let gap = " ".repeat((wide + 4).saturating_sub(columns_of(&before)));
            self.text.push_str(format!("{before}{gap}{line}").trim_end());
            self.text.push('\n');
            before.clear();
        }
    }

    fn rows(&mut self, rows: &[(String, String)]) {
        let names = rows.iter().map(|(name, _)| columns_of(name));
        let wide = names.filter(|wide| *wide <= NAME_MOST).max().unwrap_or(NAME_MOST);
        rows.iter().for_each(|(name, about)| self.row(name, wide, about));
    }

    fn line(&mut self, line: &str) {
        self.indented("  ", line);
    }

    fn indented(&mut self, indent: &str, line: &str) {
        for line in wrapped(line, self.columns.saturating_sub(indent.len()).max(20)) {
            self.text.push_str(&format!("{indent}{line}\n"));
        }
    }
}

/// What can be typed, and what can be pressed.
pub(super) fn help(commands: &[(String, String)], keys: &[(String, String)]) -> String {
    let mut page = Page::new();
    page.rows(commands);
    page.text.push('\n');
    page.rows(keys);
    page.text
}

fn columns_of(text: &str) -> usize {
    text.chars().count()
}

/// Agents that work, agents that can be sent, and the sessions of this machine, as `pal agents` tells them.
pub(super) fn agents(live: &Live, sessions: &str) -> String {
    let mut page = Page::new();
    page.title("Agents at work");
    let at_work = live.agents.at_work();
    if at_work.is_empty() {
        page.line("none");
    }
    page.rows(&at_work.iter().map(working).collect::<Vec<_>>());
    page.title("Agents that can be sent");
    if live.agents.can_send() {
        let always = ALWAYS.map(|(name, about)| (name.to_owned(), about.to_owned()));
        let known = live.agents.known().iter();
        let known = known.map(|agent| (agent.name.clone(), agent.description.clone()));
        page.rows(&always.into_iter().chain(known).collect::<Vec<_>>());
    } else {
        page.line("none: the tool Agent is switched off");
    }
    page.title("Sessions on this machine");
    sessions.lines().for_each(|line| page.text.push_str(&format!("  {}\n", harmless(line))));
    page.text
}

fn working(agent: &AtWork) -> (String, String) {
    let lasted = duration(u64::try_from(agent.lasted.as_millis()).unwrap_or(u64::MAX));
    let tokens = thousands(agent.tokens);
    let kind = if agent.is_teammate { format!("{}, teammate", agent.kind) } else { agent.kind.clone() };
    let doing = match (agent.rests, agent.doing.as_str()) {
        (true, _) => String::from(", rests"),
        (false, "") => String::new(),
        (false, doing) => format!(", {}", harmless(doing)),
    };
    (agent.name.clone(), format!("{kind}, for {lasted}, {tokens} tokens, {}{doing}", money(agent.cost)))
}

/// How each server is, and what it offers.
pub(super) fn servers(servers: &Servers) -> String {
    let mut page = Page::new();
    if servers.names().is_empty() {
        page.line(
            "There are no MCP servers. `.mcp.json`, `mcp_servers` in settings and --mcp-config name them.",
        );
        return page.text;
    }
    let of = |server: &str, all: Vec<(String, String)>| -> String {
        let names = all.into_iter().filter(|(of, _)| of == server).map(|(_, name)| name);
        names.collect::<Vec<_>>().join(", ")
    };
    for (name, state) in servers.states() {
        page.title(&format!("{}: {}", harmless(&name), told(&state)));
        let tools = servers.tools().into_iter().map(|tool| (tool.server, tool.name));
        let resources = servers.resources().into_iter().map(|resource| (resource.server, resource.name));
        let prompts = servers.prompts();
        let prompts =
            prompts.into_iter().map(|prompt| (prompt.server.clone(), format!("/{}", prompt.command())));
        let offered = [
            ("tools", of(&name, tools.collect())),
            ("resources", of(&name, resources.collect())),
            ("prompts", of(&name, prompts.collect())),
        ];
        for (what, names) in offered.iter().filter(|(_, names)| !names.is_empty()) {
            page.row(what, "resources".len(), names);
        }
        if let State::Failed(why) | State::Gone(why) = &state {
            page.line(&harmless(why));
            page.line(&format!("/mcp restart {name} starts it again"));
        }
    }
    page.text
}

fn told(state: &State) -> String {
    match state {
        State::Starting => String::from("coming up"),
        State::Ready { tools, resources, prompts } => format!(
            "ready, {}, {}, {}",
            counted(*tools, "tool"),
            counted(*resources, "resource"),
            counted(*prompts, "prompt")
        ),
        State::Failed(_) => String::from("did not come up"),
        State::Gone(_) => String::from("gone"),
    }
}

/// The instruction files of a session, with what they take and why they are there, and what is remembered.
pub(super) fn memory(agent: &Agent<'_>) -> String {
    let found = agent.instructions();
    let estimator = agent.session().view().estimator();
    let mut page = Page::new();
    let tokens = |file: &Instruction| estimator.total(estimator.text(&file.text));
    let row = |file: &Instruction| {
        let by = file.included_by.as_ref().map_or(String::new(), |by| format!(" ({by})"));
        let about = format!(
            "{} tokens, {} bytes; {}: {}{by}",
            thousands(tokens(file)),
            thousands(file.text.len() as u64),
            scope_name(file.scope),
            file.reason
        );
        (file.path.clone(), about)
    };
    let parts = [
        ("Instruction files", found.files.iter().map(row).collect::<Vec<_>>()),
        ("Joined since", found.joined.iter().map(row).collect()),
        (
            "Wait for a file",
            found.waiting.iter().map(|rule| (rule.path.clone(), rule.patterns.join(", "))).collect(),
        ),
        ("Left out", found.left_out.iter().map(|left| (left.what.clone(), left.why.clone())).collect()),
        ("Remembered", agent.memories().iter().map(memory_row).collect()),
    ];
    for (title, rows) in parts.iter().filter(|(_, rows)| !rows.is_empty()) {
        page.title(title);
        for (path, about) in rows {
            page.line(&harmless(path));
            page.indented("    ", &harmless(about));
        }
    }
    if page.text.is_empty() {
        page.line("There are no instruction files here. CLAUDE.md and AGENTS.md are read, in the project and in your home.");
        page.line("Nothing is remembered yet. # TEXT keeps a memory.");
    } else {
        page.line("/memory show prints them as the model reads them.");
    }
    page.text
}

/// What a list says of a memory.
fn memory_row(memory: &Listed) -> (String, String) {
    let day: String = memory.changed.to_string().chars().take(10).collect();
    let uses = counted(memory.uses.count as usize, "use");
    (
        format!("{}.md", memory.slug),
        format!("{}, {day}, {uses}: {}", memory.head.kind, memory.head.description),
    )
}
