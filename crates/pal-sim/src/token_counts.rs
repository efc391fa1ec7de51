//! Token counts from a real vocabulary, scaled to each model generation.
//!
//! Text is counted with o200k. For Claude the count is scaled, fitted on 1,597 recorded tool rounds with
//! known token growth by least mean relative error of `scale × o200k + 16` per call and result `+ 3` per
//! message. The error is 6.4% (median) and 14.8% (90th percentile) up to Claude 4.6, and 4.0% and 9.4% from
//! 4.7 on.

use pal_model::TokenGeneration;

/// Tokens that open and close a message.
pub(crate) const MESSAGE_TOKENS: u64 = 3;
/// Tokens around a call or a result.
pub(crate) const TOOL_BLOCK_TOKENS: u32 = 16;
/// Tokens around a definition of a tool.
pub(crate) const TOOL_TOKENS: u32 = 12;
/// Tokens that introduce the tools, if there are any.
pub(crate) const TOOLS_TOKENS: u64 = 60;
/// Tokens after the last message that open the answer; they follow every breakpoint.
pub(crate) const ANSWER_TOKENS: u64 = 3;

/// Bytes counted at once, which bounds memory for long texts and long words.
const WINDOW_BYTES: usize = 32 * 1024;

/// Tokens of a text in the o200k vocabulary.
pub(crate) fn count_word_tokens(text: &str) -> u64 {
    let mut rest = text;
    let mut count = 0;
    while !rest.is_empty() {
        let (window, after) = rest.split_at(rest.floor_char_boundary(WINDOW_BYTES));
        count += count_window(window);
        rest = after;
    }
    count
}

fn count_window(text: &str) -> u64 {
    match tiktoken::get_encoding("o200k_base") {
        Some(encoding) => encoding.count(text) as u64,
        // The vocabulary is compiled in; the fallback counts four bytes per token.
        None => text.len().div_ceil(4) as u64,
    }
}

/// Scales an o200k count to a model generation.
pub(crate) fn scaled(words: u64, generation: TokenGeneration) -> u64 {
    let permille = match generation {
        TokenGeneration::Claude46 => 1_174,
        TokenGeneration::Claude47 => 1_589,
        TokenGeneration::O200k => 1_000,
        // The median over the labelled corpus of the estimators.
        TokenGeneration::Neutral => 1_074,
    };
    (words * permille).div_ceil(1_000)
}

/// Tokens of a text for a model generation.
pub(crate) fn count(text: &str, generation: TokenGeneration) -> u64 {
    scaled(count_word_tokens(text), generation)
}

/// Longest prefix of a text with at most `most` tokens.
pub(crate) fn cut(text: &str, most: u64, generation: TokenGeneration) -> &str {
    if count(text, generation) <= most {
        return text;
    }
    let (mut fits, mut does_not) = (0, text.len());
    while fits + 1 < does_not {
        let middle = text.floor_char_boundary(fits.midpoint(does_not));
        if middle <= fits {
            break;
        }
        if count(&text[..middle], generation) <= most { fits = middle } else { does_not = middle }
    }
    &text[..fits]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_count_differently() {
        let text = "fn main() { println!(\"hello\"); }\n".repeat(100);
        let [old, new, exact, neutral] = TokenGeneration::ALL.map(|generation| count(&text, generation));
        assert!(new > old && old > neutral && neutral > exact, "{old} {new} {exact} {neutral}");
        assert_eq!(count("", TokenGeneration::Claude47), 0);
        assert_eq!(count("hello world", TokenGeneration::O200k), 2);
    }

    #[test]
    fn a_cut_is_the_longest_that_fits() {
        for text in
            ["one two three four five six seven", "漢字かな交じり文を切る", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa"]
        {
            for most in 0..10 {
                let kept = cut(text, most, TokenGeneration::O200k);
                assert!(
                    text.starts_with(kept) && count(kept, TokenGeneration::O200k) <= most,
                    "{text} {most}"
                );
                assert_eq!(kept.is_empty(), most == 0, "{text} {most}");
            }
        }
    }

    #[test]
    fn long_words_are_counted_in_windows() {
        assert!(count_word_tokens(&"漢".repeat(100_000)) > 30_000);
        assert!(count_word_tokens(&"a".repeat(1_000_000)) > 100_000);
    }
}
