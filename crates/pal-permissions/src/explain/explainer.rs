//! Walk through the syntax tree of a command that collects its marks.

use std::ops::Range;
use std::path::PathBuf;

use tree_sitter::{Node, Parser};

use super::path_marks::{is_system_program, is_written_as_path, path_candidate, reasons_of_word};
use super::program_effects;
use super::{CommandMark, CommandMarkKind, reveal};
use crate::PermissionContext;
use crate::shell::{self, ShellWord};

/// Longer texts are explained line by line, without the grammar's view of the whole.
const BYTES_MAX: usize = 32 << 10;

/// Deeper nesting of the tree is not followed.
const DEPTH_MAX: usize = 120;

/// Maximum nesting of texts in texts, as in `bash -c 'bash -c …'`.
const NESTED_TEXTS_MAX: usize = 6;

/// Maximum characters of a command quoted in a sentence; longer pieces are truncated.
const QUOTED_MAX: usize = 60;

/// Words that make a line worth explaining even if it may not be a command.
const DANGEROUS_WORDS: [&str; 13] = [
    "rm", "unlink", "shred", "truncate", "mkfs", "wipefs", "dd", "-delete", "clean", "reset", "sudo", "doas",
    "push",
];

/// Position of an explained text in the command.
#[derive(Clone)]
pub(super) enum TextOrigin {
    /// It is the part of the command that begins at this byte.
    Offset(usize),
    /// It was decoded from these bytes of the command.
    Decoded(Range<usize>),
}

impl TextOrigin {
    fn locate(&self, range: Range<usize>) -> Range<usize> {
        match self {
            TextOrigin::Offset(offset) => range.start + offset..range.end + offset,
            TextOrigin::Decoded(whole) => whole.clone(),
        }
    }
}

/// Text being explained.
struct SourceText<'a> {
    text: &'a str,
    origin: &'a TextOrigin,
}

impl SourceText<'_> {
    fn slice(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }
}

/// Words of a command and their ranges in the explained text.
struct CommandWords {
    words: Vec<ShellWord>,
    ranges: Vec<Range<usize>>,
}

pub(super) struct Explainer<'a> {
    context: &'a PermissionContext<'a>,
    marks: Vec<CommandMark>,
    /// Directories that the next command may run in.
    directories: Vec<PathBuf>,
    /// Depth of texts inside of texts.
    n_texts: usize,
    /// True if a shell runs the output of the current command.
    feeds_shell: bool,
}

