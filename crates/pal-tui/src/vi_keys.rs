//! Keys of vi for the prompt editor: two modes, motions, operators, counts, one register, undo and repeat.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::editor::Editor;

/// Maximum number of kept versions for undo.
const VERSIONS_MAX: usize = 100;

/// State of the keys.
#[derive(Default)]
pub(crate) struct ViKeys {
    is_normal: bool,
    pending: PendingKeys,
    register: Register,
    /// Earlier versions of the text with the cursor, oldest first.
    versions: Vec<(String, usize)>,
    /// Keys of the last change, for `.`.
    last_change: Vec<KeyEvent>,
    /// Keys of the change that is under way.
    recorded: Vec<KeyEvent>,
    is_repeating: bool,
}

/// Keys of a command that is not complete yet.
#[derive(Clone, Copy, Default)]
struct PendingKeys {
    count: usize,
    operator: Option<(Operator, usize)>,
    /// Key that waits for a character: `f`, `F`, `t`, `T`, `r` or `g`.
    prefix: Option<char>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Delete,
    Change,
    Yank,
}

/// Deleted or yanked text.
#[derive(Clone, Default)]
struct Register {
    text: String,
    is_lines: bool,
}

/// Effect of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ViOutcome {
    /// The key was handled.
    Handled,
    /// The key has its usual meaning.
    PassedOn,
}

/// Target of a motion.
#[derive(Clone, Copy)]
struct Motion {
    to: usize,
    /// The character at the target belongs to the range of an operator.
    is_inclusive: bool,
    /// An operator works on whole lines.
    is_lines: bool,
}

impl Motion {
    fn exclusive(to: usize) -> Motion {
        Motion { to, is_inclusive: false, is_lines: false }
    }

    fn inclusive(to: usize) -> Motion {
        Motion { is_inclusive: true, ..Motion::exclusive(to) }
    }

    fn lines(to: usize) -> Motion {
        Motion { is_lines: true, ..Motion::exclusive(to) }
    }
}

impl ViKeys {
    /// True outside insert mode.
    pub(crate) fn is_normal(&self) -> bool {
        self.is_normal
    }

