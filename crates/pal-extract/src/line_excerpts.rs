//! Lines that a conversation worked with last: verbatim excerpts for the time after a compaction.
//!
//! An agent goes on with the names that it has just used. Of 1,619 words that agents wrote within 30 calls after a recorded compaction,
//! the clients' summaries showed 28%; a word that the agent wrote at most 5 calls ago is written again in half of the cases, one of 40
//! calls ago in a tenth, and one that it never wrote itself in a twentieth. So each distinctive word has a demand, which grows with its
//! uses and falls with its age, and lines are chosen that cover the most demand per token.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::distinctive_words::distinctive_words;

/// Lengths of a line, in characters; longer ones are cut.
const LINE_MIN: usize = 8;
const LINE_MAX: usize = 160;
/// Overhead of a line in tokens: it begins out of context.
const LINE_TOKENS: f64 = 2.0;
/// Minimum demand that a line covers per token; a line below is read again at less cost than it is carried.
const VALUE_MIN: f64 = 0.004;
/// Attempts to fill the tokens, and the share of them that is enough.
const ROUNDS: usize = 5;
const CLOSE_PERCENT: u64 = 95;
/// Demand for a word that the agent wrote once in the newest call, and for one that only results show.
const WRITTEN: f64 = 0.25;
const READ: f64 = 0.03;
/// Growth with the number of uses, and decline with age in calls.
const WRITTEN_USES: f64 = 0.8;
const WRITTEN_AGE: f64 = 0.55;
const READ_USES: f64 = 0.34;
const READ_AGE: f64 = 0.43;
/// Characters of a token, for the choice among lines.
const TOKEN_CHARACTERS: f64 = 3.0;

/// A text of a conversation.
#[derive(Clone, Debug)]
pub struct ExcerptText<'a> {
    /// Its source: a file, a command; empty for what the agent says.
    pub source: &'a str,
    /// True if the agent wrote it, in a call or as text.
    pub is_agents: bool,
    /// Number of the model's call that it belongs to, counted from the start of the conversation.
    pub call: usize,
    /// The text.
    pub text: &'a str,
}

/// Chooses lines of texts, given in order, that a context without them would need most, in at most `tokens` tokens by `estimate`.
/// Words that `is_shown` count for nothing. Lines stand under their source, in the order in which they were said.
pub fn line_excerpts(
    texts: &[ExcerptText<'_>],
    is_shown: &dyn Fn(&str) -> bool,
    tokens: u64,
    estimate: &dyn Fn(&str) -> u64,
) -> String {
    let choice = LineChoice::new(texts, is_shown);
    let mut budget = tokens as f64;
    let mut best = String::new();
    // Tokens of lines in sum and those of the whole text differ.
    for _ in 0..ROUNDS {
        let text = layout(texts, &choice.lines, &choice.choose(budget));
        let taken = estimate(&text);
        if taken <= tokens && text.len() > best.len() {
            best = text;
        }
        if taken == 0 || (taken <= tokens && taken * 100 >= tokens * CLOSE_PERCENT) {
            break;
        }
        budget *= 0.99 * tokens as f64 / taken as f64;
    }
    best
}

/// Uses of a word so far.
#[derive(Default)]
struct WordUses {
    written: u32,
    written_last: usize,
    read: u32,
    read_last: usize,
}

fn word_demand<'a>(texts: &[ExcerptText<'a>], is_shown: &dyn Fn(&str) -> bool) -> FxHashMap<&'a str, f64> {
    let mut uses: FxHashMap<&str, WordUses> = FxHashMap::default();
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    for text in texts {
        seen.clear();
        for word in distinctive_words(text.text).filter(|word| !is_emphasis(word)) {
            if !seen.insert(word) {
                continue;
            }
            let uses = uses.entry(word).or_default();
            let (count, last) = match text.is_agents {
                true => (&mut uses.written, &mut uses.written_last),
                false => (&mut uses.read, &mut uses.read_last),
            };
            *count += 1;
            *last = text.call;
        }
    }
    let now = texts.iter().map(|text| text.call).max().unwrap_or_default();
    let power = |count: u32, growth: f64, last: usize, decline: f64| match count {
        0 => 0.0,
        _ => f64::from(1 + count).powf(growth) / ((now - last + 1) as f64).powf(decline),
    };
    let wanted = |uses: &WordUses| {
        let written = WRITTEN * power(uses.written, WRITTEN_USES, uses.written_last, WRITTEN_AGE);
        let read = READ * power(uses.read, READ_USES, uses.read_last, READ_AGE);
        (written + read).min(1.0)
    };
    uses.iter().filter(|(word, _)| !is_shown(word)).map(|(word, uses)| (*word, wanted(uses))).collect()
}

