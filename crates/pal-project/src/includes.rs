//! Finds the includes of a Markdown text: words such as `@docs/style.md`.
//!
//! A Markdown parser tells text from code spans, code blocks, HTML tags and comments, which are ignored. The words themselves are taken
//! from the source, because the parser splits texts at `_` and `*`, which file names may contain.

use std::collections::HashSet;
use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag};

/// The most references of one file that are followed. More is not a text that includes others.
const REFERENCES_MAX: usize = 1_000;

/// The longest word that may be a path, in bytes: what systems allow for one.
const WORD_BYTES_MAX: usize = 4_096;

/// The most words that begin between two white spaces, as in `(@a.md,@b.md)`.
const WORDS_TOGETHER_MAX: usize = 16;

/// Maximum trailing characters that are stripped from a word to find a file.
const TRAILING_MAX: usize = 8;

/// Characters that may follow a path without belonging to it.
const TRAILING: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '*', '_', '>', '|', '`'];

/// Words after `@` in the text of a Markdown document, in order, without duplicates.
pub(crate) fn find_references(markdown: &str) -> Vec<String> {
    if !markdown.contains('@') {
        return Vec::new();
    }
    let hidden = hidden_ranges(markdown);
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    // A run without white space is measured once, however many words begin in it.
    let mut together = 0..0;
    let mut begun = 0;
    for (at, _) in markdown.match_indices('@') {
        let next_hidden = hidden.partition_point(|range| range.end <= at);
        let end = match hidden.get(next_hidden) {
            Some(range) if range.start <= at => continue,
            Some(range) => range.start,
            None => markdown.len(),
        };
        if at >= together.end {
            together = at..at + 1 + word_length(&markdown[at + 1..end]);
            begun = 0;
        }
        if together.len() > WORD_BYTES_MAX || begun == WORDS_TOGETHER_MAX || !opens_word(&markdown[..at]) {
            continue;
        }
        begun += 1;
        let word = markdown[at + 1..together.end].replace("\\ ", " ");
        if !word.is_empty() && seen.insert(word.clone()) {
            found.push(word);
        }
        if found.len() == REFERENCES_MAX {
            break;
        }
    }
    found
}

/// Candidate paths of a word, longest first: its end may be punctuation or a heading anchor.
pub(crate) fn list_path_readings(word: &str) -> Vec<&str> {
    let mut readings = vec![word];
    let mut rest = word;
    for _ in 0..TRAILING_MAX {
        let Some(shorter) = rest.strip_suffix(TRAILING) else { break };
        readings.push(shorter);
        rest = shorter;
    }
    // The name of a heading, or the target of a link around the word.
    for behind in ["#", "]("] {
        if let Some((path, _)) = rest.split_once(behind) {
            readings.push(path);
        }
    }
    readings.retain(|reading| !reading.is_empty());
    readings
}

/// True if a word looks like a path, so that its author needs to know that no such file exists. Decorators,
/// packages and names of people were not.
pub(crate) fn looks_like_path(word: &str) -> bool {
    let word = word.trim_end_matches(TRAILING);
    let word = word.split_once('#').map_or(word, |(path, _)| path);
    ["./", "../", "~/", "/"].iter().any(|start| word.starts_with(start))
        || [".md", ".mdc", ".markdown", ".txt", ".rst", ".adoc"].iter().any(|ending| word.ends_with(ending))
}

/// True if a word may begin after this text: an `@` within a word is an e-mail address.
fn opens_word(before: &str) -> bool {
    before.chars().next_back().is_none_or(|letter| letter.is_whitespace() || "([{*_\"'|>:,".contains(letter))
}

/// Length of the word at the start of a text: up to white space, with `\ ` for a space in it.
fn word_length(text: &str) -> usize {
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        let is_escaped = letter == ' ' && before == '\\';
        if !is_escaped && (letter.is_whitespace() || letter.is_control()) {
            return at;
        }
        before = letter;
    }
    text.len()
}

/// Code spans and blocks, in order and without overlaps.
fn hidden_ranges(markdown: &str) -> Vec<Range<usize>> {
    let mut hidden = Vec::new();
    for (event, range) in Parser::new(markdown).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) | Event::Code(_) | Event::InlineHtml(_) => hidden.push(range),
            Event::Start(Tag::HtmlBlock) => hide_markup(markdown, range, &mut hidden),
            _ => {}
        }
    }
    hidden.sort_unstable_by_key(|range| range.start);
    merge_ranges(hidden)
}

