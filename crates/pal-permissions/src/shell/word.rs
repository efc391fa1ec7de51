//! Words of a command line: what they are when the line runs, as far as it can be told.

/// A word of a command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Word {
    /// As it is written.
    pub(crate) raw: String,
    /// What it is when the line runs; nothing if that is known only then.
    pub(crate) text: Option<String>,
    /// Whether the shell may put names of files in its place.
    pub(crate) is_glob: bool,
    /// Whether it is not one word by the rules of quoting.
    pub(crate) is_broken: bool,
}

impl Word {
    /// What it is when the line runs, if that is known. Of a pattern of files it is not.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref().filter(|_| !self.is_glob)
    }

    /// Whether it is written as it is meant: no quotes, nothing to be replaced, no foreign letters.
    pub(crate) fn is_plain(&self) -> bool {
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "._/+-".contains(character);
        !self.raw.is_empty() && self.raw.chars().all(is_plain)
    }
}

/// Reads a word.
pub(crate) fn decode(raw: &str) -> Word {
    let mut reader =
        Reader { left: raw, text: String::new(), is_known: true, is_glob: false, is_broken: false };
    reader.read();
    let text = reader.is_known.then_some(reader.text);
    Word { raw: String::from(raw), text, is_glob: reader.is_glob, is_broken: reader.is_broken }
}

struct Reader<'a> {
    left: &'a str,
    text: String,
    is_known: bool,
    is_glob: bool,
    is_broken: bool,
}

impl Reader<'_> {
    fn read(&mut self) {
        let after_tilde = self.left.strip_prefix('~');
        if after_tilde.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/')) {
            self.is_known = false;
        }
        let mut is_brace_open = false;
        while let Some(character) = self.take() {
            match character {
                '\\' => self.escaped(),
                '\'' => self.raw_quoted(),
                '"' => self.quoted(),
                // `$'…'` and `$"…"` have quoting of their own.
                '$' if self.begins_expansion() || self.left.starts_with(['\'', '"']) => {
                    return self.is_known = false;
                }
                '`' => return self.is_known = false,
                '*' | '?' | '[' => {
                    self.is_glob = true;
                    self.text.push(character);
                }
                ' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')' => {
                    self.is_broken = true;
                    // `<(…)` is a word, and nothing is known of it.
                    return self.is_known = false;
                }
                // `{a,b}` and `{a..b}` become several words.
                ',' | '.' if is_brace_open => return self.is_known = false,
                other => {
                    is_brace_open |= other == '{';
                    self.text.push(other);
                }
            }
        }
    }

    fn take(&mut self) -> Option<char> {
        let character = self.left.chars().next()?;
        self.left = &self.left[character.len_utf8()..];
        Some(character)
    }

    /// Whether something is put in place of a dollar sign and what follows it.
    fn begins_expansion(&self) -> bool {
        let next = self.left.chars().next();
        next.is_some_and(|next| next.is_alphanumeric() || "_{([*@#?$!-".contains(next))
    }

    fn escaped(&mut self) {
        match self.take() {
            Some('\n') => {}
            Some(character) => self.text.push(character),
            None => self.is_broken = true,
        }
    }

    fn raw_quoted(&mut self) {
        match self.left.split_once('\'') {
            Some((inside, rest)) => {
                self.text.push_str(inside);
                self.left = rest;
            }
            None => self.is_broken = true,
        }
    }

    fn quoted(&mut self) {
        while let Some(character) = self.take() {
            match character {
                '"' => return,
                '\\' => match self.take() {
                    Some('\n') => {}
                    Some(next) if "\"\\$`".contains(next) => self.text.push(next),
                    Some(next) => self.text.extend(['\\', next]),
                    None => break,
                },
                // Where such a string ends is for the scanner to say.
                '$' if self.begins_expansion() => return self.give_up(),
                '`' => return self.give_up(),
                other => self.text.push(other),
            }
        }
        self.is_broken = true;
    }

    fn give_up(&mut self) {
        self.is_known = false;
        self.left = "";
    }
}
