//! Indexed terms near a misspelt word.

use rusqlite::{Connection, params};

use crate::index_database::SearchError;

/// An indexed term near a misspelt word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NearTerm {
    /// The term, which is a stem.
    pub term: String,
    /// Edits between the word and the term.
    pub distance: usize,
    /// Number of documents with the term.
    pub documents: i64,
}

impl NearTerm {
    /// Returns true if the term is nearer than another one, or as near and more frequent.
    pub fn is_better_than(&self, other: &NearTerm) -> bool {
        (self.distance, -self.documents) < (other.distance, -other.documents)
    }
}

/// Shortest word that is corrected.
const CORRECTED_CHARS_MIN: usize = 4;
/// Longest ending that the stemmer cuts off a word.
const ENDING_CHARS_MAX: usize = 4;

/// Name of the temporary table with the terms of an index.
const VOCABULARY: &str = "temp.vocabulary";

fn create_vocabulary(connection: &Connection, table: &str) -> Result<(), SearchError> {
    Ok(connection.execute_batch(&format!(
        "CREATE VIRTUAL TABLE IF NOT EXISTS {VOCABULARY} USING fts5vocab('main', '{table}', 'row')"
    ))?)
}

/// Returns true if a full-text table has a term that starts with a lower-case word.
pub(crate) fn has_term_start(connection: &Connection, table: &str, word: &str) -> Result<bool, SearchError> {
    create_vocabulary(connection, table)?;
    // A prefix query would stem the word first: `documenation` would be the start of `document`.
    let mut statement = connection
        .prepare_cached(&format!("SELECT 1 FROM {VOCABULARY} WHERE term >= ?1 AND term < ?2 LIMIT 1"))?;
    Ok(statement.exists(params![word, format!("{word}\u{10ffff}")])?)
}

/// Finds the term of a full-text table nearest to a lower-case word: the most frequent one at the smallest distance,
/// with the same first letter.
pub(crate) fn nearest_term(
    connection: &Connection,
    table: &str,
    word: &str,
) -> Result<Option<NearTerm>, SearchError> {
    let length = word.chars().count();
    let Some(first) = word.chars().next().filter(|first| first.is_alphabetic()) else { return Ok(None) };
    if length < CORRECTED_CHARS_MIN {
        return Ok(None);
    }
    create_vocabulary(connection, table)?;
    let distance_max = if length < 6 { 1 } else { 2 };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT term, doc FROM {VOCABULARY} WHERE term >= ?1 AND term < ?2 AND length(term) BETWEEN ?3 AND ?4"
    ))?;
    let end = char::from_u32(first as u32 + 1).unwrap_or(char::MAX);
    // Terms are stems, which may be shorter than the word.
    let lengths = (
        length.saturating_sub(distance_max + ENDING_CHARS_MAX).max(3) as i64,
        (length + distance_max) as i64,
    );
    let rows = statement
        .query_map(params![first.to_string(), end.to_string(), lengths.0, lengths.1], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })?;
    let starts = word_starts(word);
    let mut best: Option<NearTerm> = None;
    for row in rows {
        let (term, documents) = row?;
        let near = NearTerm { distance: stem_distance(&starts, &term), documents, term };
        if near.distance <= distance_max && best.as_ref().is_none_or(|best| near.is_better_than(best)) {
            best = Some(near);
        }
    }
    Ok(best)
}

/// A word without its last letters, and the edits that cutting them off counts as.
struct WordStart {
    letters: Vec<char>,
    cost: usize,
}

/// Starts of a word that may be its stem: the stemmer cuts endings off. Cutting one off counts as an edit, and cutting anything else
/// off as one for each letter.
fn word_starts(word: &str) -> Vec<WordStart> {
    let letters: Vec<char> = word.chars().collect();
    let cut = letters.len().saturating_sub(ENDING_CHARS_MAX).max(CORRECTED_CHARS_MIN);
    (cut..=letters.len())
        .map(|end| WordStart { letters: letters[..end].to_vec(), cost: ending_cost(&letters[end..]) })
        .collect()
}

/// Distance between a word, given by its starts, and a stem. The stemmer turns a last `y` into `i`.
fn stem_distance(starts: &[WordStart], stem: &str) -> usize {
    let mut stem: Vec<char> = stem.chars().collect();
    if let Some(last) = stem.last_mut().filter(|last| **last == 'i') {
        *last = 'y';
    }
    let distances = starts.iter().map(|start| edit_distance(&start.letters, &stem) + start.cost);
    distances.min().unwrap_or(usize::MAX)
}

/// Endings of more than two letters that the stemmer cuts off.
const ENDINGS: [&str; 30] = [
    "able", "ably", "ally", "ance", "ate", "ated", "ates", "ation", "ator", "ence", "ers", "ful", "ible",
    "ied", "ies", "ing", "ings", "ion", "ions", "ise", "ism", "ity", "ive", "ize", "less", "ment", "ness",
    "ors", "ous", "tion",
];

/// Edits that cutting these last letters off a word counts as. One or two may be the rest of a misspelt ending, more of them may be an
/// ending with one letter wrong.
fn ending_cost(letters: &[char]) -> usize {
    let is_like = |ending: &&str| {
        let ending: Vec<char> = ending.chars().collect();
        edit_distance(letters, &ending) <= usize::from(ending.len() > 3)
    };
    let is_ending = letters.len() <= 2 || ENDINGS.iter().any(is_like);
    if is_ending { usize::from(!letters.is_empty()) } else { letters.len() }
}

/// Number of letters to insert, delete, replace or swap with their neighbor.
fn edit_distance(one: &[char], other: &[char]) -> usize {
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for (at, row) in rows.iter_mut().enumerate() {
        row[0] = at;
    }
    rows[0] = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        for (j, b) in other.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(a != b);
            let mut least = replaced.min(rows[i][j + 1] + 1).min(rows[i + 1][j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            rows[i + 1][j + 1] = least;
        }
    }
    rows[one.len()][other.len()]
}
