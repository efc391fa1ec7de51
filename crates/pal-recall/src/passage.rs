//! Extracts the lines of a text where query words are close together, verbatim.

use std::ops::Range;

use pal_search::WordMatcher;

/// Maximum bytes of a passage; a longer line is cut around its first match.
const PASSAGE_BYTES_MAX: usize = 1_500;
/// Bytes kept before the first match of a cut line.
const CUT_CONTEXT_BYTES: usize = 200;

/// Lines of a text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Passage {
    /// Lines, verbatim.
    pub text: String,
    /// Byte ranges of the query words, in order.
    pub marks: Vec<Range<usize>>,
    /// Number of its first line in the whole text, from 1.
    pub line: usize,
    /// Offset in the whole text, in characters.
    pub character: usize,
    /// Its first line is cut at the start.
    pub is_cut_before: bool,
    /// Its last line is cut at the end.
    pub is_cut_after: bool,
}

/// Best passage within a range of a text, with `around` lines of context. Without a match, the start of the range.
pub(crate) fn passage(text: &str, within: Range<usize>, matcher: &WordMatcher, around: usize) -> Passage {
    let lines = lines(text);
    let first = lines.partition_point(|line| line.end <= within.start && line.end < text.len());
    let marked: Vec<(usize, u64)> = (first..lines.len())
        .take_while(|at| lines[*at].start < within.end || *at == first)
        .map(|at| (at, words_in(&text[lines[at].clone()], matcher)))
        .collect();
    let near = |place: usize| {
        let from = place.saturating_sub(around);
        let to = (place + around + 1).min(marked.len());
        marked[from..to].iter().fold(0_u64, |all, (_, words)| all | words).count_ones()
    };
    // Prefer the line with most words, then its neighborhood, then the first one.
    let best = (0..marked.len())
        .map(|place| ((marked[place].1.count_ones(), near(place)), place))
        .filter(|((own, _), _)| *own > 0)
        .max_by_key(|(words, place)| (words.0 + words.1, words.0, usize::MAX - place));
    match best {
        Some((_, place)) => passage_around(text, &lines, marked[place].0, matcher, around),
        None => passage_around(text, &lines, (first + around).min(lines.len() - 1), matcher, around),
    }
}

/// Byte ranges of the lines without line ends; at least one.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut from = 0;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        lines.push(from..from + line.strip_suffix('\r').unwrap_or(line).len());
        from += line.len() + 1;
    }
    lines
}

/// Bit set of the query words in a line; words beyond the 64th share the last bit.
fn words_in(line: &str, matcher: &WordMatcher) -> u64 {
    matcher.find_words(line).iter().fold(0, |all, mark| all | 1 << mark.word.min(63))
}

fn passage_around(
    text: &str,
    lines: &[Range<usize>],
    centre: usize,
    matcher: &WordMatcher,
    around: usize,
) -> Passage {
    let own = lines[centre].clone();
    if own.len() > PASSAGE_BYTES_MAX {
        let first = matcher.find_words(&text[own.clone()]).first().map_or(0, |mark| mark.range.start);
        let from = text.ceil_char_boundary(own.start + first.saturating_sub(CUT_CONTEXT_BYTES));
        let to = text.floor_char_boundary((from + PASSAGE_BYTES_MAX).min(own.end));
        return build_passage(text, from..to, matcher, centre + 1, (from > own.start, to < own.end));
    }
    // Add lines on both sides, nearest first, while they fit.
    let (mut from, mut to) = (centre, centre);
    for distance in 1..=around {
        let size = |from: usize, to: usize| lines[to].end - lines[from].start;
        if let Some(before) = centre.checked_sub(distance)
            && before + 1 == from
            && size(before, to) <= PASSAGE_BYTES_MAX
        {
            from = before;
        }
        let after = centre + distance;
        if after < lines.len() && after == to + 1 && size(from, after) <= PASSAGE_BYTES_MAX {
            to = after;
        }
    }
    build_passage(text, lines[from].start..lines[to].end, matcher, from + 1, (false, false))
}

fn build_passage(
    text: &str,
    range: Range<usize>,
    matcher: &WordMatcher,
    line: usize,
    cuts: (bool, bool),
) -> Passage {
    let stretch = &text[range.clone()];
    // Drop empty lines around it.
    let inner = stretch.trim_matches('\n');
    let skipped = stretch.len() - stretch.trim_start_matches('\n').len();
    let shown = inner.to_owned();
    Passage {
        marks: matcher.find_words(&shown).into_iter().map(|mark| mark.range).collect(),
        text: shown,
        line: line + skipped,
        character: text[..range.start + skipped].chars().count(),
        is_cut_before: cuts.0,
        is_cut_after: cuts.1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, question: &str, around: usize) -> Passage {
        passage(text, 0..text.len(), &WordMatcher::new(question), around)
    }

    #[test]
    fn passage_shows_lines_verbatim() {
        let text = "one\n\n  the Parser fails\r\non empty input\nfour\nfive parser";
        let passage = found(text, "parser input", 1);
        assert_eq!(passage.text, "  the Parser fails\r\non empty input");
        assert_eq!(passage.line, 3);
        assert_eq!(
            passage.marks.iter().map(|mark| &passage.text[mark.clone()]).collect::<Vec<_>>(),
            ["Parser", "input"]
        );
        assert_eq!(text.chars().skip(passage.character).take(6).collect::<String>(), "  the ");
        assert_eq!(found(text, "nowhere", 1).line, 1);
        assert_eq!(found(text, "five", 0).text, "five parser");
    }

    #[test]
    fn long_line_is_cut_around_the_match() {
        let text = format!("{}needle{}", "ä ".repeat(5_000), " x".repeat(5_000));
        let passage = found(&text, "needle", 3);
        assert!(passage.text.len() <= PASSAGE_BYTES_MAX && passage.text.contains("needle"));
        assert!(passage.is_cut_before && passage.is_cut_after);
        assert!(text.chars().skip(passage.character).collect::<String>().starts_with(&passage.text));
    }
}
