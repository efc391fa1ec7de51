//! The memory index in the prompt prefix.

use pal_memory::{
    CONTEXT_BYTES, CONTEXT_LINES, INDEX_FILE, MemoryError, MemoryIndexText, MemoryLocation, MemoryStore,
};
use pal_model::Timestamp;
use pal_prompt::MemoryIndex;

/// Maximum number of omitted memories that are named.
const NAMED: usize = 5;

/// Indexes of a memory location, including those of another program, with notices for the user. A missing or
/// unreadable directory yields none.
pub fn memory_index(place: &MemoryLocation, now: Timestamp) -> (Vec<MemoryIndex>, Vec<String>) {
    let mut notices = Vec::new();
    let mut told = |error: MemoryError| notices.push(format!("what is remembered cannot be read: {error}"));
    let mut memories: Vec<MemoryStore> = Vec::new();
    match place.open_existing(now) {
        Ok(ours) => memories.extend(ours),
        Err(error) => told(error),
    }
    match place.open_read_only() {
        Ok(others) => memories.extend(others),
        Err(error) => told(error),
    }
    let mut indexes = Vec::new();
    for memory in &mut memories {
        match memory.index_for_context() {
            Ok(index) if index.text.trim().is_empty() => {}
            Ok(index) => indexes.push(MemoryIndex {
                path: memory.path().join(INDEX_FILE).display().to_string(),
                left_out: left_out(&index),
                text: index.text,
            }),
            Err(error) => told(error),
        }
    }
    let cut = indexes.iter().filter(|index| !index.left_out.is_empty());
    // Problems come first: a truncated line loses its end.
    let cut: Vec<String> = cut.map(|index| format!("{} ({})", index.left_out, index.path)).collect();
    notices.extend(cut);
    (indexes, notices)
}

/// Describes memories that did not fit.
fn left_out(index: &MemoryIndexText) -> String {
    let count = index.left_out.len();
    if count + index.lines_left_out == 0 {
        return String::new();
    }
    let mut words = Vec::new();
    if count > 0 {
        let named: Vec<&str> = index.left_out.iter().rev().take(NAMED).map(String::as_str).collect();
        let more = if count > NAMED { ", …" } else { "" };
        words.push(format!("the {count} oldest and least used memories ({}{more})", named.join(", ")));
    }
    if index.lines_left_out > 0 {
        words.push(format!("{} lines that were written by hand", index.lines_left_out));
    }
    format!(
        "{} found no room in {CONTEXT_LINES} lines and {} KB; they can still be searched",
        words.join(" and "),
        CONTEXT_BYTES / 1_000
    )
}
