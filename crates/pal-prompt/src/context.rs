//! The user's context: instruction files, the index of memory and the date, as one reminder before the messages.

use pal_model::{Block, Content, SourceNote, defuse, reminder};
use xxhash_rust::xxh3::xxh3_128;

use crate::assemble::{Assembly, MemoryIndex, PartCategory, PartNote};
use crate::sources::{Instruction, InstructionScope, LeftOut};
use crate::words::{attribute, one_line};

/// The context, and an account of it.
pub(crate) struct UserContext {
    pub(crate) content: Content,
    pub(crate) sources: Vec<SourceNote>,
    pub(crate) parts: Vec<PartNote>,
}

/// The fingerprint by which a later change of a file in the context is noticed. White space around the text does not
/// count, because it is not sent.
pub fn source_print(text: &str) -> String {
    format!("{:032x}", xxh3_128(text.trim().as_bytes()))
}

/// Renders the context. It is empty if there is nothing to tell.
pub(crate) fn user_context(assembly: &Assembly<'_>, left_out: &mut Vec<LeftOut>) -> UserContext {
    let mut context = UserContext { content: Content::default(), sources: Vec::new(), parts: Vec::new() };
    let mut pieces = Vec::new();
    for file in &assembly.instructions {
        if file.text.trim().is_empty() {
            left_out.push(LeftOut { what: file.path.clone(), why: String::from("it is empty") });
            continue;
        }
        pieces.push(context.instruction(file));
    }
    for memory in assembly.memory.iter().filter(|memory| !memory.text.trim().is_empty()) {
        if !memory.left_out.is_empty() {
            left_out.push(LeftOut { what: memory.path.clone(), why: memory.left_out.clone() });
        }
        pieces.push(context.memory(memory));
    }
    if let Some(date) = &assembly.date {
        let text = format!("Today's date: {}", one_line(date, 100));
        context.parts.push(PartNote::new(PartCategory::Date, "date", &text, "when the session began"));
        pieces.push(text);
    }
    if !pieces.is_empty() {
        let text = format!("{}\n\n{}", include_str!("texts/user_context.md").trim(), pieces.join("\n\n"));
        context.content = std::iter::once(Block::text(&reminder(&text))).collect();
    }
    context
}

impl UserContext {
    fn instruction(&mut self, file: &Instruction) -> String {
        let included = match &file.included_by {
            Some(path) => format!(" included-by=\"{}\"", attribute(path)),
            None => String::new(),
        };
        let attributes = format!("scope=\"{}\"{included}", scope_words(file.scope));
        self.parts.push(PartNote::new(PartCategory::Instruction, &file.path, &file.text, &file.reason));
        self.sources.push(SourceNote { path: file.path.clone(), print: source_print(&file.text) });
        framed(&file.path, &attributes, &file.text)
    }

    fn memory(&mut self, memory: &MemoryIndex) -> String {
        let reason = "what is remembered of earlier sessions";
        self.parts.push(PartNote::new(PartCategory::Memory, &memory.path, &memory.text, reason));
        framed(&memory.path, "scope=\"memory index\"", &memory.text)
    }
}

/// A memory as it is handed over in the conversation: quoted, whatever it says. `why` says why it is there, `rest` what is
/// missing of it.
pub fn memory_note(path: &str, why: &str, text: &str, rest: &str) -> String {
    let rest = if rest.is_empty() { String::new() } else { format!("\n({rest})") };
    format!(
        "{why}\n<memory-note path=\"{}\">\n{}\n</memory-note>{rest}",
        attribute(path),
        defuse(text.trim())
    )
}

/// A file between tags that only the program writes.
fn framed(path: &str, attributes: &str, text: &str) -> String {
    let path = attribute(path);
    format!("<instruction-file path=\"{path}\" {attributes}>\n{}\n</instruction-file>", defuse(text.trim()))
}

fn scope_words(scope: InstructionScope) -> &'static str {
    match scope {
        InstructionScope::Managed => "policy of this machine's owner",
        InstructionScope::User => "the user, for all projects",
        InstructionScope::Project => "the project, for everybody",
        InstructionScope::Local => "the user, for this project",
        InstructionScope::Added => "a directory added to the session",
    }
}
