//! Simple commands, assignments and tests.

use tree_sitter::Node;

use super::{Directories, Flow, Walker, children, is_literal};
use crate::shell::{Deed, Word};

/// Variables that change how programs talk, not what they run.
const HARMLESS: [&str; 9] = [
    "RUST_BACKTRACE",
    "RUST_LOG",
    "NO_COLOR",
    "FORCE_COLOR",
    "CARGO_TERM_COLOR",
    "CLICOLOR",
    "CI",
    "LANG",
    "LC_ALL",
];

/// Names in small letters that mean something to a shell nevertheless.
const SHELL_OWN: [&str; 8] = ["path", "cdpath", "fpath", "manpath", "prompt", "status", "argv", "ifs"];

/// Tests of files and strings that calculate nothing and assign nothing.
const TESTS: [&str; 16] =
    ["-f", "-d", "-e", "-r", "-w", "-x", "-s", "-L", "-h", "-z", "-n", "=", "==", "!=", "!", "&&"];

/// Commands after which it is not known where a line stands.
const WANDERERS: [&str; 3] = ["pushd", "popd", "chroot"];

impl Walker<'_> {
    pub(super) fn command(&mut self, node: Node<'_>, at: &Directories) -> Flow {
        let mut words: Vec<Word> = Vec::new();
        for child in children(node) {
            match child.kind() {
                "variable_assignment" => self.setting(child, at),
                "file_redirect" | "herestring_redirect" => self.redirect(child, at),
                "command_name" => {
                    let literal = child.child(0).unwrap_or(child);
                    let word = self.word(literal, at);
                    if !word.is_plain() {
                        self.doubt(&format!("names a command in a way that is not plain (`{}`)", word.raw));
                    }
                    words.push(word);
                }
                kind if is_literal(kind) => words.push(self.word(child, at)),
                _ => {
                    self.doubt("has a command that cannot be read");
                    self.inside(child, at);
                }
            }
        }
        let text = self.text(node.byte_range());
        match words.first().and_then(|word| word.text.as_deref()) {
            Some("cd") => return self.enter(words, text, at),
            Some(name) if WANDERERS.contains(&name) => {
                self.doubt("changes its directory in a way that is not followed")
            }
            _ => {}
        }
        self.add(text, Deed::Run(words), at);
        Flow::unmoved(at)
    }

    fn enter(&mut self, mut words: Vec<Word>, text: &str, at: &Directories) -> Flow {
        let place = if words.len() == 2 { words.pop() } else { None };
        let named =
            place.as_ref().and_then(Word::text).filter(|named| !named.starts_with('-') && !named.is_empty());
        let (Some(word), Some(named)) = (&place, named) else {
            self.doubt("changes its directory in a way that is not followed");
            self.add(text, Deed::Run(words), at);
            return Flow::unmoved(at);
        };
        let there = at.iter().map(|directory| (self.resolve)(named, directory)).collect();
        self.add(text, Deed::Enter(word.clone()), at);
        Flow { success: there, failure: at.clone() }
    }

    /// A variable set for one command.
    fn setting(&mut self, node: Node<'_>, at: &Directories) {
        self.words.insert((node.start_byte(), node.end_byte()));
        self.expansions(node, at);
        let text = self.text(node.byte_range());
        let is_simple = |character: char| character.is_ascii_alphanumeric() || "_.,=:@-".contains(character);
        let is_harmless = text
            .split_once('=')
            .is_some_and(|(name, value)| HARMLESS.contains(&name) && value.chars().all(is_simple));
        if !is_harmless {
            let name = text.split(['=', '+', '[']).next().unwrap_or_default();
            self.doubt(&format!("sets `{name}` for a command"));
        }
    }

    /// Variables set for the rest of the line.
    pub(super) fn assignment(&mut self, node: Node<'_>, at: &Directories) {
        if node.kind() == "variable_assignments" {
            for child in children(node).filter(Node::is_named) {
                self.assignment(child, at);
            }
            return;
        }
        self.words.insert((node.start_byte(), node.end_byte()));
        for child in children(node) {
            match child.kind() {
                "variable_name" => self.variable(child),
                kind if is_literal(kind) => self.expansions(child, at),
                _ if child.is_named() => {
                    self.doubt("sets a variable in a way that is not followed");
                    self.expansions(child, at);
                }
                _ => {}
            }
        }
    }

    /// A variable that is set may be one that programs look at: only names that no program looks at pass.
    pub(super) fn variable(&mut self, node: Node<'_>) {
        let name = self.text(node.byte_range());
        let is_small = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
        if !name.chars().all(is_small) || SHELL_OWN.contains(&name) {
            self.doubt(&format!("sets the variable `{name}`"));
        }
    }

    /// `[ … ]` and `[[ … ]]`: numbers and subscripts in them are calculated, and that may run commands.
    pub(super) fn test(&mut self, node: Node<'_>, at: &Directories) {
        self.expansions(node, at);
        self.test_signs(node);
    }

    fn test_signs(&mut self, node: Node<'_>) {
        for child in children(node) {
            self.signs.insert((child.start_byte(), child.end_byte()));
            let text = self.text(child.byte_range());
            let is_known = match child.kind() {
                "[" | "]" | "[[" | "]]" | "(" | ")" => true,
                "unary_expression" | "binary_expression" | "parenthesized_expression" => {
                    self.test_signs(child);
                    true
                }
                "string" | "raw_string" | "simple_expansion" | "number" => true,
                "word" => !text.starts_with('-') || TESTS.contains(&text),
                _ => TESTS.contains(&text) || text == "||",
            };
            if !is_known {
                self.doubt("has a test that is not followed");
            }
        }
    }
}
