//! Simple commands, assignments and tests.

use std::path::{Component, Path, PathBuf};

use tree_sitter::Node;

use super::{Directories, Flow, Walker, children, is_literal};
use crate::ground::normal;
use crate::shell::{Deed, Word, peel};

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

/// Variables of which anybody may know what they hold. Others may hold keys.
const HARMLESS_TO_SHOW: [&str; 45] = [
    "PWD",
    "OLDPWD",
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "TERM",
    "HOSTNAME",
    "TMPDIR",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "UID",
    "EUID",
    "PPID",
    "SHLVL",
    "RANDOM",
    "SECONDS",
    "LINENO",
    "COLUMNS",
    "LINES",
    "OSTYPE",
    "MACHTYPE",
    "HOSTTYPE",
    "BASH",
    "BASHPID",
    "BASH_VERSION",
    "VIRTUAL_ENV",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "CI",
    "NODE_ENV",
    "?",
    "#",
    "$",
    "!",
    "-",
    "0",
    "@",
    "*",
    "_",
];

/// Names in small letters that mean something to a shell nevertheless.
const SHELL_OWN: [&str; 8] = ["path", "cdpath", "fpath", "manpath", "prompt", "status", "argv", "ifs"];

/// Tests of files and strings that calculate nothing and assign nothing.
const TESTS: [&str; 15] =
    ["-f", "-d", "-e", "-r", "-w", "-x", "-s", "-L", "-h", "-z", "-n", "=", "==", "!=", "!"];

/// Commands after which it is not known where a line stands.
const WANDERERS: [&str; 3] = ["pushd", "popd", "chroot"];

impl Walker<'_> {
    pub(super) fn command(&mut self, node: Node<'_>, at: &Directories) -> Flow {
        let mut words: Vec<Word> = Vec::new();
        let mut starts = Vec::new();
        let before = std::mem::take(&mut self.foreign);
        for child in children(node) {
            match child.kind() {
                "variable_assignment" => self.setting(child, at),
                "file_redirect" | "herestring_redirect" => self.redirect(child, at),
                "command_name" => {
                    let literal = child.child(0).unwrap_or(child);
                    self.heads.insert(literal.start_byte());
                    starts.push(literal.start_byte());
                    let word = self.word(literal, at);
                    if !word.is_plain() {
                        self.doubt(&format!("names a command in a way that is not plain (`{}`)", word.raw));
                    }
                    words.push(word);
                }
                kind if is_literal(kind) => {
                    starts.push(child.start_byte());
                    words.push(self.word(child, at));
                }
                _ => {
                    self.doubt("has a command that cannot be read");
                    self.inside(child, at);
                }
            }
        }
        let variables = std::mem::replace(&mut self.foreign, before);
        let text = self.text(node.byte_range());
        match words.first().and_then(|word| word.text.as_deref()) {
            Some("cd") => return self.enter(words, text, at),
            Some(name) if WANDERERS.contains(&name) => {
                self.doubt("changes its directory in a way that is not followed")
            }
            _ => {}
        }
        self.tee(&words, text, at);
        self.add(text, Deed::Run(words), at);
        if let Some(part) = self.script.parts.last_mut() {
            part.variables = variables;
            part.starts = starts;
        }
        Flow::unmoved(at)
    }

    /// Files that `tee` writes to are like those behind `>`.
    fn tee(&mut self, words: &[Word], text: &str, at: &Directories) {
        let words = peel(words);
        if words.first().and_then(Word::text).is_none_or(|name| name.rsplit('/').next() != Some("tee")) {
            return;
        }
        let mut are_options = true;
        for word in &words[1..] {
            let is_option = are_options && word.raw.starts_with('-') && word.raw != "-";
            are_options &= word.raw != "--";
            if !is_option && word.text() != Some("/dev/null") {
                self.add(text, Deed::Put(word.clone()), at);
            }
        }
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
        if at.iter().any(|directory| self.is_logical(named, directory)) {
            self.doubt("goes up from where a link may have led");
        }
        let there = at.iter().map(|directory| (self.resolve)(named, directory)).collect();
        self.add(text, Deed::Enter(word.clone()), at);
        Flow { success: there, failure: at.clone() }
    }

    /// Whether the shell may go elsewhere than the path leads: it takes `..` for the way back to where it was before a
    /// link, not for the folder above. Notes whether a link was followed.
    fn is_logical(&mut self, named: &str, directory: &Path) -> bool {
        let mut so_far = PathBuf::new();
        let (mut is_up, mut is_linked) = (false, self.is_linked);
        for component in Path::new(named).components() {
            is_up |= component == Component::ParentDir;
            so_far.push(component);
            let place = (self.resolve)(&so_far.to_string_lossy(), directory);
            is_linked |= place != normal(&directory.join(&so_far));
        }
        self.is_linked = is_linked;
        is_up && is_linked
    }

    /// A variable set for one command.
    fn setting(&mut self, node: Node<'_>, at: &Directories) {
        self.words.insert((node.start_byte(), node.end_byte()));
        self.heads.insert(node.start_byte());
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
        self.heads.insert(node.start_byte());
        let before = std::mem::take(&mut self.foreign);
        let mut name = None;
        for child in children(node) {
            match child.kind() {
                "variable_name" => {
                    self.variable(child);
                    name = Some(child);
                }
                kind if is_literal(kind) => self.expansions(child, at),
                _ if child.is_named() => {
                    self.doubt("sets a variable in a way that is not followed");
                    self.expansions(child, at);
                }
                _ => {}
            }
        }
        let is_known = std::mem::replace(&mut self.foreign, before).is_empty();
        match name {
            Some(name) if is_known => drop(self.set.insert(String::from(self.text(name.byte_range())))),
            name => self.forget(name),
        }
    }

    /// A variable is put in place of its name.
    pub(super) fn recall(&mut self, name: &str) {
        if !self.set.contains(name) && !HARMLESS_TO_SHOW.contains(&name) && !name.is_empty() {
            self.foreign.push(String::from(name));
        }
    }

    /// A variable is no longer known to hold what the line gave it.
    pub(super) fn forget(&mut self, name: Option<Node<'_>>) {
        if let Some(name) = name {
            self.set.remove(self.text(name.byte_range()));
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
            let text = self.text(child.byte_range());
            let is_known = match child.kind() {
                "[" | "[[" => {
                    self.sign(child);
                    continue;
                }
                "unary_expression" | "binary_expression" => {
                    self.test_signs(child);
                    continue;
                }
                "]" | "]]" | "string" | "raw_string" | "simple_expansion" | "number" => true,
                "word" => !text.starts_with('-') || TESTS.contains(&text),
                _ => TESTS.contains(&text),
            };
            self.words.insert((child.start_byte(), child.end_byte()));
            if !is_known {
                self.doubt("has a test that is not followed");
            }
        }
    }
}
