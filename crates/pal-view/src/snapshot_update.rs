//! Session state besides messages: title, model, pins, latches, totals. It is folded from the entries, and a
//! boundary carries it, so that nothing before the boundary has to be read for it.

use pal_model::{
    Attachment, ContentBlock, Decision, DecisionKind, EntryBody, EntryId, EntryRef, FileReadStats, LogEntry,
    MessageOrigin, RequestSource, SessionSnapshot, SessionStart, ToolEffects, ToolKind, object_fields,
    unescape,
};
use smol_str::SmolStr;

/// Kind of the attachments that deliver a memory.
const MEMORY: &str = "memory";

/// Folds one entry into the state.
pub(crate) fn fold_into(state: &mut SessionSnapshot, entry: &LogEntry) {
    match &entry.body {
        EntryBody::Session(session) => start(state, session),
        EntryBody::Prefix(_) => state.prefix = Some(EntryRef { id: entry.id, offset: None }),
        EntryBody::Request(request) if request.source.is_conversation() => {
            if !request.model.is_empty() {
                state.model = Some(request.model.clone());
            }
            state.activity.record_request(entry.at);
            state.keepalive.end_pause();
        }
        EntryBody::Request(request) if request.source == RequestSource::keepalive() => {
            state.keepalive.record_request(entry.at, state.activity.last_request);
        }
        EntryBody::Response(response) => {
            state.totals.add(&response.usage, response.cost);
            if response.source.is_conversation() {
                state.activity.record_response(&response.usage);
            } else if response.source == RequestSource::keepalive() {
                state.keepalive.add_cost(response.cost);
            }
        }
        EntryBody::Decision(decision) => decide(state, entry.id, decision),
        EntryBody::Boundary(boundary) => {
            *state = boundary.snapshot.clone();
            state.activity.reset_context();
        }
        EntryBody::User(user) => {
            if user.origin == MessageOrigin::Person {
                state.activity.record_user_message();
            }
            remember(state, &user.tool_effects);
        }
        EntryBody::Attachment(Attachment { what, content, file: Some(file) }) if what == MEMORY => {
            let bytes = content.blocks().iter().map(|block| block.raw().len() as u64).sum();
            state.prefetched.insert(file.clone(), bytes);
        }
        EntryBody::Assistant(assistant) => {
            for block in assistant.content.blocks() {
                if let Some((path, call)) = file_read(block) {
                    let file: &mut FileReadStats = state.read_files.entry(path).or_default();
                    file.reads += 1;
                    file.tool_use_id = Some(call);
                }
            }
        }
        _ => {}
    }
}

/// Records the start of a session, or of a fork that continues it in another directory.
fn start(state: &mut SessionSnapshot, session: &SessionStart) {
    if session.title.is_some() {
        state.title.clone_from(&session.title);
    }
    if session.cwd.is_some() {
        state.start_directory.clone_from(&session.cwd);
        state.directory = None;
    }
}

/// Records the effects of tools.
fn remember(state: &mut SessionSnapshot, aftermath: &ToolEffects) {
    let ToolEffects { files, directory, mode, skill } = aftermath;
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

fn decide(state: &mut SessionSnapshot, id: EntryId, decision: &Decision) {
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
        // The carrying cost so far is sunk, as after a compaction.
        DecisionKind::Clear { .. } | DecisionKind::Snip { .. } | DecisionKind::Fold { .. } => {
            state.activity.reset_context();
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
pub(crate) fn file_read(block: &ContentBlock) -> Option<(String, SmolStr)> {
    if block.kind() != pal_model::BlockType::ToolUse {
        return None;
    }
    let known = block.fields()?;
    let find = |name: &str| known.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
    let name = unescape(find("name")?)?;
    if ToolKind::from_name(&name) != Some(ToolKind::Read) {
        return None;
    }
    let input = object_fields(find("input")?).ok()?;
    let path =
        input.iter().find(|(key, _)| matches!(key.as_ref(), "file_path" | "path" | "absolute_path"))?;
    Some((unescape(path.1)?.into_owned(), SmolStr::new(block.tool_use_id()?.as_str())))
}
