//! Where two requests differ, in the order in which the provider's cache looks at them.

use pal_model::{BreakCause, Change, Role, SystemNote, Text, fields, member_string, unescape};
use pal_view::{OUTSIDE_THE_KEY, Request, is_deferred};
use smol_str::SmolStr;

/// A request as it was sent: the body and what stands in headers.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The body.
    pub request: Request,
    /// The beta headers.
    pub betas: Vec<SmolStr>,
}

/// The first thing in which a request differs from the one before it, by what it changes; none if it begins with all of
/// it. Appending is no difference.
pub fn difference(before: &Asked, now: &Asked) -> Option<BreakCause> {
    let (old, new) = (&before.request, &now.request);
    model(old, new)
        .or_else(|| tools(old, new))
        .or_else(|| changed_member(old, new, "speed").map(|()| BreakCause::Speed))
        .or_else(|| sections(old, new))
        .or_else(|| betas(&before.betas, &now.betas))
        .or_else(|| parameters(old, new))
        .or_else(|| messages(old, new))
        .or_else(|| marks(old, new))
}

fn value<'a>(request: &'a Request, name: &str) -> Option<&'a Text> {
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
    if old.prefix_print() == new.prefix_print() {
        return None;
    }
    let named = |request: &Request| -> Vec<(SmolStr, Text)> {
        let tools = request.tools().iter().filter_map(|tool| {
            let known = fields(tool).ok()?;
            let name = SmolStr::new(member_string(&known, "name")?);
            (!is_deferred(tool)).then(|| (name, tool.clone()))
        });
        tools.collect()
    };
    let (old, new) = (named(old), named(new));
    let has = |tools: &[(SmolStr, Text)], name: &SmolStr| tools.iter().any(|(known, _)| known == name);
    for at in 0..old.len().max(new.len()) {
        let (name, change) = match (old.get(at), new.get(at)) {
            (Some(one), Some(other)) if one == other => continue,
            (Some((name, _)), Some((same, _))) if name == same => (name, Change::Changed),
            (Some((name, _)), _) if !has(&new, name) => (name, Change::Removed),
            (_, Some((name, _))) if !has(&old, name) => (name, Change::Added),
            (Some((name, _)), _) | (None, Some((name, _))) => (name, Change::Moved),
            (None, None) => continue,
        };
        return Some(BreakCause::Tool { name: name.clone(), change });
    }
    None
}

/// The sections of the system blocks: name and text. A block that nothing is known of is one section.
fn section_texts(request: &Request) -> Vec<(SmolStr, String)> {
    let mut sections = Vec::new();
    for (at, block) in request.system().iter().enumerate() {
        let text =
            fields(block).ok().and_then(|known| member_string(&known, "text").map(|text| text.into_owned()));
        let text = text.unwrap_or_else(|| block.to_string());
        match request.system_notes().get(at) {
            Some(SystemNote { sections: noted, .. }) if !noted.is_empty() => {
                let mut from = 0;
                for (index, note) in noted.iter().enumerate() {
                    let end = from + note.bytes as usize;
                    let is_last = index + 1 == noted.len();
                    let part = if is_last { text.get(from..) } else { text.get(from..end) };
                    sections.push((note.name.clone(), part.unwrap_or_default().to_owned()));
                    // Two line ends stand between sections.
                    from = end + 2;
                }
            }
            _ => sections.push((SmolStr::from(format!("block {at}")), text)),
        }
    }
    sections
}

fn sections(old: &Request, new: &Request) -> Option<BreakCause> {
    if old.prefix_print() == new.prefix_print() {
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
                (name, Change::Changed, length(other) - length(one))
            }
            (Some((name, one)), _) if find(&new, name).is_none() => (name, Change::Removed, -length(one)),
            (_, Some((name, other))) if find(&old, name).is_none() => (name, Change::Added, length(other)),
            (Some((name, _)), _) | (None, Some((name, _))) => (name, Change::Moved, 0),
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

/// What is asked of the answer, as far as the cache depends on it.
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
    let other = names
        .into_iter()
        .find(|name| !OUTSIDE_THE_KEY.contains(&name.as_str()) && changed_member(old, new, name).is_some());
    other.map(|name| BreakCause::Member { name: name.clone() })
}

/// The first block of the messages that differs. Costs nothing where the older request is the beginning of the newer.
fn messages(old: &Request, new: &Request) -> Option<BreakCause> {
    let blocks = old.blocks();
    let same =
        blocks == 0 || (new.blocks() >= blocks && old.chain_at(blocks - 1) == new.chain_at(blocks - 1));
    if same {
        return None;
    }
    let first = old.chain().zip(new.chain()).position(|(one, other)| one != other);
    let at = first.unwrap_or_else(|| blocks.min(new.blocks()));
    let (mut message, mut block) = (0, 0);
    let (mut one, mut other) = (old.pieces(), new.pieces());
    for index in 0..=at {
        let opens = match (one.next(), other.next()) {
            (Some(found), Some(_)) if index < at => found.0,
            (found, meant) => {
                let (was, is) = (found.map(|found| found.1), meant.map(|meant| meant.1));
                let opens: Option<Role> = found.or(meant).and_then(|piece| piece.0);
                let (message, block) = place(message, block, index, opens);
                let length = |text: Option<&Text>| text.map_or(0, |text| text.chars().count() as i64);
                let change = match (was, is) {
                    (Some(_), None) => Change::Removed,
                    (None, Some(_)) => Change::Added,
                    // The same block that opens another message.
                    _ if was == is => Change::Moved,
                    _ => Change::Changed,
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

/// Where a block stands: the message and the place in it, from where the one before it stands.
fn place(message: u64, block: u64, index: usize, opens: Option<Role>) -> (u64, u64) {
    match (index, opens) {
        (0, _) => (0, 0),
        (_, Some(_)) => (message + 1, 0),
        (_, None) => (message, block + 1),
    }
}

/// For whom and for how long what is marked is kept.
fn marks(old: &Request, new: &Request) -> Option<BreakCause> {
    let scopes =
        |request: &Request| -> Vec<_> { request.marks().iter().filter_map(|mark| mark.scope).collect() };
    if scopes(old) != scopes(new) {
        return Some(BreakCause::Scopes);
    }
    let lifetimes = |request: &Request| -> Vec<_> {
        let mut lifetimes: Vec<_> = request.marks().iter().map(|mark| mark.lifetime).collect();
        lifetimes.dedup();
        lifetimes
    };
    let (old, new) = (lifetimes(old), lifetimes(new));
    (!old.is_empty() && !new.is_empty() && old != new).then_some(BreakCause::Lifetimes)
}
