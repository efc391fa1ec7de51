//! WordPiece tokenizer as in uncased BERT.
//!
//! Words are separated by white space and punctuation, lower-cased and stripped of accents; each Chinese
//! character is a word. A word is split into the longest vocabulary pieces from its start.

use std::fs;
use std::io;
use std::path::Path;

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::embeddings::error::EmbedError;

/// Longer words become the unknown token.
const WORD_CHARACTERS_MAX: usize = 100;

/// Pieces of the vocabulary by number.
pub(crate) struct Vocabulary {
    pieces: FxHashMap<String, u32>,
    unknown: u32,
    first: u32,
    last: u32,
    /// Hash of the vocabulary file.
    pub(crate) digest: [u8; 32],
}

impl Vocabulary {
    /// Reads `vocab.txt`, or else `tokenizer.json`. Every piece must be smaller than `n_rows`.
    pub(crate) fn read(folder: &Path, n_rows: usize) -> Result<Vocabulary, EmbedError> {
        let path = folder.join("vocab.txt");
        match fs::read_to_string(&path) {
            Ok(text) => {
                let pieces = text.lines().enumerate();
                let pieces = pieces.map(|(number, piece)| (piece.to_owned(), number as u32)).collect();
                Vocabulary::new(pieces, text.as_bytes(), n_rows, &path)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Vocabulary::from_json(folder, n_rows, error)
            }
            Err(error) => Err(EmbedError::read(&path)(error)),
        }
    }

    fn from_json(folder: &Path, n_rows: usize, missing: io::Error) -> Result<Vocabulary, EmbedError> {
        #[derive(Deserialize)]
        struct TokenizerFile {
            model: TokenizerModel,
        }
        #[derive(Deserialize)]
        struct TokenizerModel {
            vocab: FxHashMap<String, u32>,
        }
        let path = folder.join("tokenizer.json");
        // If neither exists, report the usual one.
        let Ok(text) = fs::read(&path) else {
            return Err(EmbedError::read(&folder.join("vocab.txt"))(missing));
        };
        let page: TokenizerFile =
            serde_json::from_slice(&text).map_err(|error| EmbedError::broken(&path, error.to_string()))?;
        Vocabulary::new(page.model.vocab, &text, n_rows, &path)
    }

    fn new(
        pieces: FxHashMap<String, u32>,
        file: &[u8],
        n_rows: usize,
        path: &Path,
    ) -> Result<Vocabulary, EmbedError> {
        let number = |piece: &str| {
            pieces.get(piece).copied().ok_or_else(|| EmbedError::broken(path, format!("it has no {piece}")))
        };
        let (unknown, first, last) = (number("[UNK]")?, number("[CLS]")?, number("[SEP]")?);
        let largest = pieces.values().max().copied().unwrap_or(0);
        if largest as usize >= n_rows {
            return Err(EmbedError::broken(
                path,
                format!("it has a piece {largest}, the model only {n_rows}"),
            ));
        }
        let digest = *blake3::hash(file).as_bytes();
        Ok(Vocabulary { pieces, unknown, first, last, digest })
    }

    /// Tokens of a text, at most `most` including the start and end markers.
    pub(crate) fn tokens(&self, text: &str, most: usize) -> Vec<u32> {
        let room = most.saturating_sub(2);
        let mut tokens = vec![self.first];
        for word in text.split(is_space).filter(|word| !word.is_empty()) {
            for word in split_words(word) {
                self.split_into_pieces(&word, &mut tokens);
            }
            // Ignore the rest of a long text.
            if tokens.len() > room {
                break;
            }
        }
        tokens.truncate(room + 1);
        tokens.push(self.last);
        tokens
    }

    /// Adds the pieces of a word, or the unknown token.
    fn split_into_pieces(&self, word: &str, tokens: &mut Vec<u32>) {
        let before = tokens.len();
        let is_long = word.chars().count() > WORD_CHARACTERS_MAX;
        let mut left = if is_long { "" } else { word };
        let mut piece = String::new();
        while !left.is_empty() {
            let ends = left.char_indices().map(|(at, letter)| at + letter.len_utf8()).rev();
            let found = ends.into_iter().find_map(|end| {
                piece.clear();
                if tokens.len() > before {
                    piece.push_str("##");
                }
                piece.push_str(&left[..end]);
                Some((end, *self.pieces.get(&piece)?))
            });
            let Some((end, number)) = found else { break };
            tokens.push(number);
            left = &left[end..];
        }
        if is_long || !left.is_empty() {
            tokens.truncate(before);
            tokens.push(self.unknown);
        }
    }
}

