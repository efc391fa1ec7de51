//! Lookalike characters: brackets, letters, and invisible characters.

/// Alphabet that a tag name is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TagAlphabet {
    /// Visible characters.
    Seen,
    /// Unicode tag characters: an invisible copy of ASCII that models can read.
    Hidden,
}

/// First code point of the hidden copy of ASCII.
const HIDDEN: u32 = 0xe0000;

impl TagAlphabet {
    /// Returns the alphabet of a tag that starts with this bracket.
    pub(super) fn after_opener(opener: char) -> TagAlphabet {
        if opener as u32 == HIDDEN + '<' as u32 { TagAlphabet::Hidden } else { TagAlphabet::Seen }
    }

    /// Maps a character of this alphabet to its visible form.
    pub(super) fn read(self, letter: char) -> char {
        match (self, (letter as u32).checked_sub(HIDDEN)) {
            (TagAlphabet::Hidden, Some(hidden @ 0x20..0x7f)) => char::from_u32(hidden).unwrap_or(letter),
            _ => letter,
        }
    }
}

/// Returns true for `<` and its lookalikes.
pub(super) fn is_opener(letter: char) -> bool {
    matches!(
        letter,
        '<' | '＜'
            | '﹤'
            | '‹'
            | '«'
            | '〈'
            | '《'
            | '⟨'
            | '⟪'
            | '\u{2329}'
            | '❮'
            | '❰'
            | '⧼'
            | '˂'
            | 'ᐸ'
            | '≪'
            | '\u{e003c}'
    )
}

/// Returns true for `>` and its lookalikes.
pub(super) fn is_closer(letter: char) -> bool {
    matches!(
        letter,
        '>' | '＞'
            | '﹥'
            | '›'
            | '»'
            | '〉'
            | '》'
            | '⟩'
            | '⟫'
            | '\u{232a}'
            | '❯'
            | '❱'
            | '⧽'
            | '˃'
            | 'ᐳ'
            | '≫'
    )
}

/// Returns true for `|` and its lookalikes.
pub(super) fn is_bar(letter: char) -> bool {
    matches!(letter, '|' | '｜' | '│' | '∣' | 'ǀ' | '¦' | '￨')
}

/// Returns the lower-case letter or digit that a character looks like; none if it is neither letter nor digit.
pub(super) fn fold_letter(letter: char) -> Option<char> {
    if letter.is_ascii() {
        return letter.is_ascii_alphanumeric().then(|| letter.to_ascii_lowercase());
    }
    let code = letter as u32;
    // Unicode counts fillers and some marks as letters, but they are not read as such.
    if matches!(code, 0x115f | 0x1160 | 0x3164 | 0xffa0) || is_mark(letter) {
        return None;
    }
    fold_styled(code).or_else(|| fold_letterlike(letter)).or_else(|| {
        let small = letter.to_lowercase().next().unwrap_or(letter);
        small.is_alphanumeric().then(|| fold_homoglyph(small).unwrap_or(small))
    })
}

/// Returns true for combining marks.
pub(super) fn is_mark(letter: char) -> bool {
    matches!(letter as u32,
        0x300..=0x36f | 0x483..=0x489 | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe20..=0xfe2f)
}

/// Maps letterlike symbols, one-letter Roman numerals, superscript and subscript letters.
fn fold_letterlike(letter: char) -> Option<char> {
    Some(match letter {
        'ª' | 'ᵃ' | 'ₐ' => 'a',
        'ℬ' | 'ᵇ' => 'b',
        'ℂ' | 'ℭ' | 'Ⅽ' | 'ⅽ' | 'ᶜ' => 'c',
        'ⅅ' | 'ⅆ' | 'Ⅾ' | 'ⅾ' | 'ᵈ' => 'd',
        'ℯ' | 'ℰ' | 'ⅇ' | '℮' | 'ᵉ' | 'ₑ' => 'e',
        'ℱ' | 'ᶠ' => 'f',
        'ℊ' | 'ᵍ' => 'g',
        'ℋ' | 'ℌ' | 'ℍ' | 'ℎ' | 'ℏ' | 'ʰ' | 'ₕ' => 'h',
        'ℐ' | 'ℑ' | 'ⅈ' | 'ℹ' | 'Ⅰ' | 'ⅰ' | 'ⁱ' | 'ᵢ' => 'i',
        'ℒ' | 'ℓ' | 'Ⅼ' | 'ⅼ' | 'ˡ' | 'ₗ' => 'l',
        'ℳ' | 'Ⅿ' | 'ⅿ' | 'ᵐ' | 'ₘ' => 'm',
        'ℕ' | 'ⁿ' | 'ₙ' => 'n',
        'ℴ' | 'º' | 'ᵒ' | 'ₒ' => 'o',
        'ℙ' | 'ᵖ' | 'ₚ' => 'p',
        'ℛ' | 'ℜ' | 'ℝ' | 'ʳ' | 'ᵣ' => 'r',
        'ˢ' | 'ₛ' => 's',
        'ᵗ' | 'ₜ' => 't',
        'ᵘ' | 'ᵤ' => 'u',
        'ʸ' => 'y',
        _ => return None,
    })
}

/// Maps full-width, mathematical, circled and squared letters.
fn fold_styled(code: u32) -> Option<char> {
    let at = match code {
        0xff21..=0xff3a => code - 0xff21,
        0xff41..=0xff5a => code - 0xff41,
        0x1d400..=0x1d6a3 => (code - 0x1d400) % 26,
        0x249c..=0x24b5 => code - 0x249c,
        0x24b6..=0x24e9 => (code - 0x24b6) % 26,
        0x1f130..=0x1f149 => code - 0x1f130,
        0x1f150..=0x1f169 => code - 0x1f150,
        0x1f170..=0x1f189 => code - 0x1f170,
        _ => return None,
    };
    char::from_u32('a' as u32 + at)
}

/// Maps lower-case letters of other alphabets to the Latin letter that they look like.
fn fold_homoglyph(letter: char) -> Option<char> {
    Some(match letter {
        'а' | 'α' | 'ᴀ' => 'a',
        'с' | 'ϲ' | 'ᴄ' => 'c',
        'ԁ' | 'ᴅ' => 'd',
        'е' | 'ё' | 'ε' | 'ᴇ' => 'e',
        'ꜰ' => 'f',
        'ɡ' | 'ɢ' => 'g',
        'һ' | 'ʜ' => 'h',
        'і' | 'ї' | 'ι' | 'ı' | 'ɪ' => 'i',
        'ӏ' | 'ʟ' => 'l',
        'м' | 'μ' | 'ᴍ' => 'm',
        'ո' | 'п' | 'ν' | 'η' | 'ɴ' => 'n',
        'о' | 'ο' | 'օ' | 'ᴏ' => 'o',
        'р' | 'ρ' | 'ᴘ' => 'p',
        'г' | 'ʀ' => 'r',
        'ѕ' | 'ſ' | 'ꜱ' => 's',
        'т' | 'τ' | 'ᴛ' => 't',
        'υ' | 'ս' | 'ᴜ' => 'u',
        'у' | 'ү' | 'γ' | 'ʏ' => 'y',
        _ => return None,
    })
}

/// Returns true if a character is invisible, a control, or changes the writing direction.
pub fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(letter as u32,
            0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
            | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
            | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}
