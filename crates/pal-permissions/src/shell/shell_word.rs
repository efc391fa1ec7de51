//! Words of a command line and their values when the line runs, as far as known.

/// Word of a command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ShellWord {
    /// Text as written.
    pub(crate) raw: String,
    /// Value when the line runs; `None` if unknown before.
    pub(crate) text: Option<String>,
    /// True if the shell may expand it to file names.
    pub(crate) is_glob: bool,
    /// True if it is not a single word by the quoting rules.
    pub(crate) is_broken: bool,
}

impl ShellWord {
    /// Value when the line runs, if known. A glob has none.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref().filter(|_| !self.is_glob)
    }

    /// Returns whether it is plain text: no quotes, no expansions, no non-ASCII letters.
    pub(crate) fn is_plain(&self) -> bool {
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "._/+-".contains(character);
        !self.raw.is_empty() && self.raw.chars().all(is_plain)
    }
}

/// Decodes a word.
pub(crate) fn decode_word(raw: &str) -> ShellWord {
    let mut reader =
        WordDecoder { left: raw, text: String::new(), is_known: true, is_glob: false, is_broken: false };
    reader.read();
    let text = reader.is_known.then_some(reader.text);
    ShellWord { raw: String::from(raw), text, is_glob: reader.is_glob, is_broken: reader.is_broken }
}

struct WordDecoder<'a> {
    left: &'a str,
    text: String,
    is_known: bool,
    is_glob: bool,
    is_broken: bool,
}

impl WordDecoder<'_> {
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
                    // `<(…)` is a word with an unknown value.
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

    /// Returns whether a dollar sign begins an expansion.
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
                // The scanner finds the end of such a string.
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