    /// Name of the mode for the status line.
    pub(crate) fn mode_name(&self) -> &'static str {
        if self.is_normal { "NORMAL" } else { "INSERT" }
    }

    /// Starts again in insert mode, for an empty editor.
    pub(crate) fn reset(&mut self) {
        self.is_normal = false;
        self.pending = PendingKeys::default();
        self.versions.clear();
        self.recorded.clear();
    }

    /// Handles a key.
    pub(crate) fn key(&mut self, key: &KeyEvent, editor: &mut Editor) -> ViOutcome {
        let is_plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match (self.is_normal, key.code) {
            (false, KeyCode::Esc) => {
                self.record(key);
                self.leave_insert(editor);
                ViOutcome::Handled
            }
            (false, _) => {
                self.record(key);
                ViOutcome::PassedOn
            }
            (true, KeyCode::Esc) if self.is_pending() => {
                self.pending = PendingKeys::default();
                self.recorded.clear();
                ViOutcome::Handled
            }
            (true, KeyCode::Char(character)) if is_plain => {
                self.record(key);
                self.normal(character, editor);
                ViOutcome::Handled
            }
            (true, KeyCode::Backspace) => {
                editor.left();
                ViOutcome::Handled
            }
            (true, _) => ViOutcome::PassedOn,
        }
    }

    fn is_pending(&self) -> bool {
        let PendingKeys { count, operator, prefix } = self.pending;
        count > 0 || operator.is_some() || prefix.is_some()
    }

    fn record(&mut self, key: &KeyEvent) {
        if !self.is_repeating && (self.is_normal || !self.recorded.is_empty()) {
            self.recorded.push(*key);
        }
    }

    fn leave_insert(&mut self, editor: &mut Editor) {
        self.is_normal = true;
        self.end_change();
        if editor.cursor() > line_start(editor.text(), editor.cursor()) {
            editor.left();
        }
    }

    /// The recorded keys are the last change.
    fn end_change(&mut self) {
        if !self.is_repeating && !self.recorded.is_empty() {
            self.last_change = std::mem::take(&mut self.recorded);
        }
    }

    /// Drops recorded keys: the command changed nothing.
    fn end_motion(&mut self) {
        self.pending = PendingKeys::default();
        if !self.is_repeating {
            self.recorded.clear();
        }
    }

    fn normal(&mut self, character: char, editor: &mut Editor) {
        if let Some(prefix) = self.pending.prefix.take() {
            return self.prefixed(prefix, character, editor);
        }
        match character {
            '1'..='9' => self.add_digit(character),
            '0' if self.pending.count > 0 => self.add_digit(character),
            'f' | 'F' | 't' | 'T' | 'g' => self.pending.prefix = Some(character),
            'r' if self.pending.operator.is_none() => self.pending.prefix = Some(character),
            'd' => self.operator(Operator::Delete, editor),
            'c' => self.operator(Operator::Change, editor),
            'y' => self.operator(Operator::Yank, editor),
            _ => match self.motion(character, editor) {
                Some(motion) => self.apply(motion, editor),
                None => self.command(character, editor),
            },
        }
    }

    fn add_digit(&mut self, digit: char) {
        let digit = digit as usize - '0' as usize;
        self.pending.count = (self.pending.count * 10 + digit).min(9_999);
    }

    /// Count of a motion: that of the operator times its own.
    fn count(&self) -> usize {
        let of_operator = self.pending.operator.map_or(1, |(_, count)| count.max(1));
        of_operator * self.pending.count.max(1)
    }

    fn operator(&mut self, operator: Operator, editor: &mut Editor) {
        match self.pending.operator {
            None => {
                self.pending.operator = Some((operator, self.pending.count));
                self.pending.count = 0;
            }
            // A doubled operator works on lines.
            Some((known, _)) if known == operator => {
                let text = editor.text();
                let mut end = line_end(text, editor.cursor());
                for _ in 1..self.count() {
                    end = line_end(text, (end + 1).min(text.len()));
                }
                self.apply(Motion::lines(end), editor);
            }
            Some(_) => self.end_motion(),
        }
    }

    fn prefixed(&mut self, prefix: char, character: char, editor: &mut Editor) {
        let (text, at) = (editor.text(), editor.cursor());
        match prefix {
            'g' if character == 'g' => self.apply(Motion::lines(0), editor),
            'r' => {
                let end = next_character(text, at);
                if end > at && end <= line_end(text, at) {
                    self.keep_version(editor);
                    editor.replace(at..end, character.encode_utf8(&mut [0; 4]));
                    editor.move_to(at);
                    self.pending = PendingKeys::default();
                    self.end_change();
                } else {
                    self.end_motion();
                }
            }
            'f' | 't' => {
                let line = &text[at..line_end(text, at)];
                let found = line.match_indices(character).filter(|(offset, _)| *offset > 0);
                match found.map(|(offset, _)| at + offset).nth(self.count() - 1) {
                    Some(found) if prefix == 'f' => self.apply(Motion::inclusive(found), editor),
                    Some(found) => self.apply(Motion::inclusive(previous_character(text, found)), editor),
                    None => self.end_motion(),
                }
            }
            'F' | 'T' => {
                let start = line_start(text, at);
                let found = text[start..at].rmatch_indices(character).nth(self.count() - 1);
                match found.map(|(offset, _)| start + offset) {
                    Some(found) if prefix == 'F' => self.apply(Motion::exclusive(found), editor),
                    Some(found) => self.apply(Motion::exclusive(next_character(text, found)), editor),
                    None => self.end_motion(),
                }
            }
            _ => self.end_motion(),
        }
    }

    fn motion(&self, character: char, editor: &Editor) -> Option<Motion> {
        let (text, at, count) = (editor.text(), editor.cursor(), self.count());
        let repeat = |step: &dyn Fn(usize) -> usize| (0..count).fold(at, |at, _| step(at));
        Some(match character {
            'h' => Motion::exclusive(repeat(&|at| previous_character(text, at).max(line_start(text, at)))),
            'l' | ' ' => Motion::exclusive(repeat(&|at| next_character(text, at).min(line_end(text, at)))),
            'w' | 'W' => Motion::exclusive(repeat(&|at| next_word(text, at, character == 'W'))),
            'b' | 'B' => Motion::exclusive(repeat(&|at| previous_word(text, at, character == 'B'))),
            'e' | 'E' => Motion::inclusive(repeat(&|at| word_end(text, at, character == 'E'))),
            '0' => Motion::exclusive(line_start(text, at)),
            '^' => Motion::exclusive(first_letter(text, at)),
            '$' => Motion::exclusive(line_end(text, at)),
            'j' => Motion::lines(repeat(&|at| line_below(text, at))),
            'k' => Motion::lines(repeat(&|at| line_above(text, at))),
            'G' => Motion::lines(text.len()),
            _ => return None,
        })
    }

    /// Moves the cursor, or applies the pending operator to the range.
    fn apply(&mut self, motion: Motion, editor: &mut Editor) {
        let at = editor.cursor();
        let Some((operator, _)) = self.pending.operator else {
            let text = editor.text();
            let to = if motion.is_lines { same_column(text, at, motion.to) } else { motion.to };
            editor.move_to(on_character(text, to));
            return self.end_motion();
        };
        let text = editor.text();
        let (from, to) = (at.min(motion.to), at.max(motion.to));
        let (from, to) = match motion {
            Motion { is_lines: true, .. } => (line_start(text, from), line_end(text, to)),
            Motion { is_inclusive: true, .. } => (from, next_character(text, to)),
            // `cw` changes the word without the space after it.
            _ if operator == Operator::Change => {
                (from, from + text[from..to].trim_end().len().max(1).min(to - from))
            }
            _ => (from, to),
        };
        self.register = Register { text: text[from..to].to_owned(), is_lines: motion.is_lines };
        self.pending = PendingKeys::default();
        match operator {
            Operator::Yank => {
                if !motion.is_lines {
                    editor.move_to(from);
                }
                self.end_motion();
            }
            Operator::Delete => {
                self.keep_version(editor);
                self.delete(from, to, motion.is_lines, editor);
                self.end_change();
            }
            Operator::Change => {
                self.keep_version(editor);
                editor.replace(from..to, "");
                self.is_normal = false;
            }
        }
    }

    fn delete(&mut self, from: usize, to: usize, is_lines: bool, editor: &mut Editor) {
        let text = editor.text();
        let (from, to) = match is_lines {
            // A line break goes with its line: the one after it, or else the one before.
            true if to < text.len() => (from, to + 1),
            true => (from.saturating_sub(1), to),
            false => (from, to),
        };
        editor.replace(from..to, "");
        let at = if is_lines { first_letter(editor.text(), from.min(editor.text().len())) } else { from };
        editor.move_to(on_character(editor.text(), at));
    }

    fn command(&mut self, character: char, editor: &mut Editor) {
        // An operator with a key that is no motion does nothing.
        if self.pending.operator.is_some() {
            return self.end_motion();
        }
        let (text, at) = (editor.text(), editor.cursor());
        let (start, end) = (line_start(text, at), line_end(text, at));
        let after = (0..self.count()).fold(at, |at, _| next_character(text, at)).min(end);
        match character {
            'i' => self.insert_at(at, editor),
            'a' => self.insert_at(next_character(text, at).min(end), editor),
            'I' => self.insert_at(first_letter(text, at), editor),
            'A' => self.insert_at(end, editor),
            'o' => self.open_line(end, end + 1, editor),
            'O' => self.open_line(start, start, editor),
            'x' => self.cut(at, after, editor),
            'X' => self.cut(previous_character(text, at).max(start), at, editor),
            'D' => self.cut(at, end, editor),
            'C' => self.substitute(at, end, editor),
            's' => self.substitute(at, after, editor),
            'S' => self.substitute(start, end, editor),
            'Y' => {
                self.register = Register { text: text[start..end].to_owned(), is_lines: true };
                self.end_motion();
            }
            'p' | 'P' => self.put(character == 'p', editor),
            'J' => self.join(end, editor),
            '~' => self.toggle_case(at, after, editor),
            'u' => self.undo(editor),
            '.' => self.repeat(editor),
            _ => self.end_motion(),
        }
    }

    fn insert_at(&mut self, at: usize, editor: &mut Editor) {
        self.keep_version(editor);
        editor.move_to(at);
        self.is_normal = false;
        self.pending = PendingKeys::default();
    }

    fn open_line(&mut self, at: usize, cursor: usize, editor: &mut Editor) {
        self.insert_at(at, editor);
        editor.insert("\n");
        editor.move_to(cursor);
    }

    fn cut(&mut self, from: usize, to: usize, editor: &mut Editor) {
        if from == to {
            return self.end_motion();
        }
        self.keep_version(editor);
        self.register = Register { text: editor.text()[from..to].to_owned(), is_lines: false };
        self.pending = PendingKeys::default();
        self.delete(from, to, false, editor);
        self.end_change();
    }

    fn substitute(&mut self, from: usize, to: usize, editor: &mut Editor) {
        self.register = Register { text: editor.text()[from..to].to_owned(), is_lines: false };
        self.keep_version(editor);
        editor.replace(from..to, "");
        self.is_normal = false;
        self.pending = PendingKeys::default();
    }

    fn put(&mut self, is_after: bool, editor: &mut Editor) {
        let Register { text: put, is_lines } = self.register.clone();
        if put.is_empty() {
            return self.end_motion();
        }
        let put = put.repeat(self.count());
        self.keep_version(editor);
        let (text, at) = (editor.text(), editor.cursor());
        match (is_lines, is_after) {
            (true, true) => {
                let end = line_end(text, at);
                editor.replace(end..end, &format!("\n{put}"));
                editor.move_to(end + 1);
            }
            (true, false) => {
                let start = line_start(text, at);
                editor.replace(start..start, &format!("{put}\n"));
                editor.move_to(start);
            }
            (false, _) => {
                let end = line_end(text, at);
                let at = if is_after { next_character(text, at).min(end) } else { at };
                editor.replace(at..at, &put);
                editor.move_to(previous_character(editor.text(), at + put.len()));
            }
        }
        self.pending = PendingKeys::default();
        self.end_change();
    }

    fn join(&mut self, end: usize, editor: &mut Editor) {
        let text = editor.text();
        if end == text.len() {
            return self.end_motion();
        }
        let next = end + 1 + text[end + 1..].len() - text[end + 1..].trim_start_matches([' ', '\t']).len();
        self.keep_version(editor);
        editor.replace(end..next, " ");
        editor.move_to(end);
        self.pending = PendingKeys::default();
        self.end_change();
    }

    fn toggle_case(&mut self, from: usize, to: usize, editor: &mut Editor) {
        let toggled: String = editor.text()[from..to]
            .chars()
            .flat_map(|c| {
                if c.is_uppercase() {
                    c.to_lowercase().collect::<Vec<_>>()
                } else {
                    c.to_uppercase().collect()
                }
            })
            .collect();
        self.keep_version(editor);
        editor.replace(from..to, &toggled);
        editor.move_to(on_character(editor.text(), from + toggled.len()));
        self.pending = PendingKeys::default();
        self.end_change();
    }

    fn keep_version(&mut self, editor: &Editor) {
        if self.versions.len() == VERSIONS_MAX {
            self.versions.remove(0);
        }
        self.versions.push((editor.text().to_owned(), editor.cursor()));
    }

    fn undo(&mut self, editor: &mut Editor) {
        for _ in 0..self.count() {
            let Some((text, cursor)) = self.versions.pop() else { break };
            let all = editor.text().len();
            editor.replace(0..all, &text);
            editor.move_to(on_character(editor.text(), cursor));
        }
        self.end_motion();
    }

    /// Repeats the last change.
    fn repeat(&mut self, editor: &mut Editor) {
        self.end_motion();
        self.is_repeating = true;
        for key in self.last_change.clone() {
            if self.key(&key, editor) == ViOutcome::PassedOn {
                match key.code {
                    KeyCode::Char(character) => editor.insert(character.encode_utf8(&mut [0; 4])),
                    KeyCode::Backspace => editor.backspace(),
                    _ => {}
                }
            }
        }
        self.is_repeating = false;
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |at| at + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |offset| at + offset)
}

