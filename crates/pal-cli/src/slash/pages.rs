//! Pages that slash commands print: help, agents, MCP servers, memory.

use pal_agent::{Agent, SubagentStatus};
use pal_mcp::{ServerPool, ServerState};
use pal_memory::MemorySummary;
use pal_model::text::{count_noun, group_digits};
use pal_prompt::InstructionFile;
use pal_report::{TextStyle, clip_line, format_duration, format_usd, sanitize, sanitize_lines, wrap_lines};
use pal_tools::FileRestoration;

use super::live_session::LiveSession;
use crate::arguments::ColorArg;
use crate::terminal_style::{columns, style_for};
use pal_report::scope_name;

/// Agents that need no definition.
const BUILT_IN_AGENTS: [(&str, &str); 2] =
    [("general", "starts with nothing but its task"), ("fork", "shares this conversation and its cache")];

/// Names wider than this do not widen the first column.
const NAME_COLUMNS_MAX: usize = 30;

/// Text with titles and two-column rows.
struct InfoPage {
    text: String,
    colors: TextStyle,
    columns: usize,
}

impl InfoPage {
    fn new(color: ColorArg) -> InfoPage {
        let columns = columns().saturating_sub(1);
        InfoPage { text: String::new(), colors: style_for(color), columns }
    }

    fn title(&mut self, title: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.text.push_str(&format!("{gap}{}\n", self.colors.bold(title)));
    }

    /// A name and its description, wrapped in its column; a name that is too long gets a line of its own.
    fn row(&mut self, name: &str, wide: usize, about: &str) {
        let mut before = format!("  {}", clip_line(&sanitize(name), self.columns.saturating_sub(2)));
        if columns_of(&before) > wide + 2 {
            self.text.push_str(&format!("{before}\n"));
            before.clear();
        }
        let room = self.columns.saturating_sub(wide + 4).max(20);
        for line in wrap_lines(&sanitize(about), room) {
            let gap = " ".repeat((wide + 4).saturating_sub(columns_of(&before)));
            self.text.push_str(format!("{before}{gap}{line}").trim_end());
            self.text.push('\n');
            before.clear();
        }
    }

    fn rows(&mut self, rows: &[(String, String)]) {
        let names = rows.iter().map(|(name, _)| columns_of(name));
        let wide = names.filter(|wide| *wide <= NAME_COLUMNS_MAX).max().unwrap_or(NAME_COLUMNS_MAX);
        rows.iter().for_each(|(name, about)| self.row(name, wide, about));
    }

    fn line(&mut self, line: &str) {
        self.indented("  ", line);
    }

    fn indented(&mut self, indent: &str, line: &str) {
        for line in wrap_lines(line, self.columns.saturating_sub(indent.len()).max(20)) {
            self.text.push_str(&format!("{indent}{line}\n"));
        }
    }
}

/// Commands, then keys.
pub(super) fn help(color: ColorArg, commands: &[(String, String)], keys: &[(String, String)]) -> String {
    let mut page = InfoPage::new(color);
    page.rows(commands);
    if !keys.is_empty() {
        page.text.push('\n');
        page.rows(keys);
    }
    page.text
}

fn columns_of(text: &str) -> usize {
    text.chars().count()
}

/// Running subagents, agent definitions, and the sessions on this machine as `pal agents` prints them.
pub(super) fn agents(color: ColorArg, live: &LiveSession, sessions: &str) -> String {
    let mut page = InfoPage::new(color);
    page.title("Running agents");
    let at_work = live.agents.at_work();
    if at_work.is_empty() {
        page.line("none");
    }
    page.rows(&at_work.iter().map(working).collect::<Vec<_>>());
    page.title("Available agents");
    if live.agents.can_send() {
        let always = BUILT_IN_AGENTS.map(|(name, about)| (name.to_owned(), about.to_owned()));
        let known = live.agents.known().into_iter().map(|agent| (agent.name, agent.description));
        page.rows(&always.into_iter().chain(known).collect::<Vec<_>>());
    } else {
        page.line("none: the Agent tool is switched off");
    }
    page.title("Sessions on this machine");
    sessions.lines().for_each(|line| page.text.push_str(&format!("  {}\n", sanitize(line))));
    page.text
}

fn working(agent: &SubagentStatus) -> (String, String) {
    let lasted = format_duration(u64::try_from(agent.lasted.as_millis()).unwrap_or(u64::MAX));
    let tokens = group_digits(agent.tokens);
    let kind = if agent.is_teammate { format!("{}, teammate", agent.kind) } else { agent.kind.clone() };
    let doing = match (agent.rests, agent.doing.as_str()) {
        (true, _) => String::from(", idle"),
        (false, "") => String::new(),
        (false, doing) => format!(", {}", sanitize(doing)),
    };
    (agent.name.clone(), format!("{kind}, for {lasted}, {tokens} tokens, {}{doing}", format_usd(agent.cost)))
}

