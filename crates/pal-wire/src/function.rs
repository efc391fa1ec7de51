//! Tools and calls of tools, as OpenAI's dialects want them: functions.

use pal_model::Block;

use crate::Conversation;
use crate::spell::{Commas, Speller};

/// Writes the tools of a conversation as a member `tools`, each by the given function; nothing if there are none.
///
/// A tool without a schema is one that another provider runs or describes; nobody here could call it, so it is left
/// out.
pub(crate) fn tools(
    speller: &mut Speller,
    conversation: &Conversation<'_>,
    write: fn(&mut Speller, &Function<'_>),
) {
    let mut commas = Commas::default();
    for tool in conversation.tools {
        let tool = Block::parse(tool.clone());
        let Some(function) = Function::of(&tool) else { continue };
        if commas.is_first() {
            speller.raw(r#""tools":["#);
        }
        commas.next(speller);
        write(speller, &function);
    }
    if !commas.is_first() {
        speller.raw("],");
    }
}

/// A tool: raw JSON values.
pub(crate) struct Function<'a> {
    tool: &'a Block,
    name: &'a str,
    description: Option<&'a str>,
    schema: &'a str,
}

impl<'a> Function<'a> {
    fn of(tool: &'a Block) -> Option<Function<'a>> {
        let schema = tool.field("input_schema").filter(|schema| schema.starts_with('{'))?;
        let name = tool.field("name").filter(|name| name.starts_with('"'))?;
        let description = tool.field("description").filter(|words| words.starts_with('"'));
        Some(Function { tool, name, description, schema })
    }

    /// Writes name, description and parameters.
    pub(crate) fn write(&self, speller: &mut Speller) {
        let whole = self.tool.raw();
        speller.raw(r#""name":"#);
        speller.shared(whole, self.name);
        if let Some(description) = self.description {
            speller.raw(r#","description":"#);
            speller.shared(whole, description);
        }
        speller.raw(r#","parameters":"#);
        speller.shared(whole, self.schema);
    }
}

/// Writes the name of the called tool and the input as a string, which is what OpenAI's dialects call arguments.
pub(crate) fn write_call(speller: &mut Speller, call: &Block) {
    speller.raw(r#""name":"#);
    write_string(speller, call, "name");
    speller.raw(r#","arguments":"#);
    speller.quoted(call.field("input").unwrap_or("{}"));
}

/// Writes a field that is a string as it stands; an empty string if it is none.
pub(crate) fn write_string(speller: &mut Speller, block: &Block, name: &str) {
    match block.field(name).filter(|raw| raw.starts_with('"')) {
        Some(raw) => speller.shared(block.raw(), raw),
        None => speller.raw(r#""""#),
    }
}
