//! Comparison of two requests, in the order in which the provider's cache reads them.

use pal_model::{
    BreakCause, RequestChange, Role, SharedText, SystemBlockNote, member_string, object_fields, unescape,
};
use pal_view::{MEMBERS_OUTSIDE_CACHE_KEY, Request, is_deferred};
use smol_str::SmolStr;

/// A request as sent: body and beta headers.
#[derive(Clone, Debug)]
pub struct SentRequest {
    /// The body.
    pub request: Request,
    /// The beta headers.
    pub betas: Vec<SmolStr>,
}

/// Finds the differences of a request from the previous one, as causes of a cache break, in the order in which the
/// provider's cache reads them; empty if it begins with all of it. Appending is no difference. Of the messages, only
/// the first that differs counts: the others may follow from it.
pub fn find_differences(before: &SentRequest, now: &SentRequest) -> Vec<BreakCause> {
    let (old, new) = (&before.request, &now.request);
    let mut found: Vec<BreakCause> = model(old, new).into_iter().collect();
    found.extend(tools(old, new));
    found.extend(changed_member(old, new, "speed").map(|()| BreakCause::Speed));
    found.extend(sections(old, new));
    found.extend(betas(&before.betas, &now.betas));
    found.extend(parameters(old, new));
    found.extend(messages(old, new));
    found.extend(compare_breakpoints(old, new));
    found
}

fn value<'a>(request: &'a Request, name: &str) -> Option<&'a SharedText> {
    request.members().iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
}

fn changed_member(old: &Request, new: &Request, name: &str) -> Option<()> {
    (value(old, name) != value(new, name)).then_some(())
}

fn model(old: &Request, new: &Request) -> Option<BreakCause> {
    changed_member(old, new, "model")?;
    let name =
        |request| value(request, "model").and_then(|raw| unescape(raw)).map(SmolStr::new).unwrap_or_default();
    Some(BreakCause::Model { from: name(old), to: name(new) })
}

/// A part of a request that has a name: its change, the change of its length, and its position.
struct PartChange<'a> {
    name: &'a SmolStr,
    change: RequestChange,
    characters: i64,
    position: usize,
}

/// Compares named parts, in the order of their positions. Parts that only make room for others did not move.
fn compare_parts<'a, T: AsRef<str> + PartialEq>(
    old: &'a [(SmolStr, T)],
    new: &'a [(SmolStr, T)],
) -> Vec<PartChange<'a>> {
    let length = |text: &T| text.as_ref().chars().count() as i64;
    let (old_keys, new_keys) = (part_keys(old), part_keys(new));
    let mut changes = Vec::new();
    let mut change = |name, change, characters, position| {
        changes.push(PartChange { name, change, characters, position });
    };
    for (position, ((name, one), key)) in old.iter().zip(&old_keys).enumerate() {
        match new_keys.iter().position(|other| other == key).map(|at| &new[at].1) {
            None => change(name, RequestChange::Removed, -length(one), position),
            Some(other) if other != one => {
                change(name, RequestChange::Changed, length(other) - length(one), position);
            }
            Some(_) => {}
        }
    }
    for (position, ((name, other), key)) in new.iter().zip(&new_keys).enumerate() {
        if !old_keys.contains(key) {
            change(name, RequestChange::Added, length(other), position);
        }
    }
    let kept = old_keys.iter().enumerate().filter(|(_, key)| new_keys.contains(key));
    let kept_now = new_keys.iter().filter(|key| old_keys.contains(key));
    let moved = kept.zip(kept_now).find(|((_, one), other)| one != other);
    if let Some(((position, _), _)) = moved {
        change(&old[position].0, RequestChange::Moved, 0, position);
    }
    changes.sort_by_key(|change| change.position);
    changes
}

/// Names of parts, each with the number of earlier parts of that name.
fn part_keys<T>(parts: &[(SmolStr, T)]) -> Vec<(&SmolStr, usize)> {
    let earlier = |at: usize, name| parts[..at].iter().filter(|(known, _)| known == name).count();
    parts.iter().enumerate().map(|(at, (name, _))| (name, earlier(at, name))).collect()
}

/// Tools that differ; deferred ones are no part of the prefix.
fn tools(old: &Request, new: &Request) -> Vec<BreakCause> {
    if old.prefix_fingerprint() == new.prefix_fingerprint() {
        return Vec::new();
    }
    let named = |request: &Request| -> Vec<(SmolStr, SharedText)> {
        let tools = request.tools().iter().filter_map(|tool| {
            let known = object_fields(tool).ok()?;
            let name = SmolStr::new(member_string(&known, "name")?);
            (!is_deferred(tool)).then(|| (name, tool.clone()))
        });
        tools.collect()
    };
    let (old, new) = (named(old), named(new));
    let changes = compare_parts(&old, &new).into_iter();
    changes.map(|part| BreakCause::Tool { name: part.name.clone(), change: part.change }).collect()
}

