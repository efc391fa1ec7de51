//! Human-readable diff of two requests.

use pal_model::{SharedText, member_string, object_fields};
use pal_view::{MEMBERS_OUTSIDE_CACHE_KEY, Request};
use similar::TextDiff;

use crate::cache::request_comparison::SentRequest;

/// Lines around a change.
const CONTEXT: usize = 3;
/// Maximum bytes of a diff.
const BYTES_MAX: usize = 64 << 10;
/// Maximum bytes of a part that is compared line by line.
const PART_BYTES_MAX: usize = 128 << 10;

/// Unified diff of the parts of two requests that differ: headers, members, tools, system blocks, messages.
/// Appended content is left out.
pub fn request_diff(before: &SentRequest, now: &SentRequest) -> String {
    let mut out = String::new();
    let betas = |asked: &SentRequest| asked.betas.join("\n");
    part(&mut out, "headers", &betas(before), &betas(now));
    let (old, new) = (&before.request, &now.request);
    let members = |request: &Request| {
        let told =
            request.members().iter().filter(|(name, _)| !MEMBERS_OUTSIDE_CACHE_KEY.contains(&name.as_str()));
        told.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("\n")
    };
    part(&mut out, "members", &members(old), &members(new));
    list(&mut out, "tools", old.tools(), new.tools());
    list(&mut out, "system", old.system_blocks(), new.system_blocks());
    let first = old.block_fingerprints().zip(new.block_fingerprints()).position(|(one, other)| one != other);
    let from = first.unwrap_or_else(|| old.block_count().min(new.block_count()));
    // Content behind the old request's end was appended.
    let of = |request: &Request, most: usize| -> Vec<String> {
        request.pieces().skip(from).take(most).map(|(_, block, _)| readable(block)).collect()
    };
    let most = old.block_count().saturating_sub(from);
    if most > 0 {
        let name = format!("messages, from block {from} on");
        part(&mut out, &name, &of(old, most).join("\n"), &of(new, most).join("\n"));
    }
    if out.len() > BYTES_MAX {
        out.truncate(out.floor_char_boundary(BYTES_MAX));
        out.push_str("\n… the rest of the diff is left out\n");
    }
    out
}

fn list(out: &mut String, name: &str, old: &[SharedText], new: &[SharedText]) {
    let lines = |items: &[SharedText]| items.iter().map(readable).collect::<Vec<_>>().join("\n");
    part(out, name, &lines(old), &lines(new));
}

fn part(out: &mut String, name: &str, old: &str, new: &str) {
    if old == new || out.len() > BYTES_MAX {
        return;
    }
    let cut = |text: &str| text[..text.floor_char_boundary(PART_BYTES_MAX)].to_owned();
    let (old, new) = (cut(old), cut(new));
    let changes = TextDiff::from_lines(&old, &new);
    let header = (format!("before: {name}"), format!("now: {name}"));
    let mut unified = changes.unified_diff();
    out.push_str(&unified.context_radius(CONTEXT).header(&header.0, &header.1).to_string());
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

/// Text of a text block, else its JSON.
fn readable(block: &SharedText) -> String {
    let text = object_fields(block)
        .ok()
        .and_then(|known| member_string(&known, "text").map(|text| text.into_owned()));
    text.unwrap_or_else(|| block.to_string())
}
