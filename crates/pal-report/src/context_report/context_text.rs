//! The report for people: the picture, the parts of the request in order, what was left out, and the cache breakpoints.

use std::io::{self, Write};
use std::path::Path;

use pal_model::text::{count_noun, group_digits};
use pal_prompt::{GitState, InstructionScope, PrefixProfile};

use super::prompt_contents::{ListedTool, ReminderFile, SystemPromptBlock, TextSize};
use super::{ContextReport, ContextSubject, LayerOutlook, PlannedSession, breakpoint_list, window_picture};
use crate::text_layout::{clip_line, wrap_lines};
use crate::text_style::TextStyle;
use crate::units::format_tokens;

/// Columns of the two numbers before a name.
const NUMBERS: usize = 20;

pub(super) fn write_text(
    report: &ContextReport,
    home: Option<&Path>,
    style: TextStyle,
    columns: usize,
    is_brief: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = ContextPage { report, home, style, columns };
    let mut lines = page.heading();
    lines.extend(window_picture::picture_lines(&report.slices, &report.limits, columns, style));
    lines.push(page.fill());
    lines.extend(page.next());
    if !is_brief {
        lines.extend(page.tools());
        lines.extend(page.system());
        lines.extend(page.reminder());
        if let ContextSubject::Planned(here) = &report.subject {
            lines.extend(page.around(here));
        }
        lines.extend(page.breakpoint_lines());
    }
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

struct ContextPage<'a> {
    report: &'a ContextReport,
    home: Option<&'a Path>,
    style: TextStyle,
    columns: usize,
}

