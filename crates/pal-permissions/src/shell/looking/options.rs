//! Words of a command as its program reads them: options with their values, and the rest.

/// The options that a program is known to have. With one that is not listed here nothing is known of the words behind it.
pub(super) struct Known {
    /// Letters without a value.
    pub(super) letters: &'static str,
    /// Letters with a value, in the same word or in the next.
    pub(super) letters_with_value: &'static str,
    /// Words behind two dashes without a value, or with one in the same word.
    pub(super) long: &'static [&'static str],
    /// Words behind two dashes with a value, in the same word or in the next.
    pub(super) long_with_value: &'static [&'static str],
}

/// One thing that a program is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told<'a> {
    /// An option: its name without dashes, and its value.
    Option(&'a str, Option<&'a str>),
    /// A file or a pattern.
    Word(&'a str),
}

/// What a program is told, from left to right; nothing if it cannot be said.
pub(super) fn read<'a>(texts: &[&'a str], known: &Known) -> Option<Vec<Told<'a>>> {
    let mut told = Vec::new();
    let mut left = texts.iter().copied();
    while let Some(text) = left.next() {
        if text == "--" {
            told.extend(left.by_ref().map(Told::Word));
        } else if let Some(long) = text.strip_prefix("--") {
            told.push(long_option(long, known, &mut left)?);
        } else if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            letters_of(letters, known, &mut left, &mut told)?;
        } else {
            told.push(Told::Word(text));
        }
    }
    Some(told)
}

fn long_option<'a>(
    text: &'a str,
    known: &Known,
    left: &mut impl Iterator<Item = &'a str>,
) -> Option<Told<'a>> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let has_value = known.long_with_value.contains(&name);
    if !has_value && !known.long.contains(&name) {
        return None;
    }
    let value = match value {
        None if has_value => Some(left.next()?),
        value => value,
    };
    Some(Told::Option(name, value))
}

fn letters_of<'a>(
    letters: &'a str,
    known: &Known,
    left: &mut impl Iterator<Item = &'a str>,
    told: &mut Vec<Told<'a>>,
) -> Option<()> {
    for (at, letter) in letters.char_indices() {
        let (name, rest) = letters.get(at..)?.split_at(letter.len_utf8());
        if known.letters_with_value.contains(letter) {
            let value = if rest.is_empty() { left.next()? } else { rest };
            told.push(Told::Option(name, Some(value)));
            return Some(());
        }
        if !known.letters.contains(letter) {
            return None;
        }
        told.push(Told::Option(name, None));
    }
    Some(())
}
