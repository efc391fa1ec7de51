//! Simple commands, assignments and tests.

use std::path::{Component, Path, PathBuf};

use tree_sitter::Node;

use super::{Directories, DirectoryFlow, TreeWalker, children, is_literal};
use crate::permission_context::normalize;
use crate::shell::{CommandAction, ShellWord, strip_wrappers};

/// Variables that change the output of programs, not what they run.
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

/// Variables whose values are not secret. Others may hold keys.
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

/// Lower-case names with a meaning to shells.
const SHELL_OWN: [&str; 8] = ["path", "cdpath", "fpath", "manpath", "prompt", "status", "argv", "ifs"];

/// Tests of files and strings that neither calculate nor assign.
const TESTS: [&str; 15] =
    ["-f", "-d", "-e", "-r", "-w", "-x", "-s", "-L", "-h", "-z", "-n", "=", "==", "!=", "!"];

/// Commands that change the directory in an untracked way.
const DIRECTORY_CHANGERS: [&str; 3] = ["pushd", "popd", "chroot"];

impl TreeWalker<'_> {
    pub(super) fn command(&mut self, node: Node<'_>, at: &Directories) -> DirectoryFlow {
        let mut words: Vec<ShellWord> = Vec::new();
        let mut starts = Vec::new();
        let before = std::mem::take(&mut self.foreign);
        for child in children(node) {
            match child.kind() {
                "variable_assignment" => self.walk_environment_assignment(child, at),
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
            Some("cd") => return self.walk_cd(words, text, at),
            Some(name) if DIRECTORY_CHANGERS.contains(&name) => {
                self.doubt("changes its directory in a way that is not followed")
            }
            _ => {}
        }
        self.tee(&words, text, at);
        self.add(text, CommandAction::Run(words), at);
        if let Some(part) = self.script.parts.last_mut() {
            part.variables = variables;
            part.starts = starts;
        }
        DirectoryFlow::unchanged(at)
    }

    /// Adds the files that `tee` writes, like those after `>`.
    fn tee(&mut self, words: &[ShellWord], text: &str, at: &Directories) {
        let words = strip_wrappers(words);
        if words.first().and_then(ShellWord::text).is_none_or(|name| name.rsplit('/').next() != Some("tee")) {
            return;
        }
        let mut are_options = true;
        for word in &words[1..] {
            let is_option = are_options && word.raw.starts_with('-') && word.raw != "-";
            are_options &= word.raw != "--";
            if !is_option && word.text() != Some("/dev/null") {
                self.add(text, CommandAction::WriteFile(word.clone()), at);
            }
        }
    }

    fn walk_cd(&mut self, mut words: Vec<ShellWord>, text: &str, at: &Directories) -> DirectoryFlow {
        let place = if words.len() == 2 { words.pop() } else { None };
        let named = place
            .as_ref()
            .and_then(ShellWord::text)
            .filter(|named| !named.starts_with('-') && !named.is_empty());
        let (Some(word), Some(named)) = (&place, named) else {
            self.doubt("changes its directory in a way that is not followed");
            self.add(text, CommandAction::Run(words), at);
            return DirectoryFlow::unchanged(at);
        };
        if at.iter().any(|directory| self.is_logical(named, directory)) {
            self.doubt("goes up from where a link may have led");
        }
        let there = at.iter().map(|directory| (self.resolve)(named, directory)).collect();
        self.add(text, CommandAction::ChangeDirectory(word.clone()), at);
        DirectoryFlow { success: there, failure: at.clone() }
    }

    /// Returns whether the shell may resolve `..` differently: it goes back to where it was before a link,
    /// not to the folder above. Records whether a link was followed.
    fn is_logical(&mut self, named: &str, directory: &Path) -> bool {
        let mut so_far = PathBuf::new();
        let (mut is_up, mut is_linked) = (false, self.is_linked);
        for component in Path::new(named).components() {
            is_up |= component == Component::ParentDir;
            so_far.push(component);
            let place = (self.resolve)(&so_far.to_string_lossy(), directory);
            is_linked |= place != normalize(&directory.join(&so_far));
        }
        self.is_linked = is_linked;
        is_up && is_linked
    }

    /// Walks an assignment for one command.
    fn walk_environment_assignment(&mut self, node: Node<'_>, at: &Directories) {
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

    /// Walks an assignment for the rest of the line.
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
            name => self.forget_variable(name),
        }
    }

    /// Records the use of a variable.
    pub(super) fn record_variable_use(&mut self, name: &str) {
        if !self.set.contains(name) && !HARMLESS_TO_SHOW.contains(&name) && !name.is_empty() {
            self.foreign.push(String::from(name));
        }
    }

    /// Forgets that the line set a variable.
    pub(super) fn forget_variable(&mut self, name: Option<Node<'_>>) {
        if let Some(name) = name {
            self.set.remove(self.text(name.byte_range()));
        }
    }

    /// Adds a doubt for an assigned variable that programs may read: only lower-case names without a meaning
    /// pass.
    pub(super) fn variable(&mut self, node: Node<'_>) {
        let name = self.text(node.byte_range());
        let is_small = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
        if !name.chars().all(is_small) || SHELL_OWN.contains(&name) {
            self.doubt(&format!("sets the variable `{name}`"));
        }
    }

    /// Walks `[ … ]` and `[[ … ]]`: numbers and subscripts in them are calculated, and that may run commands.
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
