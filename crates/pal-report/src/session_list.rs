//! The list of stored sessions: title, cost, tokens, age and size on disk of each.

mod session_digest;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

use pal_model::text::{count_noun, group_digits};
use pal_model::{ModelCatalog, Timestamp};
use serde_json::{Value, json};

use crate::stored_sessions::StoredSession;
use crate::text_layout::clip_line;
use crate::text_style::TextStyle;
use crate::units::{format_age, format_bytes, format_count, format_usd};
pub use session_digest::{ResponseGaps, SessionDigest};

/// Minimum characters of a session id that a list shows.
const ID_CHARS_MIN: usize = 8;
/// Threads that read logs at the same time.
const READERS_MAX: usize = 8;

/// A session of the list.
pub struct SessionSummary {
    /// Id and log of the session.
    pub stored: StoredSession,
    /// Summary of its log.
    pub digest: SessionDigest,
    /// Size of the session's directory: its log, outputs, notes and subagents.
    pub disk_bytes: u64,
    /// Time of its last entry, else of the last write to its log.
    pub active: Timestamp,
}

impl SessionSummary {
    /// Returns the title or first prompt of the session.
    pub fn title(&self) -> &str {
        self.digest.title.as_deref().unwrap_or("(no prompt yet)")
    }

    /// Returns cost, tokens, entries, disk size and model in one line.
    pub fn details(&self) -> String {
        let digest = &self.digest;
        // Most important first: a line that does not fit is clipped at its end.
        let mut facts = Vec::new();
        if digest.spent.responses > digest.gaps.unreported {
            let more = if digest.gaps.unpriced > 0 { " and more" } else { "" };
            let estimated = if digest.estimated > 0 { ", output partly estimated" } else { "" };
            let cost = digest.cost().map(|cost| format!("{}{more}{estimated}", format_usd(cost)));
            let simulated = format!("{} simulated", format_usd(digest.simulated_cost));
            match cost {
                Some(cost) if digest.simulated > 0 => facts.push(format!("{cost} and {simulated}")),
                Some(cost) => facts.push(cost),
                None if digest.simulated > 0 => facts.push(simulated),
                None => facts.push(String::from("price not known")),
            }
            facts.push(format!("{} tokens", format_count(digest.tokens())));
        }
        if digest.gaps.unreported > 0 {
            facts.push(match digest.gaps.unreported == digest.spent.responses {
                true => String::from("usage not reported"),
                false => {
                    let responses = usize::try_from(digest.gaps.unreported).unwrap_or(usize::MAX);
                    format!("{} without usage", count_noun(responses, "response"))
                }
            });
        }
        facts.push(match digest.entries {
            1 => String::from("1 entry"),
            entries => format!("{} entries", group_digits(entries)),
        });
        facts.push(format_bytes(self.disk_bytes));
        facts.extend(digest.model.as_ref().map(ToString::to_string));
        facts.join(" · ")
    }

    /// Returns the summary as one JSON object.
    pub fn to_json(&self) -> Value {
        let SessionSummary { stored: kept, digest, disk_bytes, active } = self;
        let spent = &digest.spent;
        json!({
            "id": kept.id, "title": digest.title, "last_active": active, "entries": digest.entries, "bytes": digest.bytes,
            "disk_bytes": disk_bytes, "responses": spent.responses, "tokens": digest.tokens(),
            "usage": {
                "input_tokens": spent.input_tokens, "cache_creation_input_tokens": spent.cache_creation_input_tokens,
                "cache_read_input_tokens": spent.cache_read_input_tokens, "output_tokens": spent.output_tokens,
            },
            "cost_usd": digest.cost(), "simulated_cost_usd": (digest.simulated > 0).then_some(digest.simulated_cost),
            "unpriced_responses": digest.gaps.unpriced, "unreported_responses": digest.gaps.unreported,
            "copied_responses": digest.gaps.copied, "estimated_responses": digest.estimated, "model": digest.model,
            "cwd": digest.session.as_ref().and_then(|session| session.cwd.clone()),
            "program": digest.session.as_ref().map(|session| session.program.clone()),
            "foreign_id": digest.session.as_ref().and_then(|session| session.foreign_id.clone()),
            "path": kept.log.to_string_lossy(), "problem": digest.problem, "bad_lines": digest.bad_lines,
        })
    }
}

/// Reads the logs of sessions, several at once, and returns the most recently active first. Responses that a fork copied
/// count in the session that they come from, even if that one is not among `sessions` but among `all` stored sessions.
/// `on_progress` is called on the calling thread with the number of logs read so far.
pub fn read_summaries(
    sessions: &[StoredSession],
    all: &[StoredSession],
    cards: &ModelCatalog,
    mut on_progress: impl FnMut(usize),
) -> Vec<SessionSummary> {
    let families = families(sessions, all);
    let listed: HashSet<&Path> = sessions.iter().map(|stored| stored.log.as_path()).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = |on_progress: &mut dyn FnMut(usize)| {
        let mut rows = Vec::new();
        while let Some(family) = families.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut counted = HashSet::new();
            for stored in family {
                let digest = SessionDigest::read_uncounted(&stored.log, cards, &mut counted);
                if !listed.contains(stored.log.as_path()) {
                    continue;
                }
                let active = digest.last.unwrap_or_else(|| written(&stored.log));
                let disk_bytes = stored.log.parent().map_or(0, pal_store::directory_bytes);
                rows.push(SessionSummary { stored: (*stored).clone(), digest, disk_bytes, active });
                on_progress(done.fetch_add(1, Ordering::Relaxed) + 1);
            }
        }
        rows
    };
    let helpers = std::thread::available_parallelism().map_or(1, |count| count.get().min(READERS_MAX)) - 1;
    let mut rows = std::thread::scope(|scope| {
        let helpers: Vec<_> = (0..helpers).map(|_| scope.spawn(|| work(&mut |_| ()))).collect();
        let mut rows = work(&mut on_progress);
        rows.extend(helpers.into_iter().filter_map(|helper| helper.join().ok()).flatten());
        rows
    });
    rows.sort_by(|one, other| (other.active, &other.stored.id).cmp(&(one.active, &one.stored.id)));
    rows
}