/// Words in capitals alone are emphasis.
fn is_emphasis(word: &str) -> bool {
    word.chars().all(|letter| letter.is_uppercase() || matches!(letter, '-' | '/'))
}

/// A line that may be chosen.
struct CandidateLine<'a> {
    /// Position of its text.
    text: usize,
    /// Number of its source.
    source: usize,
    line: &'a str,
    words: Vec<&'a str>,
    tokens: f64,
}

/// Name of a source, which is stated once before its lines.
struct SourceName<'a> {
    words: Vec<&'a str>,
    tokens: f64,
    /// Its lines.
    lines: Vec<usize>,
}

/// Lines to choose from.
struct LineChoice<'a> {
    demand: FxHashMap<&'a str, f64>,
    lines: Vec<CandidateLine<'a>>,
    sources: Vec<SourceName<'a>>,
}

/// Lines chosen so far.
struct ChosenLines<'a> {
    covered: FxHashSet<&'a str>,
    is_open: Vec<bool>,
    is_chosen: Vec<bool>,
}

impl<'a> LineChoice<'a> {
    fn new(texts: &[ExcerptText<'a>], is_shown: &dyn Fn(&str) -> bool) -> LineChoice<'a> {
        let demand = word_demand(texts, is_shown);
        let words = |text: &'a str| {
            let mut words: Vec<&str> =
                distinctive_words(text).filter(|word| demand.contains_key(word)).collect();
            words.sort_unstable();
            words.dedup();
            words
        };
        let tokens = |text: &str| text.chars().count() as f64 / TOKEN_CHARACTERS;
        let mut numbers: FxHashMap<&str, usize> = FxHashMap::default();
        let mut sources: Vec<SourceName<'a>> = Vec::new();
        let mut lines: Vec<CandidateLine<'a>> = Vec::new();
        // Of equal lines the newest counts.
        let mut known: FxHashSet<&str> = FxHashSet::default();
        for (at, text) in texts.iter().enumerate().rev() {
            let source = *numbers.entry(text.source).or_insert_with(|| {
                let name =
                    SourceName { words: words(text.source), tokens: tokens(text.source), lines: Vec::new() };
                sources.push(name);
                sources.len() - 1
            });
            for line in text.text.lines().rev() {
                let line = line.trim_end();
                let line = line.char_indices().nth(LINE_MAX).map_or(line, |(end, _)| &line[..end]);
                // The name of its source says it already.
                if line.trim_start().len() < LINE_MIN
                    || text.source.contains(line.trim())
                    || !known.insert(line.trim_start())
                {
                    continue;
                }
                let words = words(line);
                if !words.is_empty() {
                    lines.push(CandidateLine {
                        text: at,
                        source,
                        line,
                        words,
                        tokens: tokens(line) + LINE_TOKENS,
                    });
                }
            }
        }
        lines.reverse();
        for (at, line) in lines.iter().enumerate() {
            sources[line.source].lines.push(at);
        }
        LineChoice { demand, lines, sources }
    }

    /// Tokens of a line, with the name of its source if it is the first of it, and its value per token. A word counts once.
    fn weigh(&self, line: usize, chosen: &ChosenLines<'a>) -> (f64, f64) {
        let line = &self.lines[line];
        let name = Some(&self.sources[line.source]).filter(|_| !chosen.is_open[line.source]);
        let words = line.words.iter().chain(name.into_iter().flat_map(|name| &name.words));
        let mut value = 0.0;
        for word in words.filter(|word| !chosen.covered.contains(*word)) {
            value += self.demand.get(word).copied().unwrap_or_default();
        }
        let tokens = line.tokens + name.map_or(0.0, |name| name.tokens);
        (tokens, value / tokens)
    }

    /// Chooses the line of the highest value per token, again and again. Returns the lines in order.
    fn choose(&self, tokens: f64) -> Vec<usize> {
        let mut chosen = ChosenLines {
            covered: FxHashSet::default(),
            is_open: vec![false; self.sources.len()],
            is_chosen: vec![false; self.lines.len()],
        };
        let ranked =
            |line: usize, chosen: &ChosenLines<'a>| RankedLine { value: self.weigh(line, chosen).1, line };
        let mut queue: BinaryHeap<RankedLine> =
            (0..self.lines.len()).map(|line| ranked(line, &chosen)).collect();
        let mut left = tokens;
        while let Some(best) = queue.pop() {
            if chosen.is_chosen[best.line] {
                continue;
            }
            let (tokens, value) = self.weigh(best.line, &chosen);
            if value < VALUE_MIN || tokens > left {
                continue;
            }
            if queue.peek().is_some_and(|next| next.value > value) {
                queue.push(RankedLine { value, line: best.line });
                continue;
            }
            let line = &self.lines[best.line];
            left -= tokens;
            chosen.is_chosen[best.line] = true;
            chosen.covered.extend(&line.words);
            if !std::mem::replace(&mut chosen.is_open[line.source], true) {
                let source = &self.sources[line.source];
                chosen.covered.extend(&source.words);
                // Its other lines are cheaper from here on.
                queue.extend(source.lines.iter().map(|line| ranked(*line, &chosen)));
            }
        }
        (0..self.lines.len()).filter(|line| chosen.is_chosen[*line]).collect()
    }
}

/// A line with its value per token when it was last computed.
struct RankedLine {
    value: f64,
    line: usize,
}

impl PartialEq for RankedLine {
    fn eq(&self, other: &RankedLine) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RankedLine {}

impl PartialOrd for RankedLine {
    fn partial_cmp(&self, other: &RankedLine) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RankedLine {
    fn cmp(&self, other: &RankedLine) -> Ordering {
        self.value.total_cmp(&other.value).then(self.line.cmp(&other.line))
    }
}

/// Lines under their sources, which stand in the order of their first line.
fn layout(texts: &[ExcerptText<'_>], lines: &[CandidateLine<'_>], chosen: &[usize]) -> String {
    let mut sources: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in chosen.iter().filter_map(|at| lines.get(*at)) {
        let Some(source) = texts.get(line.text).map(|text| text.source) else { continue };
        match sources.iter_mut().find(|(known, _)| *known == source) {
            Some((_, group)) => group.push(line.line),
            None => sources.push((source, vec![line.line])),
        }
    }
    let mut out = String::new();
    for (source, group) in sources {
        if !source.is_empty() {
            out.push_str(source);
            out.push_str(":\n");
        }
        for line in group {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<'a>(source: &'a str, is_agents: bool, call: usize, text: &'a str) -> ExcerptText<'a> {
        ExcerptText { source, is_agents, call, text }
    }

    fn excerpts(texts: &[ExcerptText<'_>], tokens: u64) -> String {
        line_excerpts(texts, &|_| false, tokens, &|text| text.len() as u64 / 3)
    }

    #[test]
    fn lines_with_words_in_use_are_chosen_under_their_source() {
        let listing: String = (0..200).map(|at| format!("    let unrelated_{at} = {at};\n")).collect();
        let result = format!("{listing}pub fn parse_line(text: &str) -> HttpServer {{\n{listing}");
        let texts = [
            text("src/lib.rs", false, 1, &result),
            text("src/lib.rs", true, 2, "parse_line(input).with_timeout_ms(30)"),
            text("", true, 3, "I changed parse_line, and HttpServer is next."),
        ];
        let found = excerpts(&texts, 45);
        assert!(found.contains("with_timeout_ms") && found.contains("HttpServer"), "{found}");
        assert!(found.starts_with("src/lib.rs:\n") && !found.contains("unrelated_7 "), "{found}");
    }

    #[test]
    fn what_is_shown_counts_for_nothing_and_the_room_is_kept() {
        let many: String =
            (0..500).map(|at| format!("error in module_{at}.rs: missing_field_{at}\n")).collect();
        let texts = [
            text("cargo check", false, 1, &many),
            text("", true, 2, "module_3.rs needs missing_field_3\nmodule_4.rs needs missing_field_4"),
        ];
        for tokens in [0, 20, 100, 1_000] {
            assert!(excerpts(&texts, tokens).len() as u64 / 3 <= tokens, "{tokens}");
        }
        let found = line_excerpts(&texts, &|word| word.contains("_3"), 100, &|text| text.len() as u64 / 3);
        assert!(found.contains("missing_field_4") && !found.contains("missing_field_3"), "{found}");
        assert_eq!(line_excerpts(&texts, &|_| true, 100, &|_| 1), "");
    }

    #[test]
    fn newer_and_more_frequent_words_come_first() {
        let texts = [
            text("a.rs", true, 1, "old_name_one = 1;"),
            text("b.rs", true, 40, "new_name_two = 2;"),
            text("c.rs", false, 40, "only_read_three = 3;"),
        ];
        assert_eq!(excerpts(&texts, 11), "b.rs:\nnew_name_two = 2;");
    }
}
