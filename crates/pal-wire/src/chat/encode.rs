//! Spells messages of the log as chat messages.

use pal_model::{Block, BlockType, Role};

use crate::Conversation;
use crate::function::{tools, write_call, write_string};
use crate::message::{BREAKPOINT, Message};
use crate::portion::{Medium, Portion, portions, result_portions, system_portions, told, write_joined};
use crate::spell::{Commas, Speller};

/// Whom a Chat Completions request is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChatServer {
    /// OpenAI: operators speak as `developer`, and the answer is limited by `max_completion_tokens`.
    OpenAi,
    /// Another server that speaks the dialect (Ollama, llama.cpp, vLLM …): `system` and `max_tokens`, and a plain
    /// string wherever content is nothing but words.
    Compatible,
}

/// Writes what stands before the messages, and the system prompt, which is the first of them.
pub(crate) fn head(speller: &mut Speller, conversation: &Conversation<'_>, server: ChatServer) {
    tools(speller, conversation, |speller, function| {
        speller.raw(r#"{"type":"function","function":{"#);
        function.write(speller);
        speller.raw("}}");
    });
    speller.raw(r#""messages":["#);
    if !conversation.system.is_empty() {
        speller.raw(r#"{"role":"#);
        speller.quoted(operator(server));
        speller.raw(r#","content":"#);
        write_joined(speller, &system_portions(conversation.system), r"\n\n");
        speller.raw("}");
    }
}

/// Writes what stands behind the messages.
pub(crate) fn closing(
    speller: &mut Speller,
    conversation: &Conversation<'_>,
    server: ChatServer,
    is_marked: bool,
) {
    speller.raw(match server {
        ChatServer::OpenAi => r#""max_completion_tokens":"#,
        ChatServer::Compatible => r#""max_tokens":"#,
    });
    speller.raw(&conversation.max_tokens.to_string());
    if let Some(effort) = conversation.effort {
        speller.raw(r#","reasoning_effort":"#);
        speller.quoted(effort);
    }
    if server == ChatServer::OpenAi {
        speller.raw(r#","store":false"#);
        if let Some(key) = conversation.cache_key {
            speller.raw(r#","prompt_cache_key":"#);
            speller.quoted(key);
        }
        if is_marked {
            speller.raw(r#","prompt_cache_options":{"mode":"explicit"}"#);
        }
    }
    speller.raw(if conversation.stream {
        r#","stream":true,"stream_options":{"include_usage":true}}"#
    } else {
        "}"
    });
}

/// Writes a message; nothing if all of it is left out.
pub(crate) fn message(speller: &mut Speller, message: &Message<'_>, server: ChatServer) {
    match message.role {
        Role::Assistant => model_message(speller, message),
        Role::User => user_message(speller, message, "user"),
        Role::System => user_message(speller, message, operator(server)),
    }
}

/// The role in which operators speak.
fn operator(server: ChatServer) -> &'static str {
    match server {
        ChatServer::OpenAi => "developer",
        ChatServer::Compatible => "system",
    }
}

/// Results come first, each a message of its own, because nothing may stand between calls and their answers; the rest
/// is one message behind them.
fn user_message(speller: &mut Speller, message: &Message<'_>, role: &str) {
    let mut commas = Commas::default();
    let mut rest: Vec<(Portion, bool)> = Vec::new();
    for (at, piece) in message.pieces.iter().enumerate() {
        let block = Block::parse(piece.block.clone());
        let is_marked = message.is_marked(at);
        let said = if block.kind() == BlockType::ToolResult {
            commas.next(speller);
            result(speller, &block, message, is_marked)
        } else {
            portions(&block)
        };
        let last = said.len();
        rest.extend(said.into_iter().enumerate().map(|(at, portion)| (portion, is_marked && at + 1 == last)));
    }
    if rest.is_empty() {
        return;
    }
    commas.next(speller);
    speller.raw(r#"{"role":"#);
    speller.quoted(role);
    speller.raw(r#","content":"#);
    content(speller, &rest, message.has_breakpoints);
    speller.raw("}");
}

/// Writes a result as a message and returns what it says beyond words: the message of a tool takes nothing else.
fn result(speller: &mut Speller, block: &Block, message: &Message<'_>, is_marked: bool) -> Vec<Portion> {
    let (words, mut media): (Vec<Portion>, Vec<Portion>) =
        result_portions(block).into_iter().partition(Portion::is_words);
    let mut words: Vec<(Portion, bool)> = words.into_iter().map(|portion| (portion, false)).collect();
    if !media.is_empty() {
        words.push((Portion::Words(String::from("[what else it returned follows the results]")), false));
        let id = block.string("tool_use_id").unwrap_or_default();
        media.insert(0, Portion::Words(format!("[from the result of {id}]")));
    } else if let Some(last) = words.last_mut() {
        last.1 = is_marked;
    }
    speller.raw(r#"{"role":"tool","tool_call_id":"#);
    write_string(speller, block, "tool_use_id");
    speller.raw(r#","content":"#);
    content(speller, &words, message.has_breakpoints);
    speller.raw("}");
    media
}

/// Writes content: a string where it is nothing but words and no part of it may ever have to carry a breakpoint.
fn content(speller: &mut Speller, said: &[(Portion, bool)], has_breakpoints: bool) {
    if said.is_empty() || (!has_breakpoints && said.iter().all(|(portion, _)| portion.is_words())) {
        let words: Vec<Portion> = said.iter().map(|(portion, _)| portion.clone()).collect();
        return write_joined(speller, &words, r"\n");
    }
    let mut commas = Commas::default();
    speller.raw("[");
    for (portion, is_marked) in said {
        commas.next(speller);
        part(speller, portion);
        speller.raw(if *is_marked { BREAKPOINT } else { "" });
        speller.raw("}");
    }
    speller.raw("]");
}

/// Writes a content part but for its last character.
fn part(speller: &mut Speller, portion: &Portion) {
    match portion {
        Portion::Picture(medium) => {
            speller.raw(r#"{"type":"image_url","image_url":{"url":""#);
            medium.write_address(speller);
            speller.raw(r#""}"#);
        }
        Portion::File(medium @ Medium::Data { .. }, name) => {
            speller.raw(r#"{"type":"file","file":{"filename":""#);
            speller.shared(name, name);
            speller.raw(r#"","file_data":""#);
            medium.write_address(speller);
            speller.raw(r#""}"#);
        }
        // This dialect takes no addresses of files, so the model is told of it.
        Portion::Literal(_) | Portion::Words(_) | Portion::File(Medium::Address(_), _) => {
            speller.raw(r#"{"type":"text","text":""#);
            portion.write(speller);
            speller.raw("\"");
        }
    }
}

/// What the model said: words in one string, calls in one list. Reasoning has no place here.
fn model_message(speller: &mut Speller, message: &Message<'_>) {
    let blocks: Vec<Block> = message.pieces.iter().map(|piece| Block::parse(piece.block.clone())).collect();
    let mut words: Vec<Portion> = Vec::new();
    for block in &blocks {
        match block.kind() {
            BlockType::Thinking | BlockType::RedactedThinking | BlockType::Reasoning | BlockType::ToolUse => {
            }
            BlockType::Text => words.extend(portions(block)),
            _ => words.push(Portion::Words(told(block))),
        }
    }
    let mut calls = blocks.iter().filter(|block| block.kind() == BlockType::ToolUse).peekable();
    if words.is_empty() && calls.peek().is_none() {
        return;
    }
    speller.raw(r#"{"role":"assistant","content":"#);
    write_joined(speller, &words, r"\n\n");
    let mut commas = Commas::default();
    for call in calls {
        speller.raw(if commas.is_first() { r#","tool_calls":["# } else { "" });
        commas.next(speller);
        speller.raw(r#"{"id":"#);
        write_string(speller, call, "id");
        speller.raw(r#","type":"function","function":{"#);
        write_call(speller, call);
        speller.raw("}}");
    }
    speller.raw(if commas.is_first() { "}" } else { "]}" });
}
