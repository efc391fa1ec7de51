//! Spelling out of control characters, bidirectional controls and invisible characters.

/// Name of a character that cannot be seen or is not what it looks like, such as `⟨U+202E⟩`; none for all others. Newline,
/// tab and the plain space are seen by what they do.
pub fn reveal_character(character: char) -> Option<String> {
    is_invisible(character).then(|| format!("⟨U+{:04X}⟩", u32::from(character)))
}

/// Spells out every invisible character of a text; newlines and tabs stay.
///
/// ```
/// assert_eq!(pal_permissions::reveal("a\u{1b}[2J\u{202e}b\tc\n"), "a⟨U+001B⟩[2J⟨U+202E⟩b\tc\n");
/// ```
pub fn reveal(text: &str) -> String {
    let mut revealed = String::with_capacity(text.len());
    for character in text.chars() {
        match reveal_character(character) {
            Some(name) => revealed.push_str(&name),
            None => revealed.push(character),
        }
    }
    revealed
}

fn is_invisible(character: char) -> bool {
    let is_format = matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    let is_private = matches!(character, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}');
    let is_odd_space = character.is_whitespace() && !matches!(character, ' ' | '\t' | '\n');
    let is_control = character.is_control() && !matches!(character, '\t' | '\n');
    is_control || is_odd_space || is_format || is_private
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_spelt_out_and_letters_stay() {
        for hidden in ['\0', '\r', '\u{1b}', '\u{7f}', '\u{85}', '\u{a0}', '\u{ad}', '\u{200b}', '\u{200d}'] {
            assert!(reveal_character(hidden).is_some(), "{hidden:?}");
        }
        for hidden in
            ['\u{202e}', '\u{2066}', '\u{2800}', '\u{3000}', '\u{3164}', '\u{feff}', '\u{e0041}', '\u{e000}']
        {
            assert!(reveal_character(hidden).is_some(), "{hidden:?}");
        }
        for seen in "aZ0 \t\n~äéßжи中文…│●".chars() {
            assert_eq!(reveal_character(seen), None, "{seen:?}");
        }
    }
}