impl<'a> Explainer<'a> {
    pub(super) fn new(context: &'a PermissionContext<'a>) -> Explainer<'a> {
        let directories = vec![context.directory.clone()];
        Explainer { context, marks: Vec::new(), directories, n_texts: 0, feeds_shell: false }
    }

    pub(super) fn mark(&mut self, range: Range<usize>, kind: CommandMarkKind, sentence: String) {
        self.marks.push(CommandMark { range, kind, sentence });
    }

    pub(super) fn finish(self) -> Vec<CommandMark> {
        self.marks
    }

    fn mark_in(
        &mut self,
        source: &SourceText<'_>,
        range: Range<usize>,
        kind: CommandMarkKind,
        sentence: String,
    ) {
        let range = trimmed(source.text, range);
        self.mark(source.origin.locate(range), kind, sentence);
    }

    /// Explains a text that a shell runs.
    pub(super) fn explain(&mut self, text: &str, origin: &TextOrigin) {
        if self.n_texts >= NESTED_TEXTS_MAX {
            let sentence = String::from("texts are nested too deeply to be explained");
            self.mark(origin.locate(0..text.len()), CommandMarkKind::Unreadable, sentence);
            return;
        }
        if text.len() > BYTES_MAX {
            let sentence = String::from("the text is too long to be explained as a whole: read all of it");
            self.mark(origin.locate(0..text.len()), CommandMarkKind::Unreadable, sentence);
            return self.explain_lines(text, origin, "");
        }
        let mut parser = Parser::new();
        // The grammar gets `x` for every non-ASCII byte; to the shell they are letters, too.
        let ascii: Vec<u8> = text.bytes().map(|byte| if byte.is_ascii() { byte } else { b'x' }).collect();
        let tree = match parser.set_language(&tree_sitter_bash::LANGUAGE.into()) {
            Ok(()) => parser.parse(&ascii, None),
            Err(_) => None,
        };
        let Some(tree) = tree else {
            let sentence = String::from("the command cannot be read");
            self.mark(origin.locate(0..text.len()), CommandMarkKind::Unreadable, sentence);
            return;
        };
        self.n_texts += 1;
        self.node(tree.root_node(), &SourceText { text, origin }, 0);
        self.n_texts -= 1;
    }

    /// Explains lines that may not be commands: marks only what would do harm if a line ran.
    fn explain_lines(&mut self, text: &str, origin: &TextOrigin, condition: &str) {
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let place = match origin {
                TextOrigin::Offset(offset) => TextOrigin::Offset(offset + start),
                TextOrigin::Decoded(whole) => TextOrigin::Decoded(whole.clone()),
            };
            start += line.len();
            let is_alarming = |word: &str| {
                let bare = word.trim_matches(|sign: char| !sign.is_ascii_alphanumeric() && sign != '-');
                DANGEROUS_WORDS.iter().any(|alarm| bare == *alarm || bare.ends_with(&format!("/{alarm}")))
            };
            if line.len() > BYTES_MAX || !line.split_whitespace().any(is_alarming) {
                continue;
            }
            let n_before = self.marks.len();
            self.explain(line.trim_end_matches('\n'), &place);
            let found = self.marks.split_off(n_before);
            let is_harm = |mark: &CommandMark| {
                matches!(
                    mark.kind,
                    CommandMarkKind::Deletion | CommandMarkKind::Privilege | CommandMarkKind::OutsidePath
                )
            };
            if found
                .iter()
                .any(|mark| matches!(mark.kind, CommandMarkKind::Deletion | CommandMarkKind::Privilege))
            {
                self.marks.extend(
                    found.into_iter().filter(is_harm).map(|mark| CommandMark {
                        sentence: format!("{}{condition}", mark.sentence),
                        ..mark
                    }),
                );
            }
        }
    }

    fn node(&mut self, node: Node<'_>, source: &SourceText<'_>, depth: usize) {
        let range = node.byte_range();
        if depth > DEPTH_MAX {
            let sentence = String::from("this part is nested too deeply to be explained");
            return self.mark_in(source, range, CommandMarkKind::Unreadable, sentence);
        }
        let shown = || quoted(source.slice(range.clone()));
        match node.kind() {
            "comment" => return,
            "ERROR" => {
                let sentence = format!("{} is not valid shell syntax", shown());
                self.mark_in(source, range.clone(), CommandMarkKind::Unreadable, sentence);
            }
            "command" => return self.command(node, source, depth),
            "pipeline" => return self.pipeline(node, source, depth),
            "file_redirect" => self.redirect(node, source),
            "herestring_redirect" => {
                let sentence = format!("{} feeds a text to the command", shown());
                self.mark_in(source, range.clone(), CommandMarkKind::InputRedirection, sentence);
            }
            "heredoc_redirect" => self.heredoc(node, source),
            "command_substitution" => {
                let sentence = format!("{} runs a command and puts its output in place", shown());
                self.mark_in(source, range.clone(), CommandMarkKind::CommandSubstitution, sentence);
            }
            "process_substitution" => {
                let sentence = format!("{} runs a command and passes its output as a file", shown());
                self.mark_in(source, range.clone(), CommandMarkKind::CommandSubstitution, sentence);
            }
            "simple_expansion" | "expansion" => {
                let sentence = format!("the value of {} is known only when the command runs", shown());
                self.mark_in(source, range.clone(), CommandMarkKind::Expansion, sentence);
            }
            "arithmetic_expansion" => {
                let sentence = format!("{} is calculated when the command runs", shown());
                self.mark_in(source, range.clone(), CommandMarkKind::Expansion, sentence);
            }
            "ansi_c_string" => {
                let sentence = format!("{} holds characters by their codes", shown());
                self.mark_in(source, range.clone(), CommandMarkKind::Expansion, sentence);
            }
            "brace_expression" => {
                let sentence = format!("{} becomes several words", shown());
                self.mark_in(source, range.clone(), CommandMarkKind::Expansion, sentence);
            }
            "variable_assignment" => self.assignment(node, source),
            "function_definition" => {
                let sentence = format!("{} gives a name to commands", shown());
                self.mark_in(source, range.clone(), CommandMarkKind::NestedShell, sentence);
            }
            "&" => {
                let sentence = String::from("`&` starts a process in the background");
                self.mark_in(source, range.clone(), CommandMarkKind::Background, sentence);
            }
            _ if node.is_missing() => {
                let sentence = format!("`{}` is missing here", node.kind());
                self.mark_in(source, range.clone(), CommandMarkKind::Unreadable, sentence);
            }
            _ => {}
        }
        self.children(node, source, depth);
    }

    fn children(&mut self, node: Node<'_>, source: &SourceText<'_>, depth: usize) {
        for child in children(node) {
            self.node(child, source, depth + 1);
        }
    }

    /// Explains a pipeline. Text that flows into a shell is run, so texts in the commands before it are
    /// explained as commands.
    fn pipeline(&mut self, node: Node<'_>, source: &SourceText<'_>, depth: usize) {
        let around = self.feeds_shell;
        let parts: Vec<Node<'_>> = children(node).collect();
        for (idx, part) in parts.iter().enumerate() {
            self.feeds_shell =
                around || parts[idx + 1..].iter().any(|later| consumer(*later, source).is_some());
            self.node(*part, source, depth + 1);
        }
        self.feeds_shell = around;
    }

    fn redirect(&mut self, node: Node<'_>, source: &SourceText<'_>) {
        let range = node.byte_range();
        let text = source.slice(range.clone());
        let operator = text.trim_start().trim_start_matches(|sign: char| sign.is_ascii_digit());
        let is_input = operator.starts_with('<') && !operator.starts_with("<>");
        let shown = quoted(text);
        let sentence = match is_input {
            true => format!("{shown} reads from a file or stream"),
            false => format!("{shown} writes to a file or stream"),
        };
        let kind =
            if is_input { CommandMarkKind::InputRedirection } else { CommandMarkKind::OutputRedirection };
        self.mark_in(source, range, kind, sentence);
        let Some(place) = node.child_by_field_name("destination") else { return };
        let place = place.byte_range();
        let word = shell::decode_word(source.slice(place.clone()));
        if word.text().is_some_and(|text| text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/")) {
            let sentence = format!("{} talks to the network", quoted(&word.raw));
            return self.mark_in(source, place, CommandMarkKind::Network, sentence);
        }
        let is_descriptor = word.raw.chars().all(|sign| sign.is_ascii_digit() || sign == '-');
        if !is_descriptor && let Some(named) = path_text(&word) {
            for (kind, sentence) in reasons_of_word(&named, &self.directories, !is_input, self.context) {
                self.mark_in(source, place.clone(), kind, sentence);
            }
        }
    }

    fn heredoc(&mut self, node: Node<'_>, source: &SourceText<'_>) {
        let start = node.start_byte();
        let line = source.slice(start..node.end_byte()).find('\n').unwrap_or(node.end_byte() - start);
        let body = children(node).find(|child| child.kind() == "heredoc_body");
        let head = children(node).find(|child| child.kind() == "heredoc_start");
        let head = start..head.map_or(start + line, |head| head.end_byte());
        let sentence = format!("{} feeds the text below to the command", quoted(source.slice(head.clone())));
        self.mark_in(source, head, CommandMarkKind::InputRedirection, sentence);
        let Some(body) = body.map(|body| body.byte_range()) else { return };
        let before = node.parent().and_then(|parent| parent.child_by_field_name("body"));
        let consumers = before.into_iter().chain(children(node).filter(Node::is_named));
        let reader = consumers.filter_map(|node| consumer(node, source)).next();
        let text = source.slice(body.clone());
        let origin = match source.origin {
            TextOrigin::Offset(offset) => TextOrigin::Offset(offset + body.start),
            TextOrigin::Decoded(whole) => TextOrigin::Decoded(whole.clone()),
        };
        match reader {
            Some(name) if program_effects::is_shell(&name) || self.feeds_shell => {
                let sentence = format!("the text is run by `{}` as commands", reveal(&name));
                self.mark_in(source, body, CommandMarkKind::NestedShell, sentence);
                self.explain(text, &origin);
            }
            Some(name) => {
                let sentence = format!("the text is run by `{}` as a program", reveal(&name));
                self.mark_in(source, body, CommandMarkKind::NestedShell, sentence);
                self.explain_lines(text, &origin, ", if it runs");
            }
            None if self.feeds_shell => self.explain(text, &origin),
            None => self.explain_lines(text, &origin, ", if this text is run"),
        }
    }

    fn assignment(&mut self, node: Node<'_>, source: &SourceText<'_>) {
        let Some(name) = node.child_by_field_name("name") else { return };
        let name = source.slice(name.byte_range());
        if program_effects::controls_execution(name) {
            let sentence = format!("setting `{}` can change which programs run", reveal(name));
            self.mark_in(source, node.byte_range(), CommandMarkKind::NestedShell, sentence);
        }
    }

    fn command(&mut self, node: Node<'_>, source: &SourceText<'_>, depth: usize) {
        let words = words_of(node, source);
        self.program_words(&words, source);
        for child in children(node) {
            self.node(child, source, depth + 1);
        }
        self.change_directory(&words.words);
    }

    /// Adds the target of `cd` to the directories that later commands may run in.
    fn change_directory(&mut self, words: &[ShellWord]) {
        let [name, place] = words else { return };
        if let (Some("cd" | "pushd"), Some(named)) = (name.text(), path_text(place)) {
            let there: Vec<PathBuf> =
                self.directories.iter().map(|at| self.context.target(&named, at).real).collect();
            let new: Vec<PathBuf> =
                there.into_iter().filter(|path| !self.directories.contains(path)).collect();
            self.directories.extend(new);
        }
    }

    fn program_words(&mut self, words: &CommandWords, source: &SourceText<'_>) {
        let CommandWords { words, ranges } = words;
        let Some(last) = ranges.last() else { return };
        let n_peeled = words.len() - shell::strip_wrappers(words).len();
        let runs_another = shell::runs_another(words);
        let mut deletes = false;
        for start in 0..words.len() {
            let is_head = start == 0 || start == n_peeled;
            // A program that runs others may run any of its arguments.
            if !is_head && !runs_another {
                continue;
            }
            let here = &words[start..];
            if is_head && here[0].text().is_none() {
                let sentence =
                    format!("the program {} is known only when the command runs", quoted(&here[0].raw));
                self.mark_in(source, ranges[start].clone(), CommandMarkKind::NestedShell, sentence);
            }
            let whole = ranges[start].start..last.end;
            let line = quoted(source.slice(whole.clone()));
            if let Some(what) = program_effects::deletion(here) {
                deletes = true;
                self.mark_in(source, whole.clone(), CommandMarkKind::Deletion, format!("{line} {what}"));
            }
            let name = format!("`{}`", reveal(&here[0].raw));
            if let Some(what) = program_effects::privilege(here) {
                self.mark_in(source, whole.clone(), CommandMarkKind::Privilege, format!("{line} {what}"));
            }
            if program_effects::is_network(here) {
                let sentence = format!("{line} talks to the network");
                self.mark_in(source, whole.clone(), CommandMarkKind::Network, sentence);
            }
            if let Some(what) = program_effects::background_effect(here) {
                self.mark_in(source, whole, CommandMarkKind::Background, format!("{name} {what}"));
            }
            self.nested(here, &ranges[start..], source, is_head);
        }
        let is_look = shell::read_only_operands(words).is_some();
        for (idx, word) in words.iter().enumerate() {
            self.word(word, ranges[idx].clone(), source, (idx == 0, deletes, !is_look));
        }
    }

    /// Marks a word as a path and as a glob.
    fn word(
        &mut self,
        word: &ShellWord,
        range: Range<usize>,
        source: &SourceText<'_>,
        (is_name, deletes, may_write): (bool, bool, bool),
    ) {
        if word.is_glob && !is_name {
            let sentence = format!("{} stands for all names that match", quoted(&word.raw));
            self.mark_in(source, range.clone(), CommandMarkKind::Glob, sentence);
        }
        if self.feeds_shell
            && let Some(text) = word.text.as_deref().filter(|text| text.contains(' '))
        {
            self.inner_text(text, word, range.clone(), source);
        }
        let Some(text) = path_text(word) else { return };
        if is_name && (!text.contains('/') || is_system_program(&text)) {
            return;
        }
        if let Some(candidate) = path_candidate(&text) {
            let named = &text[candidate];
            let is_path = is_written_as_path(named) || deletes;
            for (kind, sentence) in reasons_of_word(named, &self.directories, may_write, self.context) {
                if kind == CommandMarkKind::CredentialPath || is_path {
                    self.mark_in(source, range.clone(), kind, sentence);
                }
            }
        }
    }

    /// Marks text or files that the command runs as programs.
    fn nested(
        &mut self,
        words: &[ShellWord],
        ranges: &[Range<usize>],
        source: &SourceText<'_>,
        is_head: bool,
    ) {
        let Some(name) = program_effects::name_of(&words[0]) else { return };
        let shown = format!("`{}`", reveal(name));
        let mut mark = |range: Range<usize>, sentence: String| {
            self.mark_in(source, range, CommandMarkKind::NestedShell, sentence);
        };
        if program_effects::is_shell(name) || program_effects::is_interpreter(name) {
            if let Some(idx) = program_effects::program_text(words) {
                let what = if program_effects::is_shell(name) { "commands" } else { "a program" };
                mark(ranges[idx].clone(), format!("{shown} runs this text as {what}"));
                if program_effects::is_shell(name) {
                    match words[idx].text.clone() {
                        Some(text) => self.inner_text(&text, &words[idx], ranges[idx].clone(), source),
                        None => self.unknown_text(&words[idx], ranges[idx].clone(), source),
                    }
                }
            } else if let Some(idx) = program_effects::program_file(words) {
                if is_head {
                    let file = quoted(&words[idx].raw);
                    mark(
                        ranges[idx].clone(),
                        format!("{shown} runs {file}, whose content is not shown here"),
                    );
                }
            } else if is_head && !program_effects::is_asked_for_version(words) {
                mark(ranges[0].clone(), format!("{shown} runs whatever it reads"));
            }
            return;
        }
        match name {
            "eval" => {
                let whole = ranges[0].start..ranges.last().map_or(ranges[0].end, |last| last.end);
                mark(whole, String::from("`eval` runs its arguments as commands"));
                for (word, range) in words.iter().zip(ranges).skip(1) {
                    match word.text.clone() {
                        Some(text) => self.inner_text(&text, word, range.clone(), source),
                        None => self.unknown_text(word, range.clone(), source),
                    }
                }
            }
            "source" | "." if is_head && words.len() > 1 => {
                let file = quoted(&words[1].raw);
                mark(ranges[1].clone(), format!("{shown} runs {file}, whose content is not shown here"));
            }
            "trap" if is_head && words.len() > 2 => {
                mark(ranges[1].clone(), String::from("`trap` runs this text later"));
                if let Some(text) = words[1].text.clone() {
                    self.inner_text(&text, &words[1], ranges[1].clone(), source);
                }
            }
            "xargs" | "parallel" if is_head => {
                mark(ranges[0].clone(), format!("{shown} runs a command with the words that it reads"));
            }
            _ if is_head => {
                // Options by which a program runs another one.
                if let Some((idx, why)) = shell::find_escape(words)
                    && !why.ends_with("runs other commands")
                    && let Some(range) = ranges.get(idx)
                {
                    mark(range.clone(), reveal(&why));
                }
            }
            _ => {}
        }
    }

    /// Explains a word that a shell runs, at its own range where the quotes allow it.
    fn inner_text(&mut self, text: &str, word: &ShellWord, range: Range<usize>, source: &SourceText<'_>) {
        let inside = ['\'', '"'].iter().find_map(|quote| {
            let inside = word.raw.strip_prefix(*quote)?.strip_suffix(*quote)?;
            (inside == text).then_some(1)
        });
        let inside = inside.or((word.raw == text).then_some(0));
        let origin = match (source.origin, inside) {
            (TextOrigin::Offset(offset), Some(skipped)) => TextOrigin::Offset(offset + range.start + skipped),
            (origin, _) => TextOrigin::Decoded(origin.locate(range)),
        };
        self.explain(text, &origin);
    }

    /// Explains a word with expansions that a shell runs, as written.
    fn unknown_text(&mut self, word: &ShellWord, range: Range<usize>, source: &SourceText<'_>) {
        let sentence = format!("{} is run, but known only when the command runs", quoted(&word.raw));
        self.mark_in(source, range.clone(), CommandMarkKind::NestedShell, sentence);
        if let Some(inside) = word.raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            self.explain(inside, &TextOrigin::Decoded(source.origin.locate(range)));
        }
    }
}