/// Groups each listed session with its forks and with the session that it was forked from: their logs start with the same
/// entry. In a group, an original precedes its copies, since ids of sessions sort by time.
fn families<'a>(sessions: &'a [StoredSession], all: &'a [StoredSession]) -> Vec<Vec<&'a StoredSession>> {
    let mut families: HashMap<Vec<u8>, Vec<&StoredSession>> = HashMap::new();
    let mut alone = Vec::new();
    let mut paths = HashSet::new();
    for stored in sessions {
        paths.insert(stored.log.as_path());
        match first_entry_id(&stored.log) {
            Some(id) => families.entry(id).or_default().push(stored),
            None => alone.push(vec![stored]),
        }
    }
    for stored in all.iter().filter(|stored| !paths.contains(stored.log.as_path())) {
        if let Some(family) = first_entry_id(&stored.log).and_then(|id| families.get_mut(&id)) {
            family.push(stored);
        }
    }
    for family in families.values_mut() {
        family.sort_by_key(|stored| (&stored.id, &stored.log));
    }
    alone.extend(families.into_values());
    alone
}

/// Id of the first entry of a log.
fn first_entry_id(log: &Path) -> Option<Vec<u8>> {
    const HEAD_BYTES: u64 = 200;
    let mut head = Vec::new();
    File::open(log).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    let from = memchr::memmem::find(&head, b"\"id\":\"")? + 6;
    let rest = &head[from..];
    Some(rest[..memchr::memchr(b'"', rest)?].to_vec())
}

/// A list of sessions as people read it: two lines a session.
pub struct SessionList<'a> {
    /// Sessions in the order of the list.
    pub sessions: &'a [SessionSummary],
    /// Characters of an id that are shown; see [`distinct_id_chars`].
    pub id_chars: usize,
    /// Show the directory of each session.
    pub with_directories: bool,
}

impl SessionList<'_> {
    /// Writes the list, in at most `columns` columns. Ages count from `now`.
    pub fn write_text(
        &self,
        style: TextStyle,
        columns: usize,
        now: Timestamp,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        for row in self.sessions {
            self.write_session(row, style, columns, now, out)?;
        }
        Ok(())
    }

    fn write_session(
        &self,
        row: &SessionSummary,
        style: TextStyle,
        columns: usize,
        now: Timestamp,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let SessionSummary { stored: kept, digest, active, .. } = row;
        let id: String = kept.id.chars().take(self.id_chars).collect();
        let indent = " ".repeat(id.chars().count() + 2);
        let ago = format_age(*active, now);
        let room = columns.saturating_sub(indent.len() + ago.chars().count() + 2);
        let title = clip_line(digest.title.as_deref().unwrap_or("(no prompt yet)"), room);
        // The age follows the title instead of standing at the right margin: wide characters take two columns.
        writeln!(out, "{}  {}  {}", style.cyan(&id), style.bold(&title), style.dim(&ago))?;
        let facts = clip_line(&row.details(), columns - indent.len());
        writeln!(out, "{indent}{}", style.dim(&facts))?;
        if let Some(cwd) =
            digest.session.as_ref().and_then(|session| session.cwd.as_ref()).filter(|_| self.with_directories)
        {
            let cwd = clip_line(cwd, columns - indent.len());
            writeln!(out, "{indent}{}", style.dim(&cwd))?;
        }
        if let Some(problem) = &digest.problem {
            let count = match digest.bad_lines {
                0 | 1 => String::new(),
                lines => format!(" ({})", count_noun(lines as usize, "bad line")),
            };
            let line = clip_line(&format!("damaged{count}: {problem}"), columns - indent.len());
            writeln!(out, "{indent}{}", style.yellow(&line))?;
        }
        Ok(())
    }
}

/// Returns how many characters tell each of the ids from all others.
pub fn distinct_id_chars(mut ids: Vec<String>) -> usize {
    ids.sort();
    let shared = |pair: &[String]| {
        pair[0].bytes().zip(pair[1].bytes()).take_while(|(one, other)| one == other).count()
    };
    ids.windows(2).map(|pair| shared(pair) + 1).max().unwrap_or(0).max(ID_CHARS_MIN)
}

/// Returns the time of the last write to a file.
fn written(log: &Path) -> Timestamp {
    let time = log.metadata().and_then(|metadata| metadata.modified()).ok();
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Timestamp::from_milliseconds(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shown_as_far_as_they_differ() {
        let ids = |ids: &[&str]| distinct_id_chars(ids.iter().map(|id| (*id).to_owned()).collect());
        assert_eq!(ids(&["0199a8f2-7b10", "0199a8f2-7c10", "0200"]), 11);
        assert_eq!((ids(&["a", "b"]), ids(&[])), (8, 8));
    }
}
