//! Results of tools in the form in which hooks written for Claude Code read them (`tool_response`), and the way back.

use pal_model::{BlockType, ContentBlock};
use pal_run::ToolCall;
use pal_tools::Workspace;
use serde_json::{Map, Value, json};

/// Result of a call as the `tool_response` of its tool. Tools that Claude Code does not have, and results that are
/// no text, have their content blocks under `content`.
pub(crate) fn tool_response(call: &ToolCall, content: &[ContentBlock], workspace: &Workspace) -> Value {
    let input: Map<String, Value> = serde_json::from_str(&call.input).unwrap_or_default();
    let field = |name: &str| input.get(name).cloned().unwrap_or(Value::Null);
    let blocks: Vec<Value> =
        content.iter().filter_map(|block| serde_json::from_str(block.raw()).ok()).collect();
    if call.name.starts_with("mcp__") {
        return Value::Array(blocks);
    }
    if content.iter().any(|block| block.kind() != BlockType::Text) {
        return json!({ "content": blocks });
    }
    let text = content_text(content);
    let path = || {
        let named = input.get("file_path").and_then(Value::as_str).unwrap_or_default();
        workspace.resolve(named).real.display().to_string()
    };
    match call.name.as_str() {
        "Bash" => json!({ "stdout": text, "stderr": "", "interrupted": false, "isImage": false }),
        "Read" => read_response(&path(), &text),
        "Write" => {
            let change = if text.starts_with("Created") { "create" } else { "update" };
            json!({ "type": change, "filePath": path(), "content": field("content"), "success": true })
        }
        "Edit" => json!({
            "filePath": path(),
            "oldString": field("old_string"),
            "newString": field("new_string"),
            "replaceAll": field("replace_all").as_bool().unwrap_or(false),
            "success": true,
        }),
        "Glob" => {
            let names = file_names(&text);
            let is_truncated = text.lines().any(|line| line.starts_with('['));
            json!({ "filenames": names, "numFiles": names.len(), "truncated": is_truncated && !names.is_empty() })
        }
        "Grep" => match field("output_mode").as_str().unwrap_or("files_with_matches") {
            "files_with_matches" => {
                let names = file_names(&text);
                json!({ "mode": "files_with_matches", "filenames": names, "numFiles": names.len() })
            }
            mode => json!({ "mode": mode, "content": text, "numLines": text.lines().count() }),
        },
        "WebFetch" => json!({ "url": field("url"), "result": text }),
        "Agent" => json!({ "status": "completed", "prompt": field("prompt"), "content": blocks }),
        "Skill" => json!({ "success": true, "commandName": field("skill"), "content": text }),
        _ => json!({ "content": text }),
    }
}

/// Text of content blocks.
pub(crate) fn content_text(content: &[ContentBlock]) -> String {
    let words: Vec<_> = content.iter().filter_map(|block| block.string("text")).collect();
    words.join("\n")
}

/// Text of a result that a hook returns instead (`updatedToolOutput`): a text, content blocks, or the form that it
/// was given.
pub(crate) fn output_text(output: &Value) -> String {
    let object = match output {
        Value::String(text) => return text.clone(),
        Value::Array(blocks) => return blocks_text(blocks).unwrap_or_else(|| output.to_string()),
        Value::Object(object) => object,
        other => return other.to_string(),
    };
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => blocks_text(blocks),
        _ => None,
    };
    let file = || object.get("file").and_then(|file| file.get("content"));
    let found = ["content", "stdout", "result"].into_iter().find_map(|name| object.get(name)).or_else(file);
    let Some(mut found) = found.and_then(text) else { return output.to_string() };
    if let Some(errors) = object.get("stderr").and_then(Value::as_str).filter(|errors| !errors.is_empty()) {
        found.push_str(&format!("\n{errors}"));
    }
    found
}

/// Text of blocks, if all of them are text.
fn blocks_text(blocks: &[Value]) -> Option<String> {
    let texts: Option<Vec<&str>> = blocks.iter().map(|block| block.get("text")?.as_str()).collect();
    texts.map(|texts| texts.join("\n"))
}