/// State of each MCP server, and what it offers.
pub(super) fn servers(color: ColorArg, servers: &ServerPool) -> String {
    let mut page = InfoPage::new(color);
    if servers.names().is_empty() {
        page.line(
            "No MCP servers are configured. Add them to `.mcp.json`, to `mcp_servers` in the settings, or with --mcp-config.",
        );
        return page.text;
    }
    let of = |server: &str, all: Vec<(String, String)>| -> String {
        let names = all.into_iter().filter(|(of, _)| of == server).map(|(_, name)| name);
        names.collect::<Vec<_>>().join(", ")
    };
    for (name, state) in servers.states() {
        page.title(&format!("{}: {}", sanitize(&name), describe(&state)));
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
        if let ServerState::Failed(why) | ServerState::Gone(why) = &state {
            page.line(&sanitize(why));
            page.line(&format!("/mcp restart {name} restarts it"));
        }
    }
    page.text
}

fn describe(state: &ServerState) -> String {
    match state {
        ServerState::Starting => String::from("starting"),
        ServerState::Ready { tools, resources, prompts } => format!(
            "ready, {}, {}, {}",
            count_noun(*tools, "tool"),
            count_noun(*resources, "resource"),
            count_noun(*prompts, "prompt")
        ),
        ServerState::Failed(_) => String::from("failed to start"),
        ServerState::Gone(_) => String::from("disconnected"),
    }
}

/// Instruction files with their sizes and reasons, and memories.
pub(super) fn memory(color: ColorArg, agent: &Agent<'_>) -> String {
    let found = agent.instructions();
    let estimator = agent.session().view().estimator();
    let mut page = InfoPage::new(color);
    let tokens = |file: &InstructionFile| estimator.total(estimator.text(&file.text));
    let row = |file: &InstructionFile| {
        let by = file.included_by.as_ref().map_or(String::new(), |by| format!(" ({by})"));
        let about = format!(
            "{} tokens, {} bytes; {}: {}{by}",
            group_digits(tokens(file)),
            group_digits(file.text.len() as u64),
            scope_name(file.scope),
            file.reason
        );
        (file.path.clone(), about)
    };
    let parts = [
        ("Instruction files", found.files.iter().map(row).collect::<Vec<_>>()),
        ("Loaded since", found.joined.iter().map(row).collect()),
        (
            "Waiting for a file",
            found.waiting.iter().map(|rule| (rule.path.clone(), rule.patterns.join(", "))).collect(),
        ),
        ("Left out", found.left_out.iter().map(|left| (left.what.clone(), left.why.clone())).collect()),
        ("Memories", agent.memories().iter().map(memory_row).collect()),
    ];
    for (title, rows) in parts.iter().filter(|(_, rows)| !rows.is_empty()) {
        page.title(title);
        for (path, about) in rows {
            page.line(&sanitize(path));
            page.indented("    ", &sanitize(about));
        }
    }
    if page.text.is_empty() {
        page.line("No instruction files. Write them as CLAUDE.md or AGENTS.md, in the project or in your home directory.");
        page.line("No memories yet. # TEXT saves one.");
    } else {
        page.line("/memory show prints them as the model sees them.");
    }
    page.text
}

fn memory_row(memory: &MemorySummary) -> (String, String) {
    let day: String = memory.changed.to_string().chars().take(10).collect();
    let uses = count_noun(memory.uses.count as usize, "use");
    (
        format!("{}.md", memory.slug),
        format!("{}, {day}, {uses}: {}", memory.head.kind, memory.head.description),
    )
}

/// Files that a rewind restores, with the diff of each.
pub(super) fn restorations(color: ColorArg, plan: &[FileRestoration]) -> String {
    let colors = style_for(color);
    let mut text = String::new();
    for file in plan {
        let name = sanitize(&file.path.display().to_string());
        let (added, removed) = file.lines;
        let about = match (&file.obstacle, file.is_removal) {
            (Some(why), _) => format!("stays: {why}"),
            (None, true) => String::from("is removed: it did not exist"),
            (None, false) => format!("+{added} -{removed}"),
        };
        text.push_str(&format!("{}  {about}\n", colors.bold(&name)));
        if file.obstacle.is_some() || file.is_removal {
            continue;
        }
        for line in sanitize_lines(&file.diff()).lines() {
            let line = match line.chars().next() {
                Some('+') => colors.green(line),
                Some('-') => colors.paint("31", line),
                Some('@') => colors.cyan(line),
                _ => line.to_owned(),
            };
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}
