//! Usage in Claude Code transcripts.

use pal_model::{Timestamp, TokenEstimator, Usage};

use super::{RowsByKey, UsageFlags, UsageRow, UsageScan, for_each_line, hash_parts};
use crate::content_blocks;
use crate::raw_fields::{is_true, pick, pick_or_none, string};
use crate::source_lines::is_too_deep;

const NAMES: [&str; 10] = [
    "type",
    "timestamp",
    "sessionId",
    "cwd",
    "message",
    "isSidechain",
    "isApiErrorMessage",
    "requestId",
    "uuid",
    "subtype",
];

/// Reads whole lines. Only lines that may hold usage, a compaction, or the session's directory are parsed.
pub(super) fn read(scan: &mut UsageScan, bytes: &[u8], measure: &dyn TokenEstimator) {
    let usage = memchr::memmem::Finder::new(b"\"usage\"");
    let compaction = memchr::memmem::Finder::new(b"compact_boundary");
    let mut rows = RowsByKey::of(&scan.rows);
    for_each_line(bytes, |line| {
        let is_described = scan.cwd.is_some() && scan.foreign_id.is_some();
        if is_described && usage.find(line).is_none() && compaction.find(line).is_none() {
            return;
        }
        let text = std::str::from_utf8(line).ok().filter(|_| !is_too_deep(line));
        match text.and_then(|text| pick(text, &NAMES).ok()) {
            Some(fields) => read_record(scan, &mut rows, fields, measure),
            None => scan.progress.bad_lines += 1,
        }
    });
}

fn read_record(
    scan: &mut UsageScan,
    rows: &mut RowsByKey,
    fields: [Option<&str>; NAMES.len()],
    measure: &dyn TokenEstimator,
) {
    let [kind, timestamp, session, cwd, message, sidechain, error, request, uuid, subtype] = fields;
    if scan.foreign_id.is_none() {
        scan.foreign_id = string(session).map(Into::into);
    }
    if scan.cwd.is_none() {
        scan.cwd = string(cwd).map(Into::into);
    }
    match (string(kind).as_deref(), message) {
        (Some("system"), _) => {
            let what = string(subtype).unwrap_or_default();
            scan.progress.is_changed |= matches!(what.as_ref(), "compact_boundary" | "microcompact_boundary");
            return;
        }
        (Some("assistant"), Some(_)) if !is_true(error) => {}
        _ => return,
    }
    let names = ["id", "model", "usage", "stop_reason", "content"];
    let [id, model, usage, stop_reason, content] = pick_or_none(message.unwrap_or("{}"), &names);
    let model = string(model).unwrap_or_default();
    let Some(usage) = usage.filter(|usage| usage.starts_with('{')) else { return };
    if model == "<synthetic>" {
        return;
    }
    // A resumed session may repeat its records.
    if let Some(uuid) = uuid
        && !rows.records.insert(hash_parts(&[uuid.as_bytes()]))
    {
        return;
    }
    let usage: Usage = serde_json::from_str(usage).unwrap_or_default();
    let key = match (id, request) {
        (None, None) => 0,
        (id, request) => hash_parts(&[
            id.unwrap_or_default().as_bytes(),
            request.filter(|request| *request != "null").unwrap_or_default().as_bytes(),
        ]),
    };
    let is_subagent = is_true(sidechain);
    let known = rows.at.get(&key).copied().filter(|_| key != 0);
    let at = known.unwrap_or(scan.rows.len());
    if known.is_none() {
        let at_ms =
            string(timestamp).and_then(|at| at.parse::<Timestamp>().ok()).map_or(0, Timestamp::milliseconds);
        let mut row = UsageRow { key, at_ms, model: scan.model_index(&model), ..UsageRow::default() };
        row.flags.set(UsageFlags::SUBAGENT, is_subagent);
        if !is_subagent {
            row.flags.set(UsageFlags::AFTER_CHANGE, std::mem::take(&mut scan.progress.is_changed));
        }
        scan.rows.push(row);
        rows.at.insert(key, at);
    }
    let is_complete = string(stop_reason).is_some();
    let row = &mut scan.rows[at];
    // The last record of a response has its final figures; a record of a stream's start has a placeholder.
    if usage.output_tokens >= u64::from(row.output) {
        row.set_tokens(&usage);
    }
    row.flags.set(UsageFlags::COMPLETE, is_complete);
    if !is_complete && let Some(content) = content {
        row.add_estimate(content_blocks::estimate(content, &model, measure));
    }
    if usage.iterations.is_some() {
        let row = scan.rows[at];
        scan.push_extra_passes(&row, &usage);
    }
}