/// Sections of the system blocks: name and text. A block without notes is one section.
fn section_texts(request: &Request) -> Vec<(SmolStr, String)> {
    let mut sections = Vec::new();
    for (at, block) in request.system_blocks().iter().enumerate() {
        let text = object_fields(block)
            .ok()
            .and_then(|known| member_string(&known, "text").map(|text| text.into_owned()));
        let text = text.unwrap_or_else(|| block.to_string());
        match request.system_notes().get(at) {
            Some(SystemBlockNote { sections: noted, .. }) if !noted.is_empty() => {
                let mut from = 0;
                for (index, note) in noted.iter().enumerate() {
                    let end = from + note.bytes as usize;
                    let is_last = index + 1 == noted.len();
                    let part = if is_last { text.get(from..) } else { text.get(from..end) };
                    sections.push((note.name.clone(), part.unwrap_or_default().to_owned()));
                    // Sections are separated by two line ends.
                    from = end + 2;
                }
            }
            _ => sections.push((SmolStr::from(format!("block {at}")), text)),
        }
    }
    sections
}

fn sections(old: &Request, new: &Request) -> Vec<BreakCause> {
    if old.prefix_fingerprint() == new.prefix_fingerprint() {
        return Vec::new();
    }
    let (old, new) = (section_texts(old), section_texts(new));
    let cause = |part: PartChange<'_>| {
        let PartChange { name, change, characters, .. } = part;
        BreakCause::Section { name: name.clone(), change, characters }
    };
    compare_parts(&old, &new).into_iter().map(cause).collect()
}

fn betas(old: &[SmolStr], new: &[SmolStr]) -> Option<BreakCause> {
    let missing = |of: &[SmolStr], other: &[SmolStr]| -> Vec<SmolStr> {
        of.iter().filter(|beta| !other.contains(beta)).cloned().collect()
    };
    let (added, removed) = (missing(new, old), missing(old, new));
    (!added.is_empty() || !removed.is_empty()).then_some(BreakCause::Betas { added, removed })
}

/// Compares the request parameters that are part of the cache key.
fn parameters(old: &Request, new: &Request) -> Vec<BreakCause> {
    let named = [
        ("thinking", BreakCause::Thinking),
        ("output_config", BreakCause::Effort),
        ("tool_choice", BreakCause::ToolChoice),
        ("context_management", BreakCause::Edits),
    ];
    let is_compared_before =
        |name: &str| ["model", "speed"].contains(&name) || named.iter().any(|(known, _)| *known == name);
    let mut others: Vec<&SmolStr> = Vec::new();
    for (name, _) in old.members().iter().chain(new.members()) {
        let is_other = !is_compared_before(name) && !MEMBERS_OUTSIDE_CACHE_KEY.contains(&name.as_str());
        if is_other && changed_member(old, new, name).is_some() && !others.contains(&name) {
            others.push(name);
        }
    }
    let others = others.into_iter().map(|name| BreakCause::Member { name: name.clone() });
    let named = named.iter().filter(|(name, _)| changed_member(old, new, name).is_some());
    named.map(|(_, cause)| cause.clone()).chain(others).collect()
}

/// Finds the first message block that differs. Costs nothing if the older request is a prefix of the newer.
fn messages(old: &Request, new: &Request) -> Option<BreakCause> {
    let blocks = old.block_count();
    let same = blocks == 0
        || (new.block_count() >= blocks
            && old.fingerprint_up_to(blocks - 1) == new.fingerprint_up_to(blocks - 1));
    if same {
        return None;
    }
    let first = old.block_fingerprints().zip(new.block_fingerprints()).position(|(one, other)| one != other);
    let at = first.unwrap_or_else(|| blocks.min(new.block_count()));
    let (mut message, mut block) = (0, 0);
    let (mut one, mut other) = (old.pieces(), new.pieces());
    for index in 0..=at {
        let opens = match (one.next(), other.next()) {
            (Some(found), Some(_)) if index < at => found.0,
            (found, meant) => {
                let (was, is) = (found.map(|found| found.1), meant.map(|meant| meant.1));
                let opens: Option<Role> = found.or(meant).and_then(|piece| piece.0);
                let (message, block) = place(message, block, index, opens);
                let length = |text: Option<&SharedText>| text.map_or(0, |text| text.chars().count() as i64);
                let change = match (was, is) {
                    (Some(_), None) => RequestChange::Removed,
                    (None, Some(_)) => RequestChange::Added,
                    // The same block that opens another message.
                    _ if was == is => RequestChange::Moved,
                    _ => RequestChange::Changed,
                };
                return Some(BreakCause::Message {
                    message,
                    block,
                    change,
                    characters: length(is) - length(was),
                });
            }
        };
        (message, block) = place(message, block, index, opens);
    }
    None
}

/// Message and block number of a block, given those of the previous block.
fn place(message: u64, block: u64, index: usize, opens: Option<Role>) -> (u64, u64) {
    match (index, opens) {
        (0, _) => (0, 0),
        (_, Some(_)) => (message + 1, 0),
        (_, None) => (message, block + 1),
    }
}

/// Compares scopes and TTLs of the breakpoints.
fn compare_breakpoints(old: &Request, new: &Request) -> Option<BreakCause> {
    let scopes = |request: &Request| -> Vec<_> {
        request.breakpoints().iter().filter_map(|mark| mark.scope).collect()
    };
    if scopes(old) != scopes(new) {
        return Some(BreakCause::Scopes);
    }
    let lifetimes = |request: &Request| -> Vec<_> {
        let mut lifetimes: Vec<_> = request.breakpoints().iter().map(|mark| mark.ttl).collect();
        lifetimes.dedup();
        lifetimes
    };
    let (old, new) = (lifetimes(old), lifetimes(new));
    (!old.is_empty() && !new.is_empty() && old != new).then_some(BreakCause::CacheTtl)
}
