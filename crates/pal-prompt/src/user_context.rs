//! User context: instruction files, the memory index and the date, as one reminder before the messages.

use pal_model::{Content, ContentBlock, SourceNote, escape_tags, wrap_reminder};
use xxhash_rust::xxh3::xxh3_128;

use crate::defused_text::{escape_attribute, one_line};
use crate::prefix_inputs::PrefixInputs;
use crate::prefix_parts::{PrefixOmission, PrefixPart, PrefixPartKind};
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
    for file in &assembly.instructions {
        if file.text.trim().is_empty() {
            left_out.push(PrefixOmission { what: file.path.clone(), why: String::from("it is empty") });
            continue;
        }
        pieces.push(context.instruction(file));
    }
    for memory in assembly.memory.iter().filter(|memory| !memory.text.trim().is_empty()) {
        if !memory.left_out.is_empty() {
            left_out.push(PrefixOmission { what: memory.path.clone(), why: memory.left_out.clone() });
        }
        pieces.push(context.memory(memory));
    }
    if let Some(date) = &assembly.date {
        let text = format!("Today's date: {}", one_line(date, 100));
        context.parts.push(PrefixPart::new(PrefixPartKind::Date, "date", &text, "when the session began"));
        pieces.push(text);
    }
    if !pieces.is_empty() {
        let text = format!("{}\n\n{}", include_str!("texts/user_context.md").trim(), pieces.join("\n\n"));
        context.content = std::iter::once(ContentBlock::text(&wrap_reminder(&text))).collect();
    }
    context
}

impl UserContext {
    fn instruction(&mut self, file: &InstructionFile) -> String {
        let included = match &file.included_by {
            Some(path) => format!(" included-by=\"{}\"", escape_attribute(path)),
            None => String::new(),
        };
        let attributes = format!("scope=\"{}\"{included}", describe_scope(file.scope));
        self.parts.push(PrefixPart::new(PrefixPartKind::Instruction, &file.path, &file.text, &file.reason));
        self.sources
            .push(SourceNote { path: file.path.clone(), fingerprint: fingerprint_source(&file.text) });
        frame_file(&file.path, &attributes, &file.text)
    }

    fn memory(&mut self, memory: &MemoryIndex) -> String {
        let reason = "what is remembered of earlier sessions";
        self.parts.push(PrefixPart::new(PrefixPartKind::Memory, &memory.path, &memory.text, reason));
        frame_file(&memory.path, "scope=\"memory index\"", &memory.text)
    }
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
