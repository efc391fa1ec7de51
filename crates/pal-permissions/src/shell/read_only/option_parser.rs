//! Parser for options with their values and operands.

/// Options of a read-only command. Any other option makes it ask.
#[derive(Clone, Copy)]
pub(super) struct OptionTable {
    /// Letters without a value.
    pub(super) letters: &'static str,
    /// Letters with a value, in the same word or in the next.
    pub(super) letters_with_value: &'static str,
    /// Words after two dashes without a value, or with one in the same word; separated by spaces.
    pub(super) long: &'static str,
    /// Words after two dashes with a value, in the same word or the next; separated by spaces.
    pub(super) long_with_value: &'static str,
}

/// Table from its fields in order.
pub(super) const fn table(
    letters: &'static str,
    letters_with_value: &'static str,
    long: &'static str,
    long_with_value: &'static str,
) -> OptionTable {
    OptionTable { letters, letters_with_value, long, long_with_value }
}

impl OptionTable {
    /// No options at all.
    pub(super) const NONE: OptionTable =
        OptionTable { letters: "", letters_with_value: "", long: "", long_with_value: "" };
}

/// Argument of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CommandArgument<'a> {
    /// Option: its name without dashes, and its value.
    Option(&'a str, Option<&'a str>),
    /// File or pattern.
    Operand(&'a str),
}

/// Parses arguments by the given tables; `None` if an option is in none of them.
pub(super) fn parse<'a>(texts: &[&'a str], tables: &[OptionTable]) -> Option<Vec<CommandArgument<'a>>> {
    let mut arguments = Vec::new();
    let mut left = texts.iter().copied();
    while let Some(text) = left.next() {
        if text == "--" {
            arguments.extend(left.by_ref().map(CommandArgument::Operand));
        } else if let Some(long) = text.strip_prefix("--") {
            arguments.push(parse_long(long, tables, &mut left)?);
        } else if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            parse_letters(letters, tables, &mut left, &mut arguments)?;
        } else {
            arguments.push(CommandArgument::Operand(text));
        }
    }
    Some(arguments)
}

fn parse_long<'a>(
    text: &'a str,
    tables: &[OptionTable],
    left: &mut impl Iterator<Item = &'a str>,
) -> Option<CommandArgument<'a>> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let is_listed = |list: &str| !name.is_empty() && list.split(' ').any(|known| known == name);
    let has_value = tables.iter().any(|table| is_listed(table.long_with_value));
    if !has_value && !tables.iter().any(|table| is_listed(table.long)) {
        return None;
    }
    let value = match value {
        None if has_value => Some(left.next()?),
        value => value,
    };
    Some(CommandArgument::Option(name, value))
}

fn parse_letters<'a>(
    letters: &'a str,
    tables: &[OptionTable],
    left: &mut impl Iterator<Item = &'a str>,
    arguments: &mut Vec<CommandArgument<'a>>,
) -> Option<()> {
    for (at, letter) in letters.char_indices() {
        let (name, rest) = letters.get(at..)?.split_at(letter.len_utf8());
        if tables.iter().any(|table| table.letters_with_value.contains(letter)) {
            let value = if rest.is_empty() { left.next()? } else { rest };
            arguments.push(CommandArgument::Option(name, Some(value)));
            return Some(());
        }
        if !tables.iter().any(|table| table.letters.contains(letter)) {
            return None;
        }
        arguments.push(CommandArgument::Option(name, None));
    }
    Some(())
}

/// Returns whether an option value cannot be a file: a number, a range or one character.
pub(super) fn is_plain_value(value: &str) -> bool {
    value.chars().count() <= 1
        || value.chars().all(|character| character.is_ascii_digit() || ",+-.".contains(character))
}