/// Joins ranges that overlap, so that they can be searched by their ends.
fn merge_ranges(ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

/// Hides the tags and comments of an HTML block and the elements that hold code. What else stands in it is text:
/// people put instructions between tags of their own.
fn hide_markup(markdown: &str, block: Range<usize>, hidden: &mut Vec<Range<usize>>) {
    let mut at = block.start;
    while let Some(open) = markdown[at..block.end].find('<').map(|found| at + found) {
        let rest = &markdown[open..block.end];
        let length = match closing_of(rest) {
            Some(closing) => {
                find_ignoring_case(rest, closing).map_or(rest.len(), |found| found + closing.len())
            }
            None => rest.find('>').map_or(rest.len(), |found| found + 1),
        };
        hidden.push(open..open + length);
        at = open + length;
    }
}

/// End of a comment or code element, if one begins here.
fn closing_of(markup: &str) -> Option<&'static str> {
    [
        ("<!--", "-->"),
        ("<pre", "</pre>"),
        ("<code", "</code>"),
        ("<script", "</script>"),
        ("<style", "</style>"),
    ]
    .into_iter()
    .find(|(open, _)| markup.get(..open.len()).is_some_and(|start| start.eq_ignore_ascii_case(open)))
    .map(|(_, close)| close)
}

fn find_ignoring_case(text: &str, wanted: &str) -> Option<usize> {
    text.as_bytes().windows(wanted.len()).position(|window| window.eq_ignore_ascii_case(wanted.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(markdown: &str, expected: &[&str]) {
        assert_eq!(find_references(markdown), expected, "in {markdown:?}");
    }

    #[test]
    fn words_in_text_count() {
        check("@a.md", &["a.md"]);
        check(
            "See @./docs/my_file_name.md and @~/x/*y*.md, (@/abs.txt)",
            &["./docs/my_file_name.md", "~/x/*y*.md,", "/abs.txt)"],
        );
        check(
            "- item\n  - @docs/__init__.md\n\n> @quoted.md\n\n# @heading.md",
            &["docs/__init__.md", "quoted.md", "heading.md"],
        );
        check("**@bold.md** _@it.md_ [@link.md](x)", &["bold.md**", "it.md_", "link.md](x)"]);
        check("@a.md @a.md", &["a.md"]);
        check("@with\\ space.md next", &["with space.md"]);
        check("<rules>\n@inside.md\n</rules>", &["inside.md"]);
        check("| a |\n|---|\n|@cell.md|", &["cell.md|"]);
    }

    #[test]
    fn code_html_and_addresses_do_not() {
        check("`@a.md` and `` x @b.md ``", &[]);
        check("```\n@a.md\n```\n\n~~~rust\n@b.md\n~~~\n\n    @c.md\n", &[]);
        check("- x\n\n  ```\n  @a.md\n  ```", &[]);
        check("<!-- @a.md -->\n\ntext <!-- @b.md --> text\n\n<!--\n\n@c.md\n\n-->", &[]);
        check("<pre>\n@a.md\n</PRE>", &[]);
        check("<a href=\" @a.md\">x</a>\n\ny <b title=' @b.md'>z</b>", &[]);
        check("me@example.com <mailto:me@example.com> git@github.com:a/b", &[]);
        check("@ alone, @", &[]);
        check("@half`@code.md`", &["half"]);
        check("```\n@never closed", &[]);
    }

    #[test]
    fn punctuation_behind_a_path_is_cut_step_by_step() {
        assert_eq!(list_path_readings("a.md)."), ["a.md).", "a.md)", "a.md"]);
        assert_eq!(list_path_readings("a.md#part"), ["a.md#part", "a.md"]);
        assert_eq!(list_path_readings("..."), ["...", "..", "."]);
    }

    #[test]
    fn words_without_end_are_none() {
        check(&format!("@{} @a.md", ".".repeat(1_000_000)), &["a.md"]);
        check(&format!("{} @a.md", "(@".repeat(400_000)), &["a.md"]);
        check(&format!("@{}", "x".repeat(4_095)), &[&"x".repeat(4_095)]);
        // Each of these would be another word, and each is as long as the rest of all of them.
        assert_eq!(find_references(&"(@".repeat(1_000)).len(), WORDS_TOGETHER_MAX);
        assert_eq!(find_references(&format!("{} ", "(@x".repeat(900)).repeat(370)).len(), WORDS_TOGETHER_MAX);
        check("(@a.md,@b.md)", &["a.md,@b.md)", "b.md)"]);
        assert_eq!(list_path_readings(&"x.".repeat(2_000)).len(), 2);
        assert_eq!(list_path_readings(&".".repeat(4_000)).len(), 1 + TRAILING_MAX);
    }

    #[test]
    fn path_like_words_are_recognized() {
        for word in ["./a", "../b", "~/c", "/d", "docs/a.md", "a.md,", "b.txt#x"] {
            assert!(looks_like_path(word), "{word}");
        }
        for word in ["decorator", "scope/package", "types/node.", "alice", "param"] {
            assert!(!looks_like_path(word), "{word}");
        }
    }
}
