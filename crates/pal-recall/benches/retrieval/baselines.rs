//! BM25 rankings of the same turns, to compare with: stemmed, without stop words.

use pal_search::{SearchDocument, SearchIndex};

use crate::coding_questions::texts_of_log;
use crate::conversations::Conversation;
use crate::scores::RankedResult;

/// Documents asked for.
const LIMIT: usize = 50;
/// Maximum characters of a small chunk.
const CHUNK_CHARS: usize = 300;
/// The same for the texts of logs.
const LOG_CHUNK_CHARS: usize = 600;

/// A ranking.
pub(crate) struct Baseline {
    pub(crate) name: &'static str,
    index: SearchIndex,
    /// What each document shows, by its key.
    documents: Vec<RankedResult>,
    texts: Vec<String>,
}

impl Baseline {
    fn new(name: &'static str, documents: Vec<(String, Vec<usize>)>) -> Baseline {
        let mut index = SearchIndex::in_memory(1).unwrap();
        let keys: Vec<String> = (0..documents.len()).map(|at| format!("{at:06}")).collect();
        let fields: Vec<[&str; 1]> = documents.iter().map(|(text, _)| [text.as_str()]).collect();
        let put: Vec<SearchDocument<'_>> =
            keys.iter().zip(&fields).map(|(key, fields)| SearchDocument { key, stamp: "", fields }).collect();
        index.put(&put).unwrap();
        let of = |(text, turns): &(String, Vec<usize>)| RankedResult {
            turns: turns.clone(),
            characters: text.chars().count() + 1,
        };
        let results = documents.iter().map(of).collect();
        let texts = documents.into_iter().map(|(text, _)| text).collect();
        Baseline { name, index, documents: results, texts }
    }

    /// Documents with any word of a question, best first.
    pub(crate) fn ask(&self, question: &str) -> Vec<RankedResult> {
        self.numbers(question).into_iter().map(|number| self.documents[number].clone()).collect()
    }

    /// Texts of the documents with any word of a question, best first.
    pub(crate) fn ask_for_texts(&self, question: &str) -> Vec<String> {
        self.numbers(question).into_iter().map(|number| self.texts[number].clone()).collect()
    }

    fn numbers(&self, question: &str) -> Vec<usize> {
        let hits = self.index.search(question, &[1.0], LIMIT).unwrap();
        hits.iter().map(|hit| hit.key.parse().unwrap()).collect()
    }
}

/// BM25 over the texts of logs, over chunks of them, and over windows of three chunks of a log.
pub(crate) fn of_logs(logs: &[String]) -> Vec<Baseline> {
    let plain = |text: String| (text, Vec::new());
    let texts: Vec<Vec<String>> =
        logs.iter().map(|log| texts_of_log(log).into_iter().map(|(_, text)| text).collect()).collect();
    let pieces: Vec<Vec<String>> = texts
        .iter()
        .map(|texts| texts.iter().flat_map(|text| pieces(text, LOG_CHUNK_CHARS)).collect())
        .collect();
    let windows = pieces.iter().flat_map(|pieces| {
        (0..pieces.len()).map(|at| pieces[at.saturating_sub(1)..(at + 2).min(pieces.len())].join("\n"))
    });
    let windows = windows.map(plain).collect();
    vec![
        Baseline::new("BM25 over texts", texts.iter().flatten().cloned().map(plain).collect()),
        Baseline::new("BM25 over small chunks", pieces.iter().flatten().cloned().map(plain).collect()),
        Baseline::new("BM25 over windows of three chunks", windows),
    ]
}

/// BM25 over turns, over small chunks, and over windows of three turns of a session.
pub(crate) fn of_conversation(conversation: &Conversation) -> Vec<Baseline> {
    let turns = &conversation.turns;
    let single = turns.iter().enumerate().map(|(at, turn)| (turn.text.clone(), vec![at])).collect();
    let chunks = turns.iter().enumerate().flat_map(|(at, turn)| {
        let chunks = chunks(&turn.text);
        // The evidence is found by the chunk that holds most of it.
        let longest = chunks.iter().map(|chunk| chunk.len()).max().unwrap_or_default();
        let of = move |chunk: String| {
            let turns = if chunk.len() == longest { vec![at] } else { Vec::new() };
            (chunk, turns)
        };
        chunks.into_iter().map(of).collect::<Vec<_>>()
    });
    let window = |at: usize| {
        let from = at.saturating_sub(1);
        let to = (at + 2).min(turns.len());
        let shown: Vec<usize> =
            (from..to).filter(|other| turns[*other].session == turns[at].session).collect();
        let texts: Vec<&str> = shown.iter().map(|at| turns[*at].text.as_str()).collect();
        (texts.join("\n"), shown)
    };
    vec![
        Baseline::new("BM25 over turns", single),
        Baseline::new("BM25 over small chunks", chunks.collect()),
        Baseline::new("BM25 over windows of three turns", (0..turns.len()).map(window).collect()),
    ]
}

fn chunks(text: &str) -> Vec<String> {
    pieces(text, CHUNK_CHARS)
}

/// Pieces of a text of at most `most` bytes, cut at spaces where there are any.
fn pieces(text: &str, most: usize) -> Vec<String> {
    let mut chunks = vec![String::new()];
    for word in text.split_inclusive(' ') {
        let last = chunks.len() - 1;
        if chunks[last].len() + word.len() > most && !chunks[last].is_empty() {
            chunks.push(word.to_owned());
        } else {
            chunks[last].push_str(word);
        }
    }
    chunks
}