/// Splits text without white space into lower-case words without accents.
fn split_words(text: &str) -> Vec<String> {
    let text = match text.is_ascii() {
        true => text.to_ascii_lowercase(),
        false => strip_accents(text),
    };
    let mut words = vec![String::new()];
    for letter in text.chars() {
        if category_is(letter, GeneralCategoryGroup::Other) || letter == '\u{fffd}' {
            continue;
        }
        if is_punctuation(letter) || is_chinese(letter) {
            words.push(letter.to_string());
            words.push(String::new());
        } else if let Some(word) = words.last_mut() {
            word.push(letter);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Lower-cases and strips accents.
fn strip_accents(text: &str) -> String {
    let apart = DecomposingNormalizerBorrowed::new_nfd().normalize(text);
    let letters = apart.chars().filter(|letter| category(*letter) != GeneralCategory::NonspacingMark);
    letters.flat_map(char::to_lowercase).collect()
}

fn category(letter: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(letter)
}

fn category_is(letter: char, group: GeneralCategoryGroup) -> bool {
    match letter.is_ascii() {
        true => group == GeneralCategoryGroup::Other && letter.is_ascii_control(),
        false => group.contains(category(letter)),
    }
}

fn is_space(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r') || letter.is_whitespace() && !letter.is_control()
}

fn is_punctuation(letter: char) -> bool {
    match letter.is_ascii() {
        true => letter.is_ascii_punctuation(),
        false => category_is(letter, GeneralCategoryGroup::Punctuation),
    }
}

/// Reports whether a character is a Chinese ideograph. Kana and Hangul are not.
fn is_chinese(letter: char) -> bool {
    matches!(letter,
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2ceaf}' | '\u{2f800}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECES: &[&str] = &[
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "want", "##want", "##ed", "runn",
        "##ing", ",", "!", "-", "’", "cafe", "uber", "ß", "日", "本", "a", "##b", "new", "york",
    ];

    fn check(text: &str, wanted: &str) {
        let pieces = PIECES.iter().enumerate().map(|(number, piece)| ((*piece).to_owned(), number as u32));
        let vocabulary =
            Vocabulary::new(pieces.collect(), b"", PIECES.len(), Path::new("vocab.txt")).unwrap();
        let tokens = vocabulary.tokens(text, 12);
        let found: Vec<&str> = tokens.iter().map(|token| PIECES[*token as usize]).collect();
        assert_eq!(found[0], "[CLS]");
        assert_eq!(found[found.len() - 1], "[SEP]");
        assert_eq!(found[1..found.len() - 1].join(" "), wanted, "{text:?}");
    }

    #[test]
    fn words_are_split_into_the_longest_pieces() {
        check("unaffable", "un ##aff ##able");
        check("UNwanted running", "un ##want ##ed runn ##ing");
        check("unwantedX running", "[UNK] runn ##ing");
        check("", "");
        check(&"a".repeat(101), "[UNK]");
    }

    #[test]
    fn punctuation_is_separate() {
        check("new-york, a!", "new - york , a !");
        check("a’a", "a ’ a");
        check("[SEP]", "[UNK] [UNK] [UNK]");
    }

    #[test]
    fn accents_are_stripped_and_chinese_characters_are_separate() {
        check("Café ÜBER cafe\u{301}", "cafe uber cafe");
        check("ß", "ß");
        check("日本a", "日 本 a");
        check("a\u{200d}b\u{0}\u{fffd} new\u{a0}york\t\na", "a ##b new york a");
    }

    #[test]
    fn long_text_is_truncated() {
        check(&"a ".repeat(50), "a a a a a a a a a a");
        check(&"unaffable ".repeat(9), "un ##aff ##able un ##aff ##able un ##aff ##able un");
    }

    #[test]
    fn incomplete_vocabulary_is_refused() {
        let pieces = |pieces: &[&str]| {
            pieces.iter().enumerate().map(|(at, piece)| ((*piece).to_owned(), at as u32)).collect()
        };
        let path = Path::new("vocab.txt");
        assert!(Vocabulary::new(pieces(&["[UNK]", "[CLS]"]), b"", 9, path).is_err());
        assert!(Vocabulary::new(pieces(&["[UNK]", "[CLS]", "[SEP]"]), b"", 2, path).is_err());
        assert!(Vocabulary::new(pieces(&["[UNK]", "[CLS]", "[SEP]"]), b"", 3, path).is_ok());
    }
}
