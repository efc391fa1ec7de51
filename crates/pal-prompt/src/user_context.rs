//! User context: instruction files, the memory index and the date, as one reminder before the messages.

use std::borrow::Cow;

use pal_model::{Content, ContentBlock, SourceNote, escape_tags, wrap_reminder};
use xxhash_rust::xxh3::xxh3_128;

use crate::defused_text::{escape_attribute, one_line};
use crate::prefix_inputs::PrefixInputs;
use crate::prefix_parts::{PrefixOmission, PrefixPart, PrefixPartKind};
use crate::prefix_profile::PrefixProfile;
use crate::prompt_inputs::{InstructionFile, InstructionScope, MemoryIndex};

/// The context, and an account of it.
pub(crate) struct UserContext {
    pub(crate) content: Content,
    pub(crate) sources: Vec<SourceNote>,
    pub(crate) parts: Vec<PrefixPart>,
}

/// The fingerprint by which a later change of a file in the context is noticed. White space around the text does not
/// count, because it is not sent.
pub fn fingerprint_source(text: &str) -> String {
    format!("{:032x}", xxh3_128(text.trim().as_bytes()))
}

/// Renders the context. It is empty if there is nothing to tell.
pub(crate) fn build_user_context(
    assembly: &PrefixInputs<'_>,
    left_out: &mut Vec<PrefixOmission>,
) -> UserContext {
    let mut context = UserContext { content: Content::default(), sources: Vec::new(), parts: Vec::new() };
    let mut pieces = Vec::new();
    let (profile, window) = (assembly.profile(), assembly.window);
    let texts: Vec<&str> = assembly.instructions.iter().map(|file| file.text.trim()).collect();
    let rooms = share_room(&texts, profile.max_instruction_bytes(window));
    for (file, room) in assembly.instructions.iter().zip(rooms) {
        if file.text.trim().is_empty() {
            left_out.push(PrefixOmission { what: file.path.clone(), why: String::from("it is empty") });
            continue;
        }
        let text = cut_to_room(&file.path, &file.text, room, left_out);
        pieces.push(context.instruction(file, &text));
    }
    let memories: Vec<&MemoryIndex> =
        assembly.memory.iter().filter(|memory| !memory.text.trim().is_empty()).collect();
    let texts: Vec<&str> = memories.iter().map(|memory| memory.text.trim()).collect();
    let rooms = share_room(&texts, profile.max_memory_bytes(window));
    for (memory, room) in memories.into_iter().zip(rooms) {
        if !memory.left_out.is_empty() {
            left_out.push(PrefixOmission { what: memory.path.clone(), why: memory.left_out.clone() });
        }
        let text = cut_to_room(&memory.path, &memory.text, room, left_out);
        pieces.push(context.memory(memory, &text));
    }
    if let Some(date) = &assembly.date {
        let text = format!("Today's date: {}", one_line(date, 100));
        context.parts.push(PrefixPart::new(PrefixPartKind::Date, "date", &text, "when the session began"));
        pieces.push(text);
    }
    if !pieces.is_empty() {
        let opening = match profile {
            PrefixProfile::Full => include_str!("texts/user_context.md"),
            PrefixProfile::Lean => include_str!("texts/lean/user_context.md"),
        };
        let text = format!("{}\n\n{}", opening.trim(), pieces.join("\n\n"));
        context.content = std::iter::once(ContentBlock::text(&wrap_reminder(&text))).collect();
    }
    context
}

impl UserContext {
    /// Adds an instruction file, of which `text` is shown.
    fn instruction(&mut self, file: &InstructionFile, text: &str) -> String {
        let included = match &file.included_by {
            Some(path) => format!(" included-by=\"{}\"", escape_attribute(path)),
            None => String::new(),
        };
        let attributes = format!("scope=\"{}\"{included}", describe_scope(file.scope));
        self.parts.push(PrefixPart::new(PrefixPartKind::Instruction, &file.path, text, &file.reason));
        self.sources
            .push(SourceNote { path: file.path.clone(), fingerprint: fingerprint_source(&file.text) });
        frame_file(&file.path, &attributes, text)
    }

    fn memory(&mut self, memory: &MemoryIndex, text: &str) -> String {
        let reason = "what is remembered of earlier sessions";
        self.parts.push(PrefixPart::new(PrefixPartKind::Memory, &memory.path, text, reason));
        frame_file(&memory.path, "scope=\"memory index\"", text)
    }
}

/// Bytes of each text that are shown if all together may take `most`. Later texts are nearer to the work and come first.
fn share_room(texts: &[&str], most: Option<usize>) -> Vec<usize> {
    let mut left = most.unwrap_or(usize::MAX);
    let mut rooms: Vec<usize> = texts
        .iter()
        .rev()
        .map(|text| {
            let room = text.len().min(left);
            left -= room;
            room
        })
        .collect();
    rooms.reverse();
    rooms
}

/// The text, cut at a line end if it is longer than `room` bytes; the cut is reported to the model and to the user.
fn cut_to_room<'t>(
    path: &str,
    text: &'t str,
    room: usize,
    left_out: &mut Vec<PrefixOmission>,
) -> Cow<'t, str> {
    let text = text.trim();
    if text.len() <= room {
        return Cow::Borrowed(text);
    }
    left_out.push(PrefixOmission::end_of_file(path, room, text.len()));
    let start = &text[..text.floor_char_boundary(room)];
    let start = start.rfind('\n').map_or(start, |end| &start[..end]);
    Cow::Owned(format!("{}\n[Cut: the window is small. Read {path} for the rest.]", start.trim_end()))
}

/// A memory as it is handed over in the conversation: quoted, whatever it says. `why` says why it is there, `rest` what is
/// missing of it.
pub fn render_memory_note(path: &str, why: &str, text: &str, rest: &str) -> String {
    let rest = if rest.is_empty() { String::new() } else { format!("\n({rest})") };
    format!(
        "{why}\n<memory-note path=\"{}\">\n{}\n</memory-note>{rest}",
        escape_attribute(path),
        escape_tags(text.trim())
    )
}

/// A file between tags that only the program writes.
fn frame_file(path: &str, attributes: &str, text: &str) -> String {
    let path = escape_attribute(path);
    format!(
        "<instruction-file path=\"{path}\" {attributes}>\n{}\n</instruction-file>",
        escape_tags(text.trim())
    )
}

fn describe_scope(scope: InstructionScope) -> &'static str {
    match scope {
        InstructionScope::Managed => "policy of this machine's owner",
        InstructionScope::User => "the user, for all projects",
        InstructionScope::Project => "the project, for everybody",
        InstructionScope::Local => "the user, for this project",
        InstructionScope::Added => "a directory added to the session",
    }
}
