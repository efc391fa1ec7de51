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

/// Finds the first difference of a request from the previous one, as a cause of a cache break; `None` if it
/// begins with all of it. Appending is no difference.
pub fn find_difference(before: &SentRequest, now: &SentRequest) -> Option<BreakCause> {
    let (old, new) = (&before.request, &now.request);
    model(old, new)
        .or_else(|| tools(old, new))
        .or_else(|| changed_member(old, new, "speed").map(|()| BreakCause::Speed))
        .or_else(|| sections(old, new))
        .or_else(|| betas(&before.betas, &now.betas))
        .or_else(|| parameters(old, new))
        .or_else(|| messages(old, new))
        .or_else(|| compare_breakpoints(old, new))
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

/// The first tool that differs; deferred ones are no part of the prefix.
fn tools(old: &Request, new: &Request) -> Option<BreakCause> {
    if old.prefix_fingerprint() == new.prefix_fingerprint() {
        return None;
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
    let has = |tools: &[(SmolStr, SharedText)], name: &SmolStr| tools.iter().any(|(known, _)| known == name);
    for at in 0..old.len().max(new.len()) {
        let (name, change) = match (old.get(at), new.get(at)) {
            (Some(one), Some(other)) if one == other => continue,
            (Some((name, _)), Some((same, _))) if name == same => (name, RequestChange::Changed),
            (Some((name, _)), _) if !has(&new, name) => (name, RequestChange::Removed),
            (_, Some((name, _))) if !has(&old, name) => (name, RequestChange::Added),
            (Some((name, _)), _) | (None, Some((name, _))) => (name, RequestChange::Moved),
            (None, None) => continue,
        };
        return Some(BreakCause::Tool { name: name.clone(), change });
    }
    None
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

fn sections(old: &Request, new: &Request) -> Option<BreakCause> {
    if old.prefix_fingerprint() == new.prefix_fingerprint() {
        return None;
    }
    let (old, new) = (section_texts(old), section_texts(new));
    let find = |sections: &[(SmolStr, String)], name: &SmolStr| {
        sections.iter().find(|(known, _)| known == name).map(|(_, text)| text.chars().count() as i64)
    };
    let length = |text: &str| text.chars().count() as i64;
    for at in 0..old.len().max(new.len()) {
        let (name, change, characters) = match (old.get(at), new.get(at)) {
            (Some(one), Some(other)) if one == other => continue,
            (Some((name, one)), Some((same, other))) if name == same => {
                (name, RequestChange::Changed, length(other) - length(one))
            }
            (Some((name, one)), _) if find(&new, name).is_none() => {
                (name, RequestChange::Removed, -length(one))
            }
            (_, Some((name, other))) if find(&old, name).is_none() => {
                (name, RequestChange::Added, length(other))
            }
            (Some((name, _)), _) | (None, Some((name, _))) => (name, RequestChange::Moved, 0),
            (None, None) => continue,
        };
        return Some(BreakCause::Section { name: name.clone(), change, characters });
    }
    None
}

fn betas(old: &[SmolStr], new: &[SmolStr]) -> Option<BreakCause> {
    let missing = |of: &[SmolStr], other: &[SmolStr]| -> Vec<SmolStr> {
        of.iter().filter(|beta| !other.contains(beta)).cloned().collect()
    };
    let (added, removed) = (missing(new, old), missing(old, new));
    (!added.is_empty() || !removed.is_empty()).then_some(BreakCause::Betas { added, removed })
}

/// Compares the request parameters that are part of the cache key.
fn parameters(old: &Request, new: &Request) -> Option<BreakCause> {
    let named = [
        ("thinking", BreakCause::Thinking),
        ("output_config", BreakCause::Effort),
        ("tool_choice", BreakCause::ToolChoice),
        ("context_management", BreakCause::Edits),
    ];
    for (name, cause) in named {
        if changed_member(old, new, name).is_some() {
            return Some(cause);
        }
    }
    let names = old.members().iter().chain(new.members()).map(|(name, _)| name);
    let other = names.into_iter().find(|name| {
        !MEMBERS_OUTSIDE_CACHE_KEY.contains(&name.as_str()) && changed_member(old, new, name).is_some()
    });
    other.map(|name| BreakCause::Member { name: name.clone() })
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
