//! Characters that a reader takes for others: brackets, letters, and those that nobody sees.

/// Which letters spell a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Alphabet {
    /// Those that are seen.
    Seen,
    /// The tag characters of Unicode: a copy of ASCII that no screen shows and models read.
    Hidden,
}

/// Where the hidden copy of ASCII begins.
const HIDDEN: u32 = 0xe0000;

impl Alphabet {
    /// The alphabet of what follows this bracket.
    pub(super) fn behind(opener: char) -> Alphabet {
        if opener as u32 == HIDDEN + '<' as u32 { Alphabet::Hidden } else { Alphabet::Seen }
    }

    /// The character as this alphabet has it.
    pub(super) fn read(self, letter: char) -> char {
        match (self, (letter as u32).checked_sub(HIDDEN)) {
            (Alphabet::Hidden, Some(hidden @ 0x20..0x7f)) => char::from_u32(hidden).unwrap_or(letter),
            _ => letter,
        }
    }
}

/// Whether a character looks like the bracket that opens a tag.
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

/// Whether a character looks like the bracket that closes a tag.
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

/// Whether a character looks like a vertical bar.
pub(super) fn is_bar(letter: char) -> bool {
    matches!(letter, '|' | '｜' | '│' | '∣' | 'ǀ' | '¦' | '￨')
}

/// The small letter or digit that a character is read as; none if it is neither a letter nor a digit.
pub(super) fn folded(letter: char) -> Option<char> {
    if letter.is_ascii() {
        return letter.is_ascii_alphanumeric().then(|| letter.to_ascii_lowercase());
    }
    let code = letter as u32;
    // Fillers and some marks count as letters, but nobody reads them as such.
    if matches!(code, 0x115f | 0x1160 | 0x3164 | 0xffa0) || is_mark(letter) {
        return None;
    }
    styled(code).or_else(|| letterlike(letter)).or_else(|| {
        let small = letter.to_lowercase().next().unwrap_or(letter);
        small.is_alphanumeric().then(|| twin(small).unwrap_or(small))
    })
}

/// Whether a character is written over the one before it.
pub(super) fn is_mark(letter: char) -> bool {
    matches!(letter as u32,
        0x300..=0x36f | 0x483..=0x489 | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe20..=0xfe2f)
}

/// The letter that a sign stands for: letterlike symbols, Roman numerals of one letter, letters above and below the line.
fn letterlike(letter: char) -> Option<char> {
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

/// The letter of an alphabet that Unicode has once more: full-width, mathematical, in circles and squares.
fn styled(code: u32) -> Option<char> {
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

/// The Latin letter that a small letter of another alphabet looks like.
fn twin(letter: char) -> Option<char> {
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

/// Whether a character takes no room, turns the direction of what follows it, or is no character to be read.
pub fn is_unseen(letter: char) -> bool {
    letter.is_control()
        || matches!(letter as u32,
            0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
            | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
            | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}