/// First character of the line that is no space.
fn first_letter(text: &str, at: usize) -> usize {
    let (start, end) = (line_start(text, at), line_end(text, at));
    let line = &text[start..end];
    start + line.len() - line.trim_start_matches([' ', '\t']).len()
}

fn next_character(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(0, char::len_utf8)
}

fn previous_character(text: &str, at: usize) -> usize {
    at - text[..at].chars().next_back().map_or(0, char::len_utf8)
}

/// The cursor of normal mode stands on a character, not behind the line.
fn on_character(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    if at == line_end(text, at) { previous_character(text, at).max(line_start(text, at)) } else { at }
}

fn line_below(text: &str, at: usize) -> usize {
    let end = line_end(text, at);
    if end == text.len() { at } else { same_column(text, at, end + 1) }
}

fn line_above(text: &str, at: usize) -> usize {
    let start = line_start(text, at);
    if start == 0 { at } else { same_column(text, at, start - 1) }
}

/// Position in the line of `to` at the column of `at`.
fn same_column(text: &str, at: usize, to: usize) -> usize {
    let to = to.min(text.len());
    let column = text[line_start(text, at)..at].chars().count();
    let (start, end) = (line_start(text, to), line_end(text, to));
    text[start..end].char_indices().nth(column).map_or(end, |(offset, _)| start + offset)
}

