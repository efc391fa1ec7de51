//! Redirections of input and output.

use tree_sitter::Node;

use super::{Directories, DirectoryFlow, TreeWalker, both, children, is_literal};
use crate::shell::CommandAction;

/// Files that discard or pass on what is written to them.
const SINKS: [&str; 3] = ["/dev/null", "/dev/stdout", "/dev/stderr"];

impl TreeWalker<'_> {
    pub(super) fn redirected(&mut self, node: Node<'_>, at: &Directories) -> DirectoryFlow {
        let mut flow = DirectoryFlow::unchanged(at);
        for child in children(node) {
            match child.kind() {
                // After a list it belongs to the last command, which runs where earlier ones have led.
                "file_redirect" | "herestring_redirect" => self.redirect(child, &both(at, &flow.either())),
                // The rest of the line runs where the command left it.
                "heredoc_redirect" => self.heredoc(child, &both(at, &flow.either())),
                _ if child.is_named() => flow = self.statement(child, at),
                _ => self.sign(child),
            }
        }
        flow
    }

    pub(super) fn redirect(&mut self, node: Node<'_>, at: &Directories) {
        let mut operator = "";
        let mut n_places = 0;
        for child in children(node) {
            match child.kind() {
                "file_descriptor" => {}
                kind if is_literal(kind) => {
                    n_places += 1;
                    self.place(child, operator, at);
                }
                _ if child.is_named() => self.doubt("has a redirection that cannot be read"),
                kind => operator = kind,
            }
        }
        if n_places != 1 {
            self.doubt("has words behind a redirection");
        }
    }

    fn place(&mut self, node: Node<'_>, operator: &str, at: &Directories) {
        let before = std::mem::take(&mut self.foreign);
        let word = self.word(node, at);
        self.record_text_variables(before);
        let text = format!("{operator} {}", word.raw);
        let is_descriptor = word.raw.chars().all(|character| character.is_ascii_digit());
        match operator {
            "<<<" => {}
            "<&" | ">&" if is_descriptor => {}
            "<" => self.add(&text, CommandAction::ReadFile(word), at),
            ">" | ">>" | ">|" | "&>" | "&>>" | ">&" => {
                if word.text().is_none_or(|text| !SINKS.contains(&text)) {
                    self.add(&text, CommandAction::WriteFile(word), at);
                }
            }
            _ => {
                self.doubt("has a redirection that is not followed");
                self.add(&text, CommandAction::WriteFile(word), at);
            }
        }
    }

    /// Records variables in a text for the command that reads it.
    fn record_text_variables(&mut self, before: Vec<String>) {
        let found = std::mem::replace(&mut self.foreign, before);
        self.script.variables.extend(found);
    }

    fn heredoc(&mut self, node: Node<'_>, at: &Directories) {
        for child in children(node) {
            match child.kind() {
                "file_descriptor" | "heredoc_end" => {}
                "heredoc_start" => {
                    self.words.insert((child.start_byte(), child.end_byte()));
                }
                "heredoc_body" => {
                    let before = std::mem::take(&mut self.foreign);
                    self.expansions(child, at);
                    self.record_text_variables(before);
                }
                "file_redirect" | "herestring_redirect" => self.redirect(child, at),
                "pipeline" => {
                    for statement in children(child).filter(Node::is_named) {
                        self.statement(statement, at);
                    }
                }
                kind if is_literal(kind) => {
                    self.doubt("has words behind the beginning of a text");
                    self.word(child, at);
                }
                // After `&&` or `||` the directory is not tracked further.
                _ if child.is_named() => {
                    let flow = self.statement(child, at);
                    if flow.either() != *at {
                        self.doubt("changes its directory behind the beginning of a text");
                    }
                }
                _ => self.sign(child),
            }
        }
    }
}
