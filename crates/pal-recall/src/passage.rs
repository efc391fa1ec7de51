//! The lines of a text around the place where the words of a question stand together, exactly as they are.

use std::ops::Range;

use pal_search::Marker;

/// Bytes of a passage; a longer line is shown around its first word that was asked for.
const PASSAGE_MOST: usize = 1_500;
/// Bytes of a line before its first word that was asked for, where the line is cut.
const BEFORE: usize = 200;

/// Lines of a text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Passage {
    /// The lines, as they are.
    pub text: String,
    /// The words in it that were asked for, in their order.
    pub marks: Vec<Range<usize>>,
    /// The number of its first line within the whole text, from 1.
    pub line: usize,
    /// Where it begins within the whole text, in characters.
    pub character: usize,
    /// Whether its first line is cut at its beginning.
    pub is_cut_before: bool,
    /// Whether its last line is cut at its end.
    pub is_cut_after: bool,
}

/// The best passage in a stretch of a text, with so many lines around it, and how many words of the question are in it. Where
/// the words cannot be pointed at, it is how the stretch begins.
pub(crate) fn passage(text: &str, within: Range<usize>, marker: &Marker, around: usize) -> (Passage, usize) {
    let lines = lines(text);
    let first = lines.partition_point(|line| line.end <= within.start && line.end < text.len());
    let marked: Vec<(usize, u64)> = (first..lines.len())
        .take_while(|at| lines[*at].start < within.end || *at == first)
        .map(|at| (at, words_in(&text[lines[at].clone()], marker)))
        .collect();
    let near = |place: usize| {
        let from = place.saturating_sub(around);
        let to = (place + around + 1).min(marked.len());
        marked[from..to].iter().fold(0_u64, |all, (_, words)| all | words).count_ones()
    };
    // The line that holds most of the words counts, then the lines around it, then the first.
    let best = (0..marked.len())
        .map(|place| ((marked[place].1.count_ones(), near(place)), place))
        .filter(|((own, _), _)| *own > 0)
        .max_by_key(|(words, place)| (words.0 + words.1, words.0, usize::MAX - place));
    match best {
        Some(((_, words), place)) => (cut(text, &lines, marked[place].0, marker, around), words as usize),
        None => (cut(text, &lines, (first + around).min(lines.len() - 1), marker, around), 0),
    }
}

/// The lines of a text without their ends; there is at least one.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut from = 0;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        lines.push(from..from + line.strip_suffix('\r').unwrap_or(line).len());
        from += line.len() + 1;
    }
    lines
}

/// Which words of the question are in a line; those behind the sixty-fourth count as that.
fn words_in(line: &str, marker: &Marker) -> u64 {
    marker.marks(line).iter().fold(0, |all, mark| all | 1 << mark.word.min(63))
}

fn cut(text: &str, lines: &[Range<usize>], centre: usize, marker: &Marker, around: usize) -> Passage {
    let own = lines[centre].clone();
    if own.len() > PASSAGE_MOST {
        let first = marker.marks(&text[own.clone()]).first().map_or(0, |mark| mark.range.start);
        let from = text.ceil_char_boundary(own.start + first.saturating_sub(BEFORE));
        let to = text.floor_char_boundary((from + PASSAGE_MOST).min(own.end));
        return made(text, from..to, marker, centre + 1, (from > own.start, to < own.end));
    }
    // Lines are added on both sides, the nearest first, as long as they fit.
    let (mut from, mut to) = (centre, centre);
    for distance in 1..=around {
        let size = |from: usize, to: usize| lines[to].end - lines[from].start;
        if let Some(before) = centre.checked_sub(distance)
            && before + 1 == from
            && size(before, to) <= PASSAGE_MOST
        {
            from = before;
        }
        let after = centre + distance;
        if after < lines.len() && after == to + 1 && size(from, after) <= PASSAGE_MOST {
            to = after;
        }
    }
    made(text, lines[from].start..lines[to].end, marker, from + 1, (false, false))
}

fn made(text: &str, range: Range<usize>, marker: &Marker, line: usize, cuts: (bool, bool)) -> Passage {
    let stretch = &text[range.clone()];
    // Empty lines around it say nothing.
    let inner = stretch.trim_matches('\n');
    let skipped = stretch.len() - stretch.trim_start_matches('\n').len();
    let shown = inner.to_owned();
    Passage {
        marks: marker.marks(&shown).into_iter().map(|mark| mark.range).collect(),
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

    fn found(text: &str, question: &str, around: usize) -> (Passage, usize) {
        passage(text, 0..text.len(), &Marker::new(question), around)
    }

    #[test]
    fn lines_around_the_best_place_are_shown_as_they_are() {
        let text = "one\n\n  the Parser fails\r\non empty input\nfour\nfive parser";
        let (passage, words) = found(text, "parser input", 1);
        assert_eq!(passage.text, "  the Parser fails\r\non empty input");
        assert_eq!((passage.line, words), (3, 2));
        assert_eq!(
            passage.marks.iter().map(|mark| &passage.text[mark.clone()]).collect::<Vec<_>>(),
            ["Parser", "input"]
        );
        assert_eq!(text.chars().skip(passage.character).take(6).collect::<String>(), "  the ");
        assert_eq!((found(text, "nowhere", 1).0.line, found(text, "nowhere", 1).1), (1, 0));
        assert_eq!(found(text, "five", 0).0.text, "five parser");
    }

    #[test]
    fn a_long_line_is_shown_around_what_was_asked_for() {
        let text = format!("{}needle{}", "ä ".repeat(5_000), " x".repeat(5_000));
        let (passage, _) = found(&text, "needle", 3);
        assert!(passage.text.len() <= PASSAGE_MOST && passage.text.contains("needle"));
        assert!(passage.is_cut_before && passage.is_cut_after);
        assert!(text.chars().skip(passage.character).collect::<String>().starts_with(&passage.text));
    }
}
