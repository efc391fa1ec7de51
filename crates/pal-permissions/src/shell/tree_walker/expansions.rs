//! Words and the expansions inside them.

use tree_sitter::Node;

use super::{Directories, TreeWalker, children};
use crate::shell::{DEPTH_MAX, ShellWord, decode_word};

impl TreeWalker<'_> {
    /// Walks a word and the commands inside it.
    pub(super) fn word(&mut self, node: Node<'_>, at: &Directories) -> ShellWord {
        self.words.insert((node.start_byte(), node.end_byte()));
        self.expansions(node, at);
        let word = decode_word(self.text(node.byte_range()));
        if word.is_broken && node.kind() != "process_substitution" {
            self.doubt("has quoting that can be read differently");
        }
        word
    }

    /// Walks the expansions and substitutions inside a word.
    pub(super) fn expansions(&mut self, node: Node<'_>, at: &Directories) {
        self.depth += 1;
        match node.kind() {
            _ if self.depth > DEPTH_MAX => self.doubt("is nested too deeply"),
            "command_substitution" | "process_substitution" => self.substitution(node, at),
            "simple_expansion" => {
                // The grammar may include leading spaces.
                let name = self.text(node.byte_range()).trim_start().trim_start_matches('$');
                self.record_variable_use(name);
            }
            "expansion" => {
                let inside = self.text(node.byte_range()).trim_start_matches("${").trim_end_matches('}');
                self.record_variable_use(inside);
                if !inside.chars().all(|character| character.is_ascii_alphanumeric() || character == '_') {
                    self.doubt("has an expansion that may do more than name a variable");
                }
                self.inside(node, at);
            }
            "arithmetic_expansion" => {
                let is_number =
                    |character: char| character.is_ascii_digit() || "$(+-*/% )".contains(character);
                if !self.text(node.byte_range()).chars().all(is_number) {
                    self.doubt("calculates with more than numbers");
                }
                self.inside(node, at);
            }
            _ => {
                for child in children(node).filter(Node::is_named) {
                    self.expansions(child, at);
                }
            }
        }
        self.depth -= 1;
    }

    fn substitution(&mut self, node: Node<'_>, at: &Directories) {
        // The surrounding words belong to another command.
        let around = std::mem::take(&mut self.foreign);
        self.substituted(node, at);
        self.foreign = around;
    }

    fn substituted(&mut self, node: Node<'_>, at: &Directories) {
        let mut at = at.clone();
        for child in children(node) {
            match child.kind() {
                "file_redirect" => self.redirect(child, &at),
                _ if child.is_named() => at = self.statement(child, &at).either(),
                _ => self.sign(child),
            }
        }
    }
}