/// Class of a character: words are runs of the same class.
fn class(character: char, is_big: bool) -> u8 {
    match character {
        c if c.is_whitespace() => 0,
        c if is_big || c.is_alphanumeric() || c == '_' => 1,
        _ => 2,
    }
}

fn next_word(text: &str, at: usize, is_big: bool) -> usize {
    let mut characters = text[at..].char_indices();
    let Some((_, first)) = characters.next() else { return at };
    let mut known = class(first, is_big);
    for (offset, character) in characters {
        let found = class(character, is_big);
        if found != 0 && found != known {
            return at + offset;
        }
        known = found;
    }
    text.len()
}

fn previous_word(text: &str, at: usize, is_big: bool) -> usize {
    let before = text[..at].trim_end();
    let Some(last) = before.chars().next_back() else { return 0 };
    let wanted = class(last, is_big);
    before.trim_end_matches(|c| class(c, is_big) == wanted).len()
}

fn word_end(text: &str, at: usize, is_big: bool) -> usize {
    let from = next_character(text, at);
    let rest = &text[from..];
    let start = from + rest.len() - rest.trim_start().len();
    let Some(first) = text[start..].chars().next() else { return previous_character(text, text.len()) };
    let wanted = class(first, is_big);
    let word = text[start..].find(|c| class(c, is_big) != wanted).map_or(text.len(), |offset| start + offset);
    previous_character(text, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types keys from normal mode at the start of a text; `\x1b` is Esc. Returns the text with the cursor as `|`.
    fn typed(text: &str, keys: &str) -> String {
        let mut editor = Editor::default();
        editor.insert(text);
        editor.move_to(0);
        let mut vi = ViKeys { is_normal: true, ..ViKeys::default() };
        for key in keys.chars() {
            let code = if key == '\x1b' { KeyCode::Esc } else { KeyCode::Char(key) };
            if vi.key(&KeyEvent::from(code), &mut editor) == ViOutcome::PassedOn {
                editor.insert(key.encode_utf8(&mut [0; 4]));
            }
        }
        let mut shown = editor.text().to_owned();
        shown.insert(editor.cursor(), '|');
        shown
    }

    #[test]
    fn motions_and_operators() {
        for (text, keys, expected) in [
            ("one two, three", "w", "one |two, three"),
            ("one two, three", "ww", "one two|, three"),
            ("one two, three", "2W", "one two, |three"),
            ("one two", "e", "on|e two"),
            ("one two", "$", "one tw|o"),
            ("one two", "$b", "one |two"),
            ("  one", "^", "  |one"),
            ("one two", "fo", "one tw|o"),
            ("one two", "fz", "|one two"),
            ("one two", "fw", "one t|wo"),
            ("one two", "tw", "one |two"),
            ("a\nbb\nccc", "jl", "a\nb|b\nccc"),
            ("a\nbb\nccc", "G", "a\nbb\n|ccc"),
            ("a\nbb\nccc", "Ggg", "|a\nbb\nccc"),
            ("one two", "x", "|ne two"),
            ("one two", "3x", "| two"),
            ("one two", "dw", "|two"),
            ("one two three", "2dw", "|three"),
            ("one two", "D", "|"),
            ("one two", "wD", "one| "),
            ("a\nb\nc", "dd", "|b\nc"),
            ("a\nb\nc", "jdd", "a\n|c"),
            ("a\nb\nc", "Gdd", "a\n|b"),
            ("a\nb\nc", "ddp", "b\n|a\nc"),
            ("a b", "wyw0P", "|ba b"),
            ("one", "rX", "|Xne"),
            ("one", "~~", "ON|e"),
            ("a\n  b", "J", "a| b"),
            ("one two", "df ", "|two"),
            ("one two", "wdT", "one |two"),
        ] {
            assert_eq!(typed(text, keys), expected, "{text:?} {keys:?}");
        }
    }

    #[test]
    fn changes_insert_undo_and_repeat() {
        for (text, keys, expected) in [
            ("one two", "cwsix\x1b", "si|x two"),
            ("one two", "ccnew\x1b", "ne|w"),
            ("one", "A!\x1b", "one|!"),
            ("one", "Ix\x1b", "|xone"),
            ("one", "otwo\x1b", "one\ntw|o"),
            ("one", "Otwo\x1b", "tw|o\none"),
            ("one", "ax\x1b", "o|xne"),
            ("one two", "dwu", "|one two"),
            ("one two three", "dw.", "|three"),
            ("a b c", "cwx\x1bw.", "x |x c"),
            ("one two", "xxuu", "|one two"),
            ("one two", "d\x1bx", "|ne two"),
            ("äöü", "lx", "ä|ü"),
        ] {
            assert_eq!(typed(text, keys), expected, "{text:?} {keys:?}");
        }
    }

    #[test]
    fn insert_mode_passes_keys_on_and_escape_leaves_it() {
        let mut editor = Editor::default();
        let mut vi = ViKeys::default();
        assert_eq!(vi.key(&KeyEvent::from(KeyCode::Char('d')), &mut editor), ViOutcome::PassedOn);
        assert_eq!(vi.mode_name(), "INSERT");
        assert_eq!(vi.key(&KeyEvent::from(KeyCode::Esc), &mut editor), ViOutcome::Handled);
        assert_eq!(vi.mode_name(), "NORMAL");
        // A second Esc stops the agent, and Enter sends.
        for code in [KeyCode::Esc, KeyCode::Enter, KeyCode::Up] {
            assert_eq!(vi.key(&KeyEvent::from(code), &mut editor), ViOutcome::PassedOn);
        }
    }
}