impl ContextPage<'_> {
    fn heading(&self) -> Vec<String> {
        let model = &self.report.view.lens().card.model;
        let tokens = group_digits(self.report.tokens);
        let (what, known) = match &self.report.subject {
            ContextSubject::Planned(here) => {
                let place = self.path(&here.directory.to_string_lossy());
                (
                    format!("New session in {place}"),
                    format!("about {tokens} tokens before the first message, estimated for {model}"),
                )
            }
            ContextSubject::Stored { name, size, .. } => {
                let how = match &size.anchor {
                    Some(_) => "reported by the latest response, later content estimated",
                    None => "estimated",
                };
                (format!("Session {name}"), format!("{tokens} tokens for {model}, {how}"))
            }
        };
        let mut lines: Vec<String> =
            wrap_lines(&what, self.columns).iter().map(|line| self.style.bold(line)).collect();
        lines.extend(wrap_lines(&known, self.columns));
        if self.report.profile() == PrefixProfile::Lean {
            let window = group_digits(self.report.limits.window);
            let text = format!(
                "lean profile for a window of {window} tokens: a short system prompt and the core tools; ToolSearch finds the others"
            );
            lines.extend(wrap_lines(&text, self.columns));
        }
        lines.push(String::new());
        lines
    }

    /// Room left until the next threshold.
    fn fill(&self) -> String {
        let limits = &self.report.limits;
        let left = limits.fill(self.report.tokens).percent_left;
        let (goal, to) = match limits.auto_compact {
            Some(tokens) => ("automatic compaction", tokens),
            None => ("the effective window (automatic compaction is off)", limits.effective),
        };
        clip_line(&format!("{left:.0}% left until {goal} at {}", group_digits(to)), self.columns)
    }

    /// Forecast of the layers.
    fn next(&self) -> Vec<String> {
        let next = self.report.outlook.as_ref().map_or(Vec::new(), LayerOutlook::sentences);
        self.listed("cleared next", next)
    }

    fn tools(&self) -> Vec<String> {
        let tools = &self.report.contents.tools;
        if tools.is_empty() {
            return Vec::new();
        }
        let mut lines = self.title("tools", self.report.contents.tokens_of_tools(tools.len()));
        let note = |tool: &ListedTool| match (tool.is_mcp, tool.is_deferred) {
            (false, false) => "",
            (true, false) => "from an MCP server",
            (false, true) => "deferred",
            (true, true) => "from an MCP server, deferred",
        };
        lines.extend(tools.iter().flat_map(|tool| self.row(Some(tool.extent), &tool.name, note(tool))));
        lines
    }

    fn system(&self) -> Vec<String> {
        let blocks = &self.report.contents.blocks;
        if blocks.is_empty() {
            return Vec::new();
        }
        let mut lines = self.title("system prompt", self.report.contents.system_tokens().1);
        for (at, block) in blocks.iter().enumerate() {
            lines.push(self.style.cyan(&format!("  block {}{}", at + 1, describe_block(block))));
            if block.sections.is_empty() {
                lines.extend(self.row(Some(block.extent), self.unknown_block(at), ""));
            }
            for section in &block.sections {
                let volatile = section.volatile.as_ref().map(|why| format!("volatile: {why}"));
                lines.extend(self.row(
                    Some(section.extent),
                    &section.name,
                    volatile.as_deref().unwrap_or(""),
                ));
            }
        }
        lines
    }

    /// Name of a block whose sections are unknown.
    fn unknown_block(&self, at: usize) -> &'static str {
        let is_last = at + 1 == self.report.contents.blocks.len();
        match self.report.view.has_unseen_prefix() && is_last {
            true => "placeholder for a prompt that is not recorded",
            false => "sections unknown",
        }
    }

    /// Instruction files, memory, date.
    fn reminder(&self) -> Vec<String> {
        let context = &self.report.contents.context;
        if context.text.is_empty() {
            return Vec::new();
        }
        let mut lines = self.title("reminder before the first message", context.extent.tokens);
        for file in &context.files {
            lines.extend(self.row(file.extent, &self.path(&file.path), &self.why(file)));
        }
        let others = TextSize { tokens: context.other_tokens, bytes: 0 };
        let name = match self.report.subject {
            ContextSubject::Planned(_) => "date and wrapper text",
            ContextSubject::Stored { .. } => "whole reminder",
        };
        lines.extend(self.row(Some(others), name, ""));
        lines
    }

    fn why(&self, file: &ReminderFile) -> String {
        let scope = match file.scope {
            _ if file.is_memory => "memory",
            Some(scope) => scope_name(scope),
            None => "",
        };
        let reason = file.reason.as_str();
        match (&file.included_by, scope) {
            (Some(by), _) => format!("{scope}: {reason} ({})", self.path(by)),
            (None, "") => reason.to_owned(),
            (None, _) => format!("{scope}: {reason}"),
        }
    }

    /// Sections that only a planned session has.
    fn around(&self, here: &PlannedSession) -> Vec<String> {
        let gathered = &here.gathered;
        let found = &gathered.instructions;
        let mut lines = self.listed("git", vec![describe_git(here)]);
        let left = |left: &pal_prompt::PrefixOmission| {
            format!("{}: {}", self.path(&left.what), self.shortened(&left.why))
        };
        // Git has its own section.
        let of_assembly = here.assembled.left_out.iter().filter(|left| left.what != "git");
        lines.extend(self.listed("left out", found.left_out.iter().chain(of_assembly).map(left).collect()));
        let waiting = found
            .waiting
            .iter()
            .map(|rule| format!("{}: for {}", self.path(&rule.path), rule.patterns.join(", ")));
        lines.extend(self.listed("rules waiting for a matching file", waiting.collect()));
        let asked = found.questions.iter().map(|question| {
            let by = self.path(&question.asked_by);
            format!(
                "{} (included by {by}): not read; allow it with allow_includes in settings.toml",
                self.path(&question.path)
            )
        });
        lines.extend(self.listed("outside the project", asked.collect()));
        lines.extend(
            self.listed("warnings", found.warnings.iter().map(|text| self.shortened(text)).collect()),
        );
        lines
    }

    /// Cache breakpoints, and the tokens that they cover.
    fn breakpoint_lines(&self) -> Vec<String> {
        let noted = breakpoint_list::describe_breakpoints(self.report);
        if noted.is_empty() {
            return self.listed("cache breakpoints", vec![breakpoint_list::explain_absence(self.report)]);
        }
        let mut lines = vec![String::new(), self.style.bold("cache breakpoints, and the tokens they cover")];
        for noted in noted {
            let extent = TextSize { tokens: noted.tokens, bytes: 0 };
            let behind = format!("after {}", noted.behind);
            lines.extend(self.row(
                Some(extent),
                &behind,
                &breakpoint_list::describe_ttl(self.report, &noted.breakpoint),
            ));
        }
        lines
    }

    /// The heading of a part, with its size.
    fn title(&self, name: &str, tokens: f64) -> Vec<String> {
        let heading = format!("{name}, {} tokens", format_tokens(tokens));
        vec![String::new(), self.style.bold(&clip_line(&heading, self.columns))]
    }

    /// A row: tokens and bytes, a name that keeps its end, and below it why it is there.
    fn row(&self, extent: Option<TextSize>, name: &str, why: &str) -> Vec<String> {
        let bytes = |extent: TextSize| match extent.bytes {
            0 => String::new(),
            bytes => format!("{} B", group_digits(bytes as u64)),
        };
        let numbers = match extent {
            Some(extent) => format!("{:>8} {:>10} ", format_tokens(extent.tokens), bytes(extent)),
            None => " ".repeat(NUMBERS),
        };
        let room = self.columns.saturating_sub(NUMBERS + 1).max(10);
        let beside = name.chars().count() + 2 + why.chars().count();
        let name = clip_start(name, room);
        match why {
            "" => vec![format!("{numbers} {name}")],
            // Short notes of tools and sections stand beside the name; paths are long.
            _ if beside <= room && !name.contains('/') => {
                vec![format!("{numbers} {name}  {}", self.style.dim(&clip_line(why, room)))]
            }
            _ => {
                let mut lines = vec![format!("{numbers} {name}")];
                let below = wrap_lines(why, room.saturating_sub(2));
                lines.extend(
                    below.iter().map(|line| format!("{}{}", " ".repeat(NUMBERS + 3), self.style.dim(line))),
                );
                lines
            }
        }
    }

    /// Sentences below a heading; nothing if there are none.
    fn listed(&self, name: &str, sentences: Vec<String>) -> Vec<String> {
        if sentences.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![String::new(), self.style.bold(name)];
        for sentence in sentences {
            let broken = wrap_lines(&sentence, self.columns.saturating_sub(4));
            lines.extend(broken.iter().enumerate().map(|(at, line)| {
                let indent = if at == 0 { "  " } else { "    " };
                format!("{indent}{line}")
            }));
        }
        lines
    }

    /// Shortens a path below the project root or the user's home.
    fn path(&self, path: &str) -> String {
        let root = match &self.report.subject {
            ContextSubject::Planned(here) => Some(here.gathered.instructions.root.as_str()),
            ContextSubject::Stored { .. } => None,
        };
        let below = |top: &str| path.strip_prefix(top)?.strip_prefix('/').map(str::to_owned);
        let of_home =
            || self.home.and_then(|home| below(&home.to_string_lossy())).map(|below| format!("~/{below}"));
        root.and_then(below).or_else(of_home).unwrap_or_else(|| path.to_owned())
    }

    /// Shortens the project paths in a sentence.
    fn shortened(&self, sentence: &str) -> String {
        match &self.report.subject {
            ContextSubject::Planned(here) => {
                sentence.replace(&format!("{}/", here.gathered.instructions.root), "")
            }
            ContextSubject::Stored { .. } => sentence.to_owned(),
        }
    }
}