/// Words of a command without redirections and assignments.
fn words_of(node: Node<'_>, source: &SourceText<'_>) -> CommandWords {
    let (mut words, mut ranges) = (Vec::new(), Vec::new());
    for child in children(node).filter(Node::is_named) {
        if matches!(child.kind(), "variable_assignment" | "comment") || child.kind().ends_with("_redirect") {
            continue;
        }
        let range = trimmed(source.text, child.byte_range());
        words.push(shell::decode_word(source.slice(range.clone())));
        ranges.push(range);
    }
    CommandWords { words, ranges }
}

/// Name of the shell or interpreter in a node that runs its input.
fn consumer(node: Node<'_>, source: &SourceText<'_>) -> Option<String> {
    if node.kind() == "command" {
        let CommandWords { words, .. } = words_of(node, source);
        let starts = if shell::runs_another(&words) { words.len() } else { 1 };
        return (0..starts.min(words.len())).find_map(|start| {
            let here = &words[start..];
            let name = program_effects::name_of(&here[0])?;
            let is_reader = (program_effects::is_shell(name) || program_effects::is_interpreter(name))
                && program_effects::program_text(here).is_none()
                && program_effects::program_file(here).is_none();
            (is_reader || matches!(name, "source" | "." | "eval")).then(|| name.to_owned())
        });
    }
    let is_inside = |child: &Node<'_>| {
        matches!(
            child.kind(),
            "command"
                | "pipeline"
                | "redirected_statement"
                | "subshell"
                | "compound_statement"
                | "list"
                | "while_statement"
                | "do_group"
        )
    };
    children(node).filter(is_inside).find_map(|child| consumer(child, source))
}

