//! Usage in Codex rollouts: an event after each response has its tokens and the totals so far.

use pal_model::Timestamp;

use super::{UsageFlags, UsageRow, UsageScan, for_each_line, hash_parts};
use crate::codex;
use crate::raw_fields::{pick, pick_or_none, string};
use crate::source_lines::is_too_deep;

/// Words that occur in every line that matters.
const WORDS: [&str; 4] = ["token_count", "turn_context", "session_meta", "compacted"];

/// Reads whole lines; only lines that may matter are parsed.
pub(super) fn read(scan: &mut UsageScan, bytes: &[u8]) {
    let words = WORDS.map(memchr::memmem::Finder::new);
    for_each_line(bytes, |line| {
        // The kind of a record stands at its start; a payload names its type first.
        let head = &line[..line.len().min(400)];
        if words.iter().all(|word| word.find(head).is_none()) {
            return;
        }
        let text = std::str::from_utf8(line).ok().filter(|_| !is_too_deep(line));
        match text.and_then(|text| pick(text, &["timestamp", "type", "payload"]).ok()) {
            Some([timestamp, kind, payload]) => read_record(scan, timestamp, kind, payload.unwrap_or("{}")),
            None => scan.progress.bad_lines += 1,
        }
    });
}

fn read_record(scan: &mut UsageScan, timestamp: Option<&str>, kind: Option<&str>, payload: &str) {
    match string(kind).as_deref() {
        Some("session_meta") if scan.foreign_id.is_none() => {
            let [id, session_id, cwd] = pick_or_none(payload, &["id", "session_id", "cwd"]);
            scan.foreign_id = string(id).or(string(session_id)).map(Into::into);
            scan.cwd = string(cwd).map(Into::into);
        }
        Some("turn_context") => {
            let [model] = pick_or_none(payload, &["model"]);
            if let Some(model) = string(model) {
                scan.progress.model = model.into_owned();
            }
        }
        Some("compacted") => scan.progress.is_changed = true,
        Some("event_msg") => read_event(scan, timestamp, payload),
        _ => {}
    }
}

fn read_event(scan: &mut UsageScan, timestamp: Option<&str>, payload: &str) {
    let [kind, info] = pick_or_none(payload, &["type", "info"]);
    if string(kind).as_deref() != Some("token_count") {
        return;
    }
    let [last, totals] = pick_or_none(info.unwrap_or("{}"), &["last_token_usage", "total_token_usage"]);
    let Some(usage) = last.map(codex::last_usage).filter(|usage| usage.context_tokens() > 0) else { return };
    let totals_hash = totals.map_or(0, |totals| hash_parts(&[totals.as_bytes()]));
    // An event repeats the totals where nothing was answered since.
    if totals_hash != 0 && totals_hash == scan.progress.totals {
        return;
    }
    scan.progress.totals = totals_hash;
    let at = string(timestamp);
    let at_ms = at.as_deref().and_then(|at| at.parse::<Timestamp>().ok()).map_or(0, Timestamp::milliseconds);
    let model = std::mem::take(&mut scan.progress.model);
    let mut row = UsageRow {
        key: hash_parts(&[at.as_deref().unwrap_or_default().as_bytes(), &totals_hash.to_le_bytes()]),
        at_ms,
        model: scan.model_index(&model),
        flags: UsageFlags::COMPLETE,
        ..UsageRow::default()
    };
    scan.progress.model = model;
    row.flags.set(UsageFlags::AFTER_CHANGE, std::mem::take(&mut scan.progress.is_changed));
    row.set_tokens(&usage);
    scan.rows.push(row);
}
