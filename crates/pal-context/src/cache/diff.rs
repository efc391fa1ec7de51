//! What changed between two requests, for people to read.

use pal_model::{Text, fields, member_string};
use pal_view::{OUTSIDE_THE_KEY, Request};
use similar::TextDiff;

use crate::cache::compare::Asked;

/// Lines around a change.
const CONTEXT: usize = 3;
/// Most bytes of a diff.
const BYTES_MOST: usize = 64 << 10;
/// Most bytes of a part that are compared line by line.
const PART_BYTES_MOST: usize = 128 << 10;

/// The parts of two requests that differ, as a unified diff: headers, members, tools, system blocks, messages. What was
/// only appended is left out.
pub fn diff(before: &Asked, now: &Asked) -> String {
    let mut out = String::new();
    let betas = |asked: &Asked| asked.betas.join("\n");
    part(&mut out, "headers", &betas(before), &betas(now));
    let (old, new) = (&before.request, &now.request);
    let members = |request: &Request| {
        let told = request.members().iter().filter(|(name, _)| !OUTSIDE_THE_KEY.contains(&name.as_str()));
        told.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("\n")
    };
    part(&mut out, "members", &members(old), &members(new));
    list(&mut out, "tools", old.tools(), new.tools());
    list(&mut out, "system", old.system(), new.system());
    let first = old.chain().zip(new.chain()).position(|(one, other)| one != other);
    let from = first.unwrap_or_else(|| old.blocks().min(new.blocks()));
    // What follows the old request's end was appended.
    let of = |request: &Request, most: usize| -> Vec<String> {
        request.pieces().skip(from).take(most).map(|(_, block, _)| readable(block)).collect()
    };
    let most = old.blocks().saturating_sub(from);
    if most > 0 {
        let name = format!("messages, from block {from} on");
        part(&mut out, &name, &of(old, most).join("\n"), &of(new, most).join("\n"));
    }
    if out.len() > BYTES_MOST {
        out.truncate(out.floor_char_boundary(BYTES_MOST));
        out.push_str("\n… the rest of the diff is left out\n");
    }
    out
}

fn list(out: &mut String, name: &str, old: &[Text], new: &[Text]) {
    let lines = |items: &[Text]| items.iter().map(readable).collect::<Vec<_>>().join("\n");
    part(out, name, &lines(old), &lines(new));
}

fn part(out: &mut String, name: &str, old: &str, new: &str) {
    if old == new || out.len() > BYTES_MOST {
        return;
    }
    let cut = |text: &str| text[..text.floor_char_boundary(PART_BYTES_MOST)].to_owned();
    let (old, new) = (cut(old), cut(new));
    let changes = TextDiff::from_lines(&old, &new);
    let header = (format!("before: {name}"), format!("now: {name}"));
    let mut unified = changes.unified_diff();
    out.push_str(&unified.context_radius(CONTEXT).header(&header.0, &header.1).to_string());
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

/// A block's text if it is one, else its JSON.
fn readable(block: &Text) -> String {
    let text =
        fields(block).ok().and_then(|known| member_string(&known, "text").map(|text| text.into_owned()));
    text.unwrap_or_else(|| block.to_string())
}
