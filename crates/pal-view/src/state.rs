//! State of a session that is no message: title, model, pins, latches, totals. It is folded from the entries,
//! and a boundary carries it, so that nothing before the boundary need be read for it.

use pal_model::{
    Aftermath, Attachment, Block, Body, Decision, DecisionKind, Entry, EntryId, ReadFile, Reference,
    Snapshot, Source, ToolKind, fields, unescape,
};
use smol_str::SmolStr;

/// What attachments are called that hand over a memory.
const MEMORY: &str = "memory";

/// Takes one entry into the state.
pub(crate) fn fold_into(state: &mut Snapshot, entry: &Entry) {
    match &entry.body {
        Body::Session(session) if session.title.is_some() => state.title.clone_from(&session.title),
        Body::Prefix(_) => state.prefix = Some(Reference { id: entry.id, offset: None }),
        Body::Request(request) if request.source.is_conversation() => {
            if !request.model.is_empty() {
                state.model = Some(request.model.clone());
            }
            state.rhythm.requested(entry.at);
            state.pings.pause_ended();
        }
        Body::Request(request) if request.source == Source::ping() => {
            state.pings.sent(entry.at, state.rhythm.last_request);
        }
        Body::Response(response) => {
            state.totals.add(&response.usage, response.cost);
            if response.source.is_conversation() {
                state.rhythm.answered(&response.usage);
            } else if response.source == Source::ping() {
                state.pings.answered(response.cost);
            }
        }
        Body::Decision(decision) => decide(state, entry.id, decision),
        Body::Boundary(boundary) => {
            *state = boundary.snapshot.clone();
            state.rhythm.begin_anew();
        }
        Body::User(user) => remember(state, &user.aftermath),
        Body::Attachment(Attachment { what, content, file: Some(file) }) if what == MEMORY => {
            let bytes = content.blocks().iter().map(|block| block.raw().len() as u64).sum();
            state.prefetched.insert(file.clone(), bytes);
        }
        Body::Assistant(assistant) => {
            for block in assistant.content.blocks() {
                if let Some((path, call)) = file_read(block) {
                    let file: &mut ReadFile = state.read_files.entry(path).or_default();
                    file.reads += 1;
                    file.tool_use_id = Some(call);
                }
            }
        }
        _ => {}
    }
}

/// Takes in what tools did.
fn remember(state: &mut Snapshot, aftermath: &Aftermath) {
    let Aftermath { files, directory, mode, skill } = aftermath;
    state.seen_files.extend(files.iter().map(|(path, seen)| (path.clone(), seen.clone())));
    if directory.is_some() {
        state.directory.clone_from(directory);
    }
    if mode.is_some() {
        state.mode.clone_from(mode);
    }
    if let Some(skill) = skill {
        state.skills.retain(|known| known != skill);
        state.skills.push(skill.clone());
    }
}

fn decide(state: &mut Snapshot, id: EntryId, decision: &Decision) {
    match &decision.kind {
        DecisionKind::Pin { text } => {
            state.pins.insert(id, text.clone());
        }
        DecisionKind::Latch { name, value } => {
            state.latches.insert(name.clone(), value.clone());
        }
        DecisionKind::Announce { what, names, gone } => {
            let announced = state.announced.entry(what.clone()).or_default();
            announced.retain(|name| !gone.contains(name));
            announced.extend(names.iter().cloned());
        }
        DecisionKind::Model { model } => state.model = Some(model.clone()),
        DecisionKind::Title { title } => state.title = Some(title.clone()),
        DecisionKind::Factors { factors } => {
            state.factors.extend(factors.iter().map(|(name, factor)| (name.clone(), *factor)));
        }
        // What was carried until then is paid and gone, as after a compaction.
        DecisionKind::Clear { .. } | DecisionKind::Snip { .. } | DecisionKind::Fold { .. } => {
            state.rhythm.begin_anew();
        }
        DecisionKind::Failure { what, .. } if what == "compaction" => state.summary_failures += 1,
        // A pin from before the boundary is known only by the boundary's snapshot.
        DecisionKind::Undo { target } => {
            state.pins.remove(target);
        }
        _ => {}
    }
}

/// The path and call of a block that reads a file.
pub(crate) fn file_read(block: &Block) -> Option<(String, SmolStr)> {
    if block.kind() != pal_model::BlockType::ToolUse {
        return None;
    }
    let known = block.fields()?;
    let find = |name: &str| known.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
    let name = unescape(find("name")?)?;
    if ToolKind::named(&name) != Some(ToolKind::Read) {
        return None;
    }
    let input = fields(find("input")?).ok()?;
    let path =
        input.iter().find(|(key, _)| matches!(key.as_ref(), "file_path" | "path" | "absolute_path"))?;
    Some((unescape(path.1)?.into_owned(), SmolStr::new(block.tool_use_id()?.as_str())))
}
