//! The first reader of a command line: through the tree that the grammar makes of it.

mod commands;
mod expansions;
mod nodes;
mod redirects;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use tree_sitter::{Node, Parser};

use nodes::{children, is_literal};

use super::{BYTES_MAX, DEPTH_MAX, Deed, Part, Script, scan};

/// Where a path leads that is named in a directory.
type Resolve<'a> = &'a dyn Fn(&str, &Path) -> PathBuf;

/// Directories that a part may run in.
type Directories = Vec<PathBuf>;

/// Takes a command line apart that starts in a directory.
pub(crate) fn read(source: &str, directory: &Path, resolve: Resolve<'_>) -> Script {
    let mut walker = Walker::new(source, resolve);
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

/// The same line with plain letters in place of all others, byte for byte: to the shell they are letters, too, and the
/// grammar's own code cannot be given them without harm.
fn ascii(source: &str) -> String {
    let letters = |character: char| if character.is_ascii() { character } else { 'x' };
    source
        .chars()
        .flat_map(|character| std::iter::repeat_n(letters(character), character.len_utf8()))
        .collect()
}

/// Characters that are not what they look like, or do not look like anything.
fn is_hidden(character: char) -> bool {
    let is_format = matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{3164}' | '\u{115f}' | '\u{1160}'
        | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
    let is_space = character.is_whitespace() && !matches!(character, ' ' | '\t' | '\n');
    (character.is_control() && !matches!(character, '\t' | '\n')) || is_space || is_format
}

/// Where a line stands after a part of it: if that went well, and if not.
struct Flow {
    success: Directories,
    failure: Directories,
}

impl Flow {
    fn unmoved(at: &Directories) -> Flow {
        Flow { success: at.clone(), failure: at.clone() }
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

struct Walker<'a> {
    source: &'a str,
    resolve: Resolve<'a>,
    script: Script,
    /// Words that were found, to be compared with what the other reader finds.
    words: BTreeSet<(usize, usize)>,
    /// Where commands start.
    heads: BTreeSet<usize>,
    /// Signs and words of the grammar itself.
    signs: BTreeSet<(usize, usize)>,
    depth: usize,
    /// Whether the line may stand somewhere that it came to by a link: from there `cd ..` leads back, not up.
    is_linked: bool,
    /// Variables that the line sets itself, from what is known.
    set: BTreeSet<String>,
    /// Variables in the words of the command at hand that the line does not set.
    foreign: Vec<String>,
}

impl<'a> Walker<'a> {
    fn new(source: &'a str, resolve: Resolve<'a>) -> Walker<'a> {
        let (words, heads, signs) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Walker {
            source,
            resolve,
            script: Script::default(),
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

    fn add(&mut self, text: &str, deed: Deed, at: &Directories) {
        let (text, directories) = (String::from(text.trim()), at.clone());
        self.script.parts.push(Part { text, starts: Vec::new(), deed, directories, variables: Vec::new() });
    }

    /// Whether both readers found the same words, and the same ones at the start of commands.
    fn compare(&mut self) {
        let found = scan::words(self.source).map(|found| {
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

    /// Statements one after the other.
    fn sequence(&mut self, node: Node<'_>, at: &Directories) -> Flow {
        let mut flow = Flow::unmoved(at);
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

    fn statement(&mut self, node: Node<'_>, at: &Directories) -> Flow {
        self.depth += 1;
        let flow = if self.depth > DEPTH_MAX {
            self.doubt("is nested too deeply");
            Flow::unmoved(at)
        } else {
            self.statement_by_kind(node, at)
        };
        self.depth -= 1;
        flow
    }

    fn statement_by_kind(&mut self, node: Node<'_>, at: &Directories) -> Flow {
        match node.kind() {
            "comment" => Flow::unmoved(at),
            "command" => self.command(node, at),
            "redirected_statement" => self.redirected(node, at),
            "list" => self.list(node, at),
            "negated_command" => {
                let flow = self.sequence(node, at);
                Flow { success: flow.failure, failure: flow.success }
            }
            "compound_statement" if self.text(node.byte_range()).starts_with('{') => self.sequence(node, at),
            "pipeline" | "subshell" => self.aside(node, at),
            "variable_assignment" | "variable_assignments" => {
                self.assignment(node, at);
                Flow::unmoved(at)
            }
            "test_command" => {
                self.test(node, at);
                Flow::unmoved(at)
            }
            "if_statement" | "elif_clause" | "else_clause" | "while_statement" | "for_statement"
            | "do_group" => self.branches(node, at),
            other => {
                self.doubt(&format!("has something that is not followed ({})", other.replace('_', " ")));
                self.inside(node, at);
                Flow::unmoved(at)
            }
        }
    }

    fn list(&mut self, node: Node<'_>, at: &Directories) -> Flow {
        let is_and = children(node).any(|child| child.kind() == "&&");
        let mut statements = children(node).filter(Node::is_named).filter(|child| child.kind() != "comment");
        let (Some(left), Some(right), None) = (statements.next(), statements.next(), statements.next())
        else {
            self.doubt("has a list that cannot be read");
            self.inside(node, at);
            return Flow::unmoved(at);
        };
        let left = self.statement(left, at);
        let right = self.statement(right, if is_and { &left.success } else { &left.failure });
        if is_and {
            Flow { success: right.success, failure: both(&left.failure, &right.failure) }
        } else {
            Flow { success: both(&left.success, &right.success), failure: right.failure }
        }
    }

    /// What runs in shells of its own: wherever they go, the line itself stays.
    fn aside(&mut self, node: Node<'_>, at: &Directories) -> Flow {
        if node.kind() == "subshell" {
            self.sequence(node, at);
        } else {
            let start = self.script.parts.len();
            for child in children(node).filter(Node::is_named) {
                self.statement(child, at);
            }
            self.tangle(start);
        }
        Flow::unmoved(at)
    }

    /// What may run or not, or several times.
    fn branches(&mut self, node: Node<'_>, at: &Directories) -> Flow {
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
                    // What the variable of a loop becomes is no better known than what it is taken from.
                    if self.foreign.len() > n_foreign {
                        self.foreign.truncate(n_foreign);
                        self.forget(looped);
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
            self.tangle(start);
            if reached.len() != at.len() {
                self.doubt("changes its directory in a loop");
            }
        }
        Flow { success: reached.clone(), failure: reached }
    }

    /// Parts of something that is not followed, so that what must not run is found there, too.
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

    /// Notes that the parts from one on may run at the same time, or again after each other.
    fn tangle(&mut self, start: usize) {
        self.script.tangles.push(start..self.script.parts.len());
    }

    fn sign(&mut self, node: Node<'_>) {
        if node.kind() == "&" {
            // What goes on in the background may meet anything in the line.
            self.script.tangles.push(0..usize::MAX);
        }
        self.signs.insert((node.start_byte(), node.end_byte()));
    }
}