fn children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    (0..node.child_count()).filter_map(move |idx| node.child(idx))
}

/// Path that a word stands for: its known text, or `$HOME` at its start.
fn path_text(word: &ShellWord) -> Option<String> {
    if let Some(text) = word.text.as_deref() {
        // A pattern of files lies in the folder before its first star.
        let end = text.find(['*', '?', '[']).filter(|_| word.is_glob).unwrap_or(text.len());
        let fixed = &text[..end];
        let folder =
            if end < text.len() { fixed.rfind('/').map_or("", |at| &fixed[..at + 1]) } else { fixed };
        return Some(folder.to_owned()).filter(|path| !path.is_empty());
    }
    let bare = word.raw.trim_matches('"');
    let rest = ["$HOME", "${HOME}"].iter().find_map(|home| bare.strip_prefix(home))?;
    let is_known = shell::decode_word(rest).text().is_some() && !rest.contains('"');
    (is_known && (rest.is_empty() || rest.starts_with('/'))).then(|| format!("~{rest}"))
}

/// Trims spaces at the ends of a range, which the grammar may include.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let Some(slice) = text.get(range.clone()) else { return range };
    let start = range.start + (slice.len() - slice.trim_start().len());
    let end = range.end - (slice.len() - slice.trim_end().len());
    start.min(end)..end.max(start.min(end))
}

/// Quotes a piece of a command on one line, truncated if long.
fn quoted(text: &str) -> String {
    let line = reveal(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    match line.char_indices().nth(QUOTED_MAX) {
        Some((at, _)) => format!("`{}…`", line[..at].trim_end()),
        None => format!("`{line}`"),
    }
}
