//! First parser of a command line: a walk through its syntax tree.

mod expansions;
mod redirects;
mod simple_commands;
mod syntax_nodes;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use tree_sitter::{Node, Parser};

use syntax_nodes::{children, is_literal};

use super::{BYTES_MAX, CommandAction, CommandLine, CommandPart, DEPTH_MAX, word_scanner};

/// Resolver of a path against a directory.
type PathResolver<'a> = &'a dyn Fn(&str, &Path) -> PathBuf;

/// Directories that a part may run in.
type Directories = Vec<PathBuf>;

/// Parses a command line that starts in a directory.
pub(crate) fn parse_command_line(source: &str, directory: &Path, resolve: PathResolver<'_>) -> CommandLine {
    let mut walker = TreeWalker::new(source, resolve);
    if let Some(hidden) = source.chars().find(|character| is_hidden(*character)) {
        walker.doubt(&format!("holds a character that cannot be seen ({})", hidden.escape_unicode()));
    }
    if source.len() > BYTES_MAX {
        walker.doubt("is too long to be taken apart");
        return walker.script;
    }
    let mut parser = Parser::new();
    let tree = match parser.set_language(&tree_sitter_bash::LANGUAGE.into()) {
        Ok(()) => parser.parse(ascii(source), None),
        Err(_) => None,
    };
    let Some(tree) = tree else {
        walker.doubt("cannot be read");
        return walker.script;
    };
    if tree.root_node().has_error() {
        walker.doubt("is not written as the shell's grammar wants it");
    }
    walker.is_linked = resolve(".", directory) != directory;
    walker.sequence(tree.root_node(), &vec![directory.to_owned()]);
    walker.compare();
    walker.script
}

/// Replaces every non-ASCII byte by `x`: to the shell they are letters, too, and the grammar's scanner does
/// not handle them safely.
fn ascii(source: &str) -> String {
    let letters = |character: char| if character.is_ascii() { character } else { 'x' };
    source
        .chars()
        .flat_map(|character| std::iter::repeat_n(letters(character), character.len_utf8()))
        .collect()
}

/// Returns whether a character is invisible or misleading.
fn is_hidden(character: char) -> bool {
    let is_format = matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{3164}' | '\u{115f}' | '\u{1160}'
        | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    let is_space = character.is_whitespace() && !matches!(character, ' ' | '\t' | '\n');
    (character.is_control() && !matches!(character, '\t' | '\n')) || is_space || is_format
}

/// Directories that a line may be in after a part, on success and on failure.
struct DirectoryFlow {
    success: Directories,
    failure: Directories,
}

impl DirectoryFlow {
    fn unchanged(at: &Directories) -> DirectoryFlow {
        DirectoryFlow { success: at.clone(), failure: at.clone() }
    }

    fn either(&self) -> Directories {
        both(&self.success, &self.failure)
    }
}

fn both(one: &Directories, other: &Directories) -> Directories {
    let mut all = one.clone();
    all.extend(other.iter().filter(|path| !one.contains(path)).cloned());
    all
}

struct TreeWalker<'a> {
    source: &'a str,
    resolve: PathResolver<'a>,
    script: CommandLine,
    /// Ranges of words, for comparison with the scanner.
    words: BTreeSet<(usize, usize)>,
    /// Byte offsets of command starts.
    heads: BTreeSet<usize>,
    /// Ranges of operators and keywords.
    signs: BTreeSet<(usize, usize)>,
    depth: usize,
    /// True if the line may be in a directory reached through a link: from there `cd ..` goes back, not up.
    is_linked: bool,
    /// Variables that the line sets to known values.
    set: BTreeSet<String>,
    /// Variables in the current command that the line does not set.
    foreign: Vec<String>,
}

