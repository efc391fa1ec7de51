//! Spells messages of the log as input items.

use pal_model::{Block, BlockType, Role};

use crate::Conversation;
use crate::function::{tools, write_call, write_string};
use crate::message::{BREAKPOINT, Message};
use crate::portion::{Medium, Portion, portions, result_portions, system_portions, told, write_joined};
use crate::spell::{Commas, Speller};

/// Writes what stands before the items.
pub(crate) fn head(speller: &mut Speller, conversation: &Conversation<'_>) {
    let instructions = system_portions(conversation.system);
    if !instructions.is_empty() {
        speller.raw(r#""instructions":"#);
        write_joined(speller, &instructions, r"\n\n");
        speller.raw(",");
    }
    tools(speller, conversation, |speller, function| {
        speller.raw(r#"{"type":"function","#);
        function.write(speller);
        // The schemas are not ours to change, and strict ones have rules of their own.
        speller.raw(r#","strict":false}"#);
    });
    speller.raw(r#""input":["#);
}

/// Writes what stands behind the items.
pub(crate) fn closing(speller: &mut Speller, conversation: &Conversation<'_>, is_marked: bool) {
    speller.raw(r#""max_output_tokens":"#);
    speller.raw(&conversation.max_tokens.to_string());
    speller.raw(r#","store":false,"include":["reasoning.encrypted_content"]"#);
    if let Some(effort) = conversation.effort {
        speller.raw(r#","reasoning":{"effort":"#);
        speller.quoted(effort);
        speller.raw("}");
    }
    if let Some(key) = conversation.cache_key {
        speller.raw(r#","prompt_cache_key":"#);
        speller.quoted(key);
    }
    if is_marked {
        speller.raw(r#","prompt_cache_options":{"mode":"explicit"}"#);
    }
    speller.raw(if conversation.stream { r#","stream":true}"# } else { "}" });
}

/// Writes a message as items; nothing if all of it is left out.
pub(crate) fn message(speller: &mut Speller, message: &Message<'_>) {
    let mut items = Items { speller, commas: Commas::default(), open: None, message };
    for (at, piece) in message.pieces.iter().enumerate() {
        let block = Block::parse(piece.block.clone());
        if message.role == Role::Assistant {
            items.model_block(&block);
        } else {
            items.user_block(&block, message.is_marked(at));
        }
    }
    items.close();
}

/// Items under construction.
struct Items<'a> {
    speller: &'a mut Speller,
    commas: Commas,
    /// The content of a `message` item that is still open.
    open: Option<Commas>,
    message: &'a Message<'a>,
}

impl Items<'_> {
    fn user_block(&mut self, block: &Block, is_marked: bool) {
        if block.kind() == BlockType::ToolResult {
            return self.result(block, is_marked);
        }
        let said = portions(block);
        let last = said.len();
        for (at, portion) in said.iter().enumerate() {
            self.content(portion, "input_text", is_marked && at + 1 == last);
        }
    }

    fn result(&mut self, block: &Block, is_marked: bool) {
        self.item();
        self.speller.raw(r#"{"type":"function_call_output","call_id":"#);
        write_string(self.speller, block, "tool_use_id");
        self.speller.raw(r#","output":"#);
        let said = result_portions(block);
        // Only parts of a list can carry a breakpoint; a result keeps its form whether it carries one or not.
        if said.is_empty() || (!self.message.has_breakpoints && said.iter().all(Portion::is_words)) {
            write_joined(self.speller, &said, r"\n");
        } else {
            self.speller.raw("[");
            for (at, portion) in said.iter().enumerate() {
                self.speller.raw(if at > 0 { "," } else { "" });
                self.part(portion, "input_text", is_marked && at + 1 == said.len());
            }
            self.speller.raw("]");
        }
        self.speller.raw("}");
    }

    fn model_block(&mut self, block: &Block) {
        // What came as an item goes back as it came.
        if let Some(item) = block.field("item").filter(|item| item.starts_with('{')) {
            self.item();
            return self.speller.shared(block.raw(), item);
        }
        match block.kind() {
            // Thinking of another provider's model means nothing to this one.
            BlockType::Thinking | BlockType::RedactedThinking | BlockType::Reasoning => {}
            BlockType::ToolUse => {
                self.item();
                self.speller.raw(r#"{"type":"function_call","call_id":"#);
                write_string(self.speller, block, "id");
                self.speller.raw(",");
                write_call(self.speller, block);
                self.speller.raw("}");
            }
            BlockType::Text => {
                for portion in portions(block) {
                    self.content(&portion, "output_text", false);
                }
            }
            _ => self.content(&Portion::Words(told(block)), "output_text", false),
        }
    }

    /// Begins an item that is no message.
    fn item(&mut self) {
        self.close();
        self.commas.next(self.speller);
    }

    /// Writes a content part, in the open message or in a new one.
    fn content(&mut self, portion: &Portion, text_type: &str, is_marked: bool) {
        let mut commas = match self.open.take() {
            Some(commas) => commas,
            None => {
                self.item();
                self.speller.raw(match self.message.role {
                    Role::User => r#"{"type":"message","role":"user","content":["#,
                    Role::System => r#"{"type":"message","role":"developer","content":["#,
                    Role::Assistant => r#"{"type":"message","role":"assistant","content":["#,
                });
                Commas::default()
            }
        };
        commas.next(self.speller);
        self.open = Some(commas);
        self.part(portion, text_type, is_marked);
    }

    fn part(&mut self, portion: &Portion, text_type: &str, is_marked: bool) {
        let speller = &mut *self.speller;
        match portion {
            Portion::Literal(_) | Portion::Words(_) => {
                speller.raw(r#"{"type":""#);
                speller.raw(text_type);
                speller.raw(r#"","text":""#);
                portion.write(speller);
            }
            Portion::Picture(medium) => {
                speller.raw(r#"{"type":"input_image","detail":"auto","image_url":""#);
                medium.write_address(speller);
            }
            Portion::File(medium @ Medium::Data { .. }, name) => {
                speller.raw(r#"{"type":"input_file","filename":""#);
                speller.shared(name, name);
                speller.raw(r#"","file_data":""#);
                medium.write_address(speller);
            }
            Portion::File(medium, _) => {
                speller.raw(r#"{"type":"input_file","file_url":""#);
                medium.write_address(speller);
            }
        }
        speller.raw("\"");
        speller.raw(if is_marked { BREAKPOINT } else { "" });
        speller.raw("}");
    }

    /// Ends the open message, if there is one.
    fn close(&mut self) {
        if self.open.take().is_some() {
            self.speller.raw("]}");
        }
    }
}
