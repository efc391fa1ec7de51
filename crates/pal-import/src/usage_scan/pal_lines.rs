//! Usage in pal's own logs, sessions imported from other agents included.

use pal_model::{
    BreakCause, DecisionKind, EntryBody, LogEntry, ResponseRecord, SharedText, Timestamp, UsageBasis,
};

use super::{RECORDED_CAUSES, UsageFlags, UsageRow, UsageScan, for_each_line, hash_parts};

/// Bytes within which the kind of an entry appears.
const HEAD_BYTES: usize = 400;

/// Reads whole lines; only entries that may matter are parsed.
pub(super) fn read(scan: &mut UsageScan, bytes: &[u8]) {
    let kind = memchr::memmem::Finder::new(b"\"kind\":\"");
    for_each_line(bytes, |line| {
        let head = &line[..line.len().min(HEAD_BYTES)];
        let name = kind.find(head).map(|at| &head[at + 8..]);
        let matters = name.is_none_or(|name| {
            [&b"session\""[..], b"request\"", b"response\"", b"boundary\"", b"clear\"", b"fold\"", b"model\""]
                .iter()
                .any(|kind| name.starts_with(kind))
        });
        if !matters {
            return;
        }
        let text = std::str::from_utf8(line).ok();
        match text.and_then(|text| LogEntry::parse(SharedText::from(text)).ok()) {
            Some(entry) => read_entry(scan, &entry),
            None => scan.progress.bad_lines += 1,
        }
    });
}

fn read_entry(scan: &mut UsageScan, entry: &LogEntry) {
    match &entry.body {
        EntryBody::Session(session) => {
            if scan.foreign_id.is_none() && scan.rows.is_empty() {
                scan.foreign_id.clone_from(&session.foreign_id);
                if !session.program.is_empty() {
                    scan.program.clone_from(&session.program);
                }
            }
            // A fork continues the session in another directory.
            scan.cwd = session.cwd.clone().or(scan.cwd.take());
        }
        EntryBody::Request(request) => {
            scan.progress.model = request.model.to_string();
            scan.progress.is_own = request.fingerprint.is_some();
        }
        EntryBody::Response(response) => read_response(scan, response, entry.at),
        EntryBody::Boundary(boundary) => scan.progress.is_changed |= boundary.has_summary(),
        EntryBody::Decision(decision) => {
            scan.progress.is_changed |=
                matches!(decision.kind, DecisionKind::Clear { .. } | DecisionKind::Fold { .. });
        }
        _ => {}
    }
}

fn read_response(scan: &mut UsageScan, response: &ResponseRecord, at: Timestamp) {
    let model =
        if response.model.is_empty() { scan.progress.model.clone() } else { response.model.to_string() };
    let is_imported = scan.foreign_id.is_some() && !scan.progress.is_own;
    let is_conversation = response.source.is_conversation();
    let key = hash_parts(&[b"pal", response.response.as_str().as_bytes(), &at.milliseconds().to_le_bytes()]);
    let mut row =
        UsageRow { key, at_ms: at.milliseconds(), model: scan.model_index(&model), ..UsageRow::default() };
    row.set_tokens(&response.usage);
    row.flags.set(UsageFlags::OWN, !is_imported);
    row.flags.set(UsageFlags::SUBAGENT, !is_conversation);
    row.flags.set(UsageFlags::SIMULATED, response.usage.basis == UsageBasis::Simulated);
    row.flags.set(UsageFlags::COMPLETE, response.usage.basis != UsageBasis::Estimated);
    if response.usage.basis == UsageBasis::Estimated {
        // The importer replaced a placeholder, which the log no longer has.
        let tokens = std::mem::take(&mut row.output);
        row.add_estimate(f64::from(tokens));
    }
    if is_conversation {
        row.flags.set(UsageFlags::AFTER_CHANGE, std::mem::take(&mut scan.progress.is_changed));
    }
    row.recorded_cost = response.cost.map_or(0, |cost| (cost.max(0.0) * 1e9).round() as u64 + 1);
    if let Some(broken) = &response.cache_break {
        row.cause = cause_index(&broken.cause);
        row.break_tokens = u32::try_from(broken.tokens).unwrap_or(u32::MAX);
    }
    scan.rows.push(row);
    scan.push_extra_passes(&row, &response.usage);
}

fn cause_index(cause: &BreakCause) -> u8 {
    let name = cause.name();
    let last = RECORDED_CAUSES.len() - 1;
    RECORDED_CAUSES.iter().position(|known| *known == name).unwrap_or(last) as u8 + 1
}