fn describe_block(block: &SystemPromptBlock) -> &'static str {
    match (block.is_static, block.can_hold_breakpoint) {
        (true, _) => ", static: the same for all users",
        (false, true) => ", dynamic: specific to this session",
        (false, false) => ", without a cache breakpoint",
    }
}

/// Returns the name of an instruction scope.
pub fn scope_name(scope: InstructionScope) -> &'static str {
    match scope {
        InstructionScope::Managed => "managed",
        InstructionScope::User => "user",
        InstructionScope::Project => "project",
        InstructionScope::Local => "local",
        InstructionScope::Added => "added",
    }
}

fn describe_git(here: &PlannedSession) -> String {
    let took = here.gathered.took_with_git.as_millis();
    match &here.gathered.git {
        GitState::Absent(why) => format!("no snapshot: {why}; gathered in {took} ms"),
        GitState::Snapshot(git) => {
            let changed = match git.status.lines().filter(|line| !line.is_empty()).count() {
                0 => String::from("clean"),
                _ if git.status.starts_with("(unknown") => String::from("status unknown"),
                count if git.status_was_cut => format!("more than {}", count_noun(count, "changed file")),
                count => count_noun(count, "changed file"),
            };
            let commits = count_noun(git.commits.len(), "commit");
            format!("branch {}, {changed}, {commits}; gathered in {took} ms", git.branch)
        }
    }
}

/// Clips a long name at its start: paths differ at their end.
fn clip_start(name: &str, columns: usize) -> String {
    let name = clip_line(name, usize::MAX);
    let length = name.chars().count();
    if length <= columns {
        return name;
    }
    let kept: String = name.chars().skip(length - (columns - 1)).collect();
    format!("…{kept}")
}