impl<'a> TreeWalker<'a> {
    fn new(source: &'a str, resolve: PathResolver<'a>) -> TreeWalker<'a> {
        let (words, heads, signs) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        TreeWalker {
            source,
            resolve,
            script: CommandLine::default(),
            words,
            heads,
            signs,
            depth: 0,
            is_linked: false,
            set: BTreeSet::new(),
            foreign: Vec::new(),
        }
    }

    fn doubt(&mut self, why: &str) {
        if !self.script.doubts.iter().any(|known| known == why) {
            self.script.doubts.push(String::from(why));
        }
    }

    fn text(&self, range: Range<usize>) -> &'a str {
        self.source.get(range).unwrap_or_default()
    }

    fn add(&mut self, text: &str, action: CommandAction, at: &Directories) {
        let (text, directories) = (String::from(text.trim()), at.clone());
        self.script.parts.push(CommandPart {
            text,
            starts: Vec::new(),
            action,
            directories,
            variables: Vec::new(),
        });
    }

    /// Compares words and command starts with the scanner and adds a doubt if they differ.
    fn compare(&mut self) {
        let found = word_scanner::scan_words(self.source).map(|found| {
            let spans: BTreeSet<_> = found.spans.iter().map(|span| (span.start, span.end)).collect();
            let heads: BTreeSet<_> = found.heads.into_iter().collect();
            let is_known = |span| self.words.contains(span) || self.signs.contains(span);
            let is_head = |start: &usize| {
                self.heads.contains(start) || self.signs.range((*start, 0)..(*start + 1, 0)).next().is_some()
            };
            spans.iter().all(is_known)
                && self.words.iter().all(|span| spans.contains(span))
                && heads.iter().all(is_head)
                && self.heads.iter().all(|start| heads.contains(start))
        });
        if found != Some(true) {
            self.doubt("is written in a way that can be read differently");
        }
    }

    /// Walks statements in sequence.
    fn sequence(&mut self, node: Node<'_>, at: &Directories) -> DirectoryFlow {
        let mut flow = DirectoryFlow::unchanged(at);
        for child in children(node) {
            if child.is_named() {
                let at = flow.either();
                flow = self.statement(child, &at);
            } else {
                self.sign(child);
            }
        }
        flow
    }

    fn statement(&mut self, node: Node<'_>, at: &Directories) -> DirectoryFlow {
        self.depth += 1;
        let flow = if self.depth > DEPTH_MAX {
            self.doubt("is nested too deeply");
            DirectoryFlow::unchanged(at)
        } else {
            self.statement_by_kind(node, at)
        };
        self.depth -= 1;
        flow
    }

    fn statement_by_kind(&mut self, node: Node<'_>, at: &Directories) -> DirectoryFlow {
        match node.kind() {
            "comment" => DirectoryFlow::unchanged(at),
            "command" => self.command(node, at),
            "redirected_statement" => self.redirected(node, at),
            "list" => self.list(node, at),
            "negated_command" => {
                let flow = self.sequence(node, at);
                DirectoryFlow { success: flow.failure, failure: flow.success }
            }
            "compound_statement" if self.text(node.byte_range()).starts_with('{') => self.sequence(node, at),
            "pipeline" | "subshell" => self.walk_isolated(node, at),
            "variable_assignment" | "variable_assignments" => {
                self.assignment(node, at);
                DirectoryFlow::unchanged(at)
            }
            "test_command" => {
                self.test(node, at);
                DirectoryFlow::unchanged(at)
            }
            "if_statement" | "elif_clause" | "else_clause" | "while_statement" | "for_statement"
            | "do_group" => self.branches(node, at),
            other => {
                self.doubt(&format!("has something that is not followed ({})", other.replace('_', " ")));
                self.inside(node, at);
                DirectoryFlow::unchanged(at)
            }
        }
    }

    fn list(&mut self, node: Node<'_>, at: &Directories) -> DirectoryFlow {
        let is_and = children(node).any(|child| child.kind() == "&&");
        let mut statements = children(node).filter(Node::is_named).filter(|child| child.kind() != "comment");
        let (Some(left), Some(right), None) = (statements.next(), statements.next(), statements.next())
        else {
            self.doubt("has a list that cannot be read");
            self.inside(node, at);
            return DirectoryFlow::unchanged(at);
        };
        let left = self.statement(left, at);
        let right = self.statement(right, if is_and { &left.success } else { &left.failure });
        if is_and {
            DirectoryFlow { success: right.success, failure: both(&left.failure, &right.failure) }
        } else {
            DirectoryFlow { success: both(&left.success, &right.success), failure: right.failure }
        }
    }

    /// Walks a pipeline or subshell, which cannot change the directory of the line.
    fn walk_isolated(&mut self, node: Node<'_>, at: &Directories) -> DirectoryFlow {
        if node.kind() == "subshell" {
            self.sequence(node, at);
        } else {
            let start = self.script.parts.len();
            for child in children(node).filter(Node::is_named) {
                self.statement(child, at);
            }
            self.mark_concurrent(start);
        }
        DirectoryFlow::unchanged(at)
    }

    /// Walks branches and loops.
    fn branches(&mut self, node: Node<'_>, at: &Directories) -> DirectoryFlow {
        let mut reached = at.clone();
        let mut looped = None;
        let start = self.script.parts.len();
        for child in children(node) {
            match child.kind() {
                "variable_name" => {
                    self.words.insert((child.start_byte(), child.end_byte()));
                    self.variable(child);
                    self.set.insert(String::from(self.text(child.byte_range())));
                    looped = Some(child);
                }
                kind if is_literal(kind) => {
                    let n_foreign = self.foreign.len();
                    drop(self.word(child, at));
                    // A loop variable is only as well known as its values.
                    if self.foreign.len() > n_foreign {
                        self.foreign.truncate(n_foreign);
                        self.forget_variable(looped);
                    }
                }
                _ if child.is_named() => {
                    let flow = self.statement(child, &reached);
                    reached = both(&reached, &flow.either());
                }
                _ => self.sign(child),
            }
        }
        if matches!(node.kind(), "while_statement" | "for_statement") {
            self.mark_concurrent(start);
            if reached.len() != at.len() {
                self.doubt("changes its directory in a loop");
            }
        }
        DirectoryFlow { success: reached.clone(), failure: reached }
    }

    /// Walks the commands of an unsupported node, so that restrictive rules see them.
    fn inside(&mut self, node: Node<'_>, at: &Directories) {
        self.depth += 1;
        if self.depth <= DEPTH_MAX {
            for child in children(node).filter(Node::is_named) {
                match child.kind() {
                    "command" | "redirected_statement" | "pipeline" | "list" | "subshell" => {
                        self.statement(child, at);
                    }
                    _ => self.inside(child, at),
                }
            }
        }
        self.depth -= 1;
    }

    /// Records that the parts from `start` on may run concurrently or repeatedly.
    fn mark_concurrent(&mut self, start: usize) {
        self.script.concurrent.push(start..self.script.parts.len());
    }

    fn sign(&mut self, node: Node<'_>) {
        if node.kind() == "&" {
            // A background command may run concurrently with any part of the line.
            self.script.concurrent.push(0..usize::MAX);
        }
        self.signs.insert((node.start_byte(), node.end_byte()));
    }
}
