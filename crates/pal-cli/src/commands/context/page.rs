//! What people read: the picture first, then what is in the request in its order, what is not, and the cache's marks.

use std::io::Write;
use std::path::Path;

use pal_prompt::{Git, InstructionScope};

use super::contents::{Extent, File, SystemPart, Tool};
use super::here::Here;
use super::{Look, Subject, marks, picture};
use crate::colour::{Colours, clipped, wrapped};
use crate::failure::Failure;
use crate::table::{counted, rounded, thousands};

/// Columns of the two numbers before a name.
const NUMBERS: usize = 20;

pub(super) fn print(
    look: &Look,
    home: Option<&Path>,
    colours: Colours,
    columns: usize,
    is_brief: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let page = Page { look, home, colours, columns };
    let mut lines = page.heading();
    lines.extend(picture::lines(&look.slices, &look.limits, columns, colours));
    lines.push(page.fill());
    lines.extend(page.next());
    if !is_brief {
        lines.extend(page.tools());
        lines.extend(page.system());
        lines.extend(page.reminder());
        if let Subject::Start(here) = &look.subject {
            lines.extend(page.around(here));
        }
        lines.extend(page.marks());
    }
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

struct Page<'a> {
    look: &'a Look,
    home: Option<&'a Path>,
    colours: Colours,
    columns: usize,
}