/// A file without the line numbers and notes that the model reads.
fn read_response(path: &str, text: &str) -> Value {
    let numbered = |line: &str| -> Option<(u64, String)> {
        let (number, rest) = line.split_once('\t')?;
        Some((number.parse().ok()?, rest.to_owned()))
    };
    let rows: Vec<(u64, String)> = text.lines().map_while(numbered).collect();
    let start = rows.first().map_or(1, |(number, _)| *number);
    let lines: Vec<&str> = rows.iter().map(|(_, line)| line.as_str()).collect();
    json!({
        "type": "text",
        "file": {
            "filePath": path,
            "content": if rows.is_empty() { text.to_owned() } else { lines.join("\n") },
            "numLines": lines.len(),
            "startLine": start,
        },
    })
}

/// Paths in a list, without its notes.
fn file_names(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('[')).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use pal_model::ToolUseId;
    use pal_tools::MediaSupport;

    use super::*;

    fn response(name: &str, input: &Value, text: &str) -> Value {
        let call = ToolCall {
            id: ToolUseId::from("toolu_1"),
            name: name.into(),
            input: pal_model::SharedText::from(input.to_string()),
            is_read_only: false,
            problem: None,
        };
        let media = MediaSupport { images: false, documents: false };
        let roots = vec![PathBuf::from("/project")];
        let workspace = Workspace::new(roots, PathBuf::from("/session"), None, media, BTreeMap::new());
        tool_response(&call, &[ContentBlock::text(text)], &workspace)
    }

    #[test]
    fn results_have_the_form_that_scripts_expect() {
        let check = |name: &str, input: Value, text: &str, expected: Value| {
            assert_eq!(response(name, &input, text), expected, "{name}");
        };
        check(
            "Bash",
            json!({"command": "ls"}),
            "a\nb",
            json!({"stdout": "a\nb", "stderr": "", "interrupted": false, "isImage": false}),
        );
        check(
            "Read",
            json!({"file_path": "src/a.rs", "offset": 7}),
            "7\tfn a() {\n8\t}\n\n[Lines 7 to 8 of 8: the end of the file.]",
            json!({"type": "text", "file": {"filePath": "/project/src/a.rs", "content": "fn a() {\n}", "numLines": 2,
                "startLine": 7}}),
        );
        check(
            "Write",
            json!({"file_path": "/project/b", "content": "x"}),
            "Created /project/b (1 line).",
            json!({"type": "create", "filePath": "/project/b", "content": "x", "success": true}),
        );
        check(
            "Edit",
            json!({"file_path": "b", "old_string": "x", "new_string": "y"}),
            "Edited.",
            json!({"filePath": "/project/b", "oldString": "x", "newString": "y", "replaceAll": false, "success": true}),
        );
        check(
            "Glob",
            json!({"pattern": "*"}),
            "a\nb\n\n[The 2 most recently changed of 9 files.]",
            json!({"filenames": ["a", "b"], "numFiles": 2, "truncated": true}),
        );
        check(
            "Grep",
            json!({"pattern": "x"}),
            "a",
            json!({"mode": "files_with_matches", "filenames": ["a"], "numFiles": 1}),
        );
        check(
            "Grep",
            json!({"pattern": "x", "output_mode": "content"}),
            "a:1:x",
            json!({"mode": "content", "content": "a:1:x", "numLines": 1}),
        );
        check("mcp__db__query", json!({}), "row", json!([{"type": "text", "text": "row"}]));
        check("Recall", json!({}), "found", json!({"content": "found"}));
    }

    #[test]
    fn a_replaced_result_may_have_the_form_it_was_given() {
        for (output, text) in [
            (json!("short"), "short"),
            (json!({"stdout": "out", "stderr": "err"}), "out\nerr"),
            (json!({"stdout": "out", "stderr": ""}), "out"),
            (json!({"type": "text", "file": {"content": "lines"}}), "lines"),
            (
                json!({"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}),
                "one\ntwo",
            ),
            (json!([{"type": "text", "text": "row"}]), "row"),
            (json!({"rows": 3}), r#"{"rows":3}"#),
        ] {
            assert_eq!(output_text(&output), text, "{output}");
        }
    }
}
