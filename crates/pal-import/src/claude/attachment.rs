//! Claude Code's attachments, reworded around their payload.

use std::fmt::Write;

use pal_model::{array_items, unescape};

use crate::content_blocks::{self, quoted, reminder, text_block};
use crate::raw_fields::{pick_or_none, string};

/// Content of an attachment for the model; `None` if it has none.
pub(super) fn content(kind: &str, raw: &str) -> Option<String> {
    if matches!(kind, "file" | "already_read_file")
        && let Some(image) = image(raw)
    {
        return Some(image);
    }
    text(kind, raw).map(|text| reminder(&text))
}

fn text(kind: &str, raw: &str) -> Option<String> {
    match kind {
        // For the user or the agent only.
        "command_permissions"
        | "hook_system_message"
        | "hook_cancelled"
        | "hook_non_blocking_error"
        | "hook_error_during_execution"
        | "structured_output" => None,
        "file" | "already_read_file" => file(kind, raw),
        "edited_text_file" => {
            let name = field(raw, "filename")?;
            let snippet = field(raw, "snippet").unwrap_or_default();
            Some(format!("{name} was changed since it was last read. It now holds:\n{snippet}"))
        }
        "compact_file_reference" => {
            let name = field(raw, "filename")?;
            Some(format!(
                "{name} was read before the summary; its content is left out here. Read it again if needed."
            ))
        }
        "date_change" => Some(format!("The date is now {}.", field(raw, "newDate")?)),
        "skill_listing" => Some(format!("Skills that can be used:\n{}", field(raw, "content")?)),
        "deferred_tools_delta" => {
            delta("Tools that can be loaded on demand", raw, &["addedLines", "addedNames"], "removedNames")
        }
        "agent_listing_delta" => {
            delta("Agent types that can be started", raw, &["addedLines", "addedTypes"], "removedTypes")
        }
        "mcp_instructions_delta" => {
            delta("Instructions of MCP servers", raw, &["addedBlocks", "addedNames"], "removedNames")
        }
        "task_reminder" | "todo_reminder" | "todo" => tasks(raw),
        "invoked_skills" => skills(raw),
        "async_hook_response" => {
            let [response] = pick_or_none(raw, &["response"]);
            let [output, context] = pick_or_none(response?, &["hookSpecificOutput", "additionalContext"]);
            let [inner] = pick_or_none(output.unwrap_or("{}"), &["additionalContext"]);
            string(context.or(inner)).map(|text| format!("A hook reported:\n{text}"))
        }
        "hook_success" | "hook_additional_context" | "hook_blocking_error" => {
            let name = field(raw, "hookName").unwrap_or("hook".into());
            let [content, error] = pick_or_none(raw, &["content", "blockingError"]);
            let text = decoded_text(content).or_else(|| decoded_text(error))?;
            Some(format!("The hook {name} reported:\n{text}"))
        }
        "queued_command" => Some(format!("This came in while you were working:\n{}", field(raw, "prompt")?)),
        _ => other(kind, raw),
    }
}

/// Unknown kind: its first text field, if any.
fn other(kind: &str, raw: &str) -> Option<String> {
    let fields = pick_or_none(raw, &["content", "text", "snippet", "prompt", "message", "memories"]);
    let text = fields.into_iter().find_map(decoded_text)?;
    match kind {
        "total_tokens_reminder" => Some(text),
        _ => Some(format!("{}:\n{text}", kind.replace(['_', '-'], " "))),
    }
}

fn field(raw: &str, name: &str) -> Option<String> {
    string(pick_or_none(raw, &[name])[0]).map(Into::into)
}

/// Text of a raw value: a string, a list of strings, or JSON; `None` if empty.
fn decoded_text(raw: Option<&str>) -> Option<String> {
    let raw = raw?.trim();
    if raw.starts_with('"') {
        return unescape(raw).filter(|text| !text.trim().is_empty()).map(Into::into);
    }
    if raw.starts_with('[') {
        let items = array_items(raw).ok()?;
        let texts: Vec<String> = items.into_iter().filter_map(|item| decoded_text(Some(item))).collect();
        return (!texts.is_empty()).then(|| texts.join("\n"));
    }
    (raw.starts_with('{') && raw != "{}").then(|| raw.to_owned())
}

fn file(kind: &str, raw: &str) -> Option<String> {
    let [name, content] = pick_or_none(raw, &["filename", "content"]);
    let name = string(name).unwrap_or("a file".into());
    let [file] = pick_or_none(content.unwrap_or("{}"), &["file"]);
    let [text] = pick_or_none(file.unwrap_or("{}"), &["content"]);
    let text = decoded_text(text).or_else(|| decoded_text(content)).unwrap_or_default();
    let intro = if kind == "file" { "The content of" } else { "Already read, and unchanged:" };
    Some(format!("{intro} {name}:\n{text}"))
}

/// An image file: a note and the image.
fn image(raw: &str) -> Option<String> {
    let [name, content] = pick_or_none(raw, &["filename", "content"]);
    let [kind, file] = pick_or_none(content?, &["type", "file"]);
    if string(kind)? != "image" {
        return None;
    }
    let [data, media_type] = pick_or_none(file?, &["base64", "type"]);
    let note = format!("The picture {}:", string(name).unwrap_or("in a file".into()));
    let image = content_blocks::image_data(media_type.unwrap_or("\"image/png\""), data?);
    Some(content_blocks::list([text_block(&quoted(&pal_model::escape_tags(&note))).as_str(), image.as_str()]))
}

fn delta(intro: &str, raw: &str, added: &[&str; 2], removed: &str) -> Option<String> {
    let mut text = String::new();
    // Lines are preferred over names.
    let found = pick_or_none(raw, added).into_iter().find_map(decoded_text);
    if let Some(added) = found {
        let _ = write!(text, "{intro}:\n{added}");
    }
    let [gone] = pick_or_none(raw, &[removed]);
    if let Some(gone) = decoded_text(gone) {
        let _ = write!(text, "{}No longer there:\n{gone}", if text.is_empty() { "" } else { "\n" });
    }
    (!text.is_empty()).then_some(text)
}

fn tasks(raw: &str) -> Option<String> {
    let [items] = pick_or_none(raw, &["content"]);
    let mut text = String::from("The task list at present:");
    let items = array_items(items?).ok()?;
    if items.is_empty() {
        return None;
    }
    for item in items {
        let [subject, content, status, id] = pick_or_none(item, &["subject", "content", "status", "id"]);
        match string(subject.or(content)) {
            Some(subject) => {
                let id = string(id).map(|id| format!("#{id} ")).unwrap_or_default();
                let _ = write!(text, "\n- {id}[{}] {subject}", string(status).unwrap_or("open".into()));
            }
            None => {
                let _ = write!(text, "\n- {item}");
            }
        }
    }
    Some(text)
}

fn skills(raw: &str) -> Option<String> {
    let [skills] = pick_or_none(raw, &["skills"]);
    let mut text = String::from("Skills used earlier in this session:");
    let skills = array_items(skills?).ok().filter(|skills| !skills.is_empty())?;
    for skill in skills {
        let name = field(skill, "name").unwrap_or_default();
        let _ = write!(text, "\n\n## {name}\n{}", field(skill, "content").unwrap_or_default());
    }
    Some(text)
}