impl Page<'_> {
    fn heading(&self) -> Vec<String> {
        let model = &self.look.view.lens().card.model;
        let tokens = thousands(self.look.tokens);
        let (what, known) = match &self.look.subject {
            Subject::Start(here) => {
                let place = self.path(&here.directory.to_string_lossy());
                (
                    format!("A session that starts in {place}"),
                    format!("about {tokens} tokens before its first message, estimated for {model}"),
                )
            }
            Subject::Stored { name, size, .. } => {
                let how = match &size.anchor {
                    Some(_) => "reported by its newest response, what came since estimated",
                    None => "estimated",
                };
                (format!("The session {name}"), format!("{tokens} tokens for {model}, {how}"))
            }
        };
        let mut lines: Vec<String> =
            wrapped(&what, self.columns).iter().map(|line| self.colours.bold(line)).collect();
        lines.extend(wrapped(&known, self.columns));
        lines.push(String::new());
        lines
    }

    /// How far it is to the next threshold.
    fn fill(&self) -> String {
        let limits = &self.look.limits;
        let left = limits.fill(self.look.tokens).percent_left;
        let (goal, to) = match limits.auto_compact {
            Some(tokens) => ("the automatic compaction", tokens),
            None => ("the effective window (automatic compaction is off)", limits.effective),
        };
        clipped(&format!("{left:.0} % of the way to {goal} at {} are left", thousands(to)), self.columns)
    }

    /// What would leave next, and when.
    fn next(&self) -> Vec<String> {
        let next = self.look.next.as_ref().map_or(Vec::new(), super::Next::sentences);
        self.listed("what would be cleared next", next)
    }

    fn tools(&self) -> Vec<String> {
        let tools = &self.look.contents.tools;
        if tools.is_empty() {
            return Vec::new();
        }
        let mut lines = self.title("tools", self.look.contents.tokens_of_tools(tools.len()));
        let note = |tool: &Tool| match (tool.is_of_server, tool.is_deferred) {
            (false, false) => "",
            (true, false) => "of an MCP server",
            (false, true) => "deferred",
            (true, true) => "of an MCP server, deferred",
        };
        lines.extend(tools.iter().flat_map(|tool| self.row(Some(tool.extent), &tool.name, note(tool))));
        lines
    }

    fn system(&self) -> Vec<String> {
        let blocks = &self.look.contents.blocks;
        if blocks.is_empty() {
            return Vec::new();
        }
        let mut lines = self.title("system prompt", self.look.contents.system_tokens().1);
        for (at, block) in blocks.iter().enumerate() {
            lines.push(self.colours.cyan(&format!("  block {}{}", at + 1, block_words(block))));
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

    /// What a block is called whose sections are not known.
    fn unknown_block(&self, at: usize) -> &'static str {
        let is_last = at + 1 == self.look.contents.blocks.len();
        match self.look.view.has_unseen_prefix() && is_last {
            true => "a note in place of a prompt that is not recorded",
            false => "its sections are not known",
        }
    }

    /// Instruction files, memory, date.
    fn reminder(&self) -> Vec<String> {
        let context = &self.look.contents.context;
        if context.text.is_empty() {
            return Vec::new();
        }
        let mut lines = self.title("reminder before the first message", context.extent.tokens);
        for file in &context.files {
            lines.extend(self.row(file.extent, &self.path(&file.path), &self.why(file)));
        }
        let others = Extent { tokens: context.others, bytes: 0 };
        let name = match self.look.subject {
            Subject::Start(_) => "date, and the words around the files",
            Subject::Stored { .. } => "all of it",
        };
        lines.extend(self.row(Some(others), name, ""));
        lines
    }

    fn why(&self, file: &File) -> String {
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

    /// What is only known of a session that would start.
    fn around(&self, here: &Here) -> Vec<String> {
        let gathered = &here.gathered;
        let found = &gathered.instructions;
        let mut lines = self.listed("git", vec![git_words(here)]);
        let left =
            |left: &pal_prompt::LeftOut| format!("{}: {}", self.path(&left.what), self.shortened(&left.why));
        // Git has its own line.
        let of_assembly = here.assembled.left_out.iter().filter(|left| left.what != "git");
        lines.extend(self.listed("left out", found.left_out.iter().chain(of_assembly).map(left).collect()));
        let waiting = found
            .waiting
            .iter()
            .map(|rule| format!("{}: for {}", self.path(&rule.path), rule.patterns.join(", ")));
        lines.extend(self.listed("rules that wait for a file", waiting.collect()));
        let asked = found.questions.iter().map(|question| {
            let by = self.path(&question.asked_by);
            format!(
                "{} (by {by}): not read unless allow_includes in settings.toml names it",
                self.path(&question.path)
            )
        });
        lines.extend(self.listed("outside of the project", asked.collect()));
        lines.extend(
            self.listed("warnings", found.warnings.iter().map(|text| self.shortened(text)).collect()),
        );
        lines
    }

    /// Where the provider's cache is marked.
    fn marks(&self) -> Vec<String> {
        let noted = marks::noted(self.look);
        if noted.is_empty() {
            return self.listed("cache marks", vec![marks::why_none(self.look)]);
        }
        let mut lines = vec![String::new(), self.colours.bold("cache marks, and what they cover")];
        for noted in noted {
            let extent = Extent { tokens: noted.tokens, bytes: 0 };
            let behind = format!("behind {}", noted.behind);
            lines.extend(self.row(Some(extent), &behind, &marks::kept(self.look, &noted.mark)));
        }
        lines
    }

    /// The heading of a part, with its size.
    fn title(&self, name: &str, tokens: f64) -> Vec<String> {
        let heading = format!("{name}, {} tokens", rounded(tokens));
        vec![String::new(), self.colours.bold(&clipped(&heading, self.columns))]
    }

    /// A row: tokens and bytes, a name that keeps its end, and below it why it is there.
    fn row(&self, extent: Option<Extent>, name: &str, why: &str) -> Vec<String> {
        let bytes = |extent: Extent| match extent.bytes {
            0 => String::new(),
            bytes => format!("{} B", thousands(bytes as u64)),
        };
        let numbers = match extent {
            Some(extent) => format!("{:>8} {:>10} ", rounded(extent.tokens), bytes(extent)),
            None => " ".repeat(NUMBERS),
        };
        let room = self.columns.saturating_sub(NUMBERS + 1).max(10);
        let beside = name.chars().count() + 2 + why.chars().count();
        let name = ending(name, room);
        match why {
            "" => vec![format!("{numbers} {name}")],
            // Reasons of tools and sections are short and stand beside them; paths are long.
            _ if beside <= room && !name.contains('/') => {
                vec![format!("{numbers} {name}  {}", self.colours.dim(&clipped(why, room)))]
            }
            _ => {
                let mut lines = vec![format!("{numbers} {name}")];
                let below = wrapped(why, room.saturating_sub(2));
                lines.extend(
                    below.iter().map(|line| format!("{}{}", " ".repeat(NUMBERS + 3), self.colours.dim(line))),
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
        let mut lines = vec![String::new(), self.colours.bold(name)];
        for sentence in sentences {
            let broken = wrapped(&sentence, self.columns.saturating_sub(4));
            lines.extend(broken.iter().enumerate().map(|(at, line)| {
                let indent = if at == 0 { "  " } else { "    " };
                format!("{indent}{line}")
            }));
        }
        lines
    }

    /// A path as short as it can be understood: from the project's top, or from the user's home.
    fn path(&self, path: &str) -> String {
        let root = match &self.look.subject {
            Subject::Start(here) => Some(here.gathered.instructions.root.as_str()),
            Subject::Stored { .. } => None,
        };
        let below = |top: &str| path.strip_prefix(top)?.strip_prefix('/').map(str::to_owned);
        let of_home =
            || self.home.and_then(|home| below(&home.to_string_lossy())).map(|below| format!("~/{below}"));
        root.and_then(below).or_else(of_home).unwrap_or_else(|| path.to_owned())
    }

    /// A sentence with the paths in it shortened.
    fn shortened(&self, sentence: &str) -> String {
        match &self.look.subject {
            Subject::Start(here) => sentence.replace(&format!("{}/", here.gathered.instructions.root), ""),
            Subject::Stored { .. } => sentence.to_owned(),
        }
    }
}

fn block_words(block: &SystemPart) -> &'static str {
    match (block.is_static, block.is_markable) {
        (true, _) => ", static: the same for everybody",
        (false, true) => ", dynamic: of this session",
        (false, false) => ", never marked",
    }
}

/// What files of a scope are called.
pub(crate) fn scope_name(scope: InstructionScope) -> &'static str {
    match scope {
        InstructionScope::Managed => "managed",
        InstructionScope::User => "user",
        InstructionScope::Project => "project",
        InstructionScope::Local => "local",
        InstructionScope::Added => "added",
    }
}

fn git_words(here: &Here) -> String {
    let took = here.gathered.took_with_git.as_millis();
    match &here.gathered.git {
        Git::Absent(why) => format!("no snapshot: {why}; all was gathered in {took} ms"),
        Git::Snapshot(git) => {
            let changed = match git.status.lines().filter(|line| !line.is_empty()).count() {
                0 => String::from("clean"),
                _ if git.status.starts_with("(unknown") => String::from("status unknown"),
                count if git.status_was_cut => format!("more than {}", counted(count, "changed file")),
                count => counted(count, "changed file"),
            };
            let commits = counted(git.commits.len(), "commit");
            format!("branch {}, {changed}, {commits}; it was in after {took} ms", git.branch)
        }
    }
}

/// The end of a name that is too long, because paths differ there.
fn ending(name: &str, columns: usize) -> String {
    let name = clipped(name, usize::MAX);
    let length = name.chars().count();
    if length <= columns {
        return name;
    }
    let kept: String = name.chars().skip(length - (columns - 1)).collect();
    format!("…{kept}")
}
