//! Definitions of the tools: names, descriptions, schemas.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// Instructions for the client.
pub(crate) const INSTRUCTIONS: &str = "What is worth knowing about this project from session to session, and everything that was said in its earlier sessions. \
Search the memories when a task begins, and recall what was said before you guess at something that was settled earlier. \
Write a memory when the user states a lasting preference, decision or fact that code and git do not tell; never passing task detail, and no secrets.";

pub(crate) const SEARCH: &str = "memory_search";
pub(crate) const READ: &str = "memory_read";
pub(crate) const WRITE: &str = "memory_write";
pub(crate) const RECALL: &str = "recall";

/// All tools; the writing one only if allowed.
pub(crate) fn tools(is_read_only: bool) -> Vec<Tool> {
    let reads = ToolAnnotations::new().read_only(true).open_world(false);
    let mut tools = vec![
        tool(
            SEARCH,
            "Finds what is remembered about this project by words of names, descriptions and texts. Gives the name and the description of each memory, the best first; memory_read shows one whole.",
            json!({
                "query": {"type": "string", "minLength": 1, "description": "What to look for, in words."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50, "description": "Most memories. Default: 10."}
            }),
            &["query"],
        )
        .with_annotations(reads.clone()),
        tool(
            READ,
            "Shows a memory whole.",
            json!({"name": {"type": "string", "minLength": 1, "description": "Its name, or what memory_search calls it."}}),
            &["name"],
        )
        .with_annotations(reads.clone()),
        tool(
            RECALL,
            "Finds what was said, read or printed in earlier sessions of this project, word for word. Give `query` to search: each hit comes with the id of its entry and the exact lines around it. Give `entry` to see one entry exactly as it was, with `before` and `after` for its neighbours.",
            json!({
                "query": {"type": "string", "minLength": 1, "description": "Words to look for, in any order."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50, "description": "Most hits. Default: 10."},
                "entry": {"type": "string", "minLength": 1, "description": "The id of one entry to show, instead of a search."},
                "offset": {"type": "integer", "minimum": 0, "description": "The first character of that entry to show. Default: 0."},
                "before": {"type": "integer", "minimum": 0, "maximum": 20, "description": "Entries to show before that one. Default: 0."},
                "after": {"type": "integer", "minimum": 0, "maximum": 20, "description": "Entries to show after it. Default: 0."}
            }),
            &[],
        )
        .with_annotations(reads),
    ];
    if !is_read_only {
        tools.push(
            tool(
                WRITE,
                "Remembers something for all later sessions of this project, or writes a memory anew. Secrets are masked; every change is kept and can be taken back by the user.",
                json!({
                    "text": {"type": "string", "minLength": 1, "description": "What to remember, in whole sentences and with absolute dates."},
                    "name": {"type": "string", "description": "A short name. Default: the first sentence."},
                    "description": {"type": "string", "description": "One sentence that says when it matters. Default: the first sentence."},
                    "type": {"type": "string", "enum": ["user", "feedback", "project", "reference"], "description": "About the user; how they want work done; facts and decisions of the project; where things are outside. Default: project."},
                    "replaces": {"type": "string", "description": "The memory to write anew, as memory_search calls it. Without it a new one is written."}
                }),
                &["text"],
            )
            .with_annotations(ToolAnnotations::new().read_only(false).destructive(false).open_world(false)),
        );
    }
    tools
}

fn tool(name: &'static str, description: &'static str, properties: Value, required: &[&str]) -> Tool {
    let mut schema = JsonObject::new();
    schema.insert(String::from("type"), json!("object"));
    schema.insert(String::from("properties"), properties);
    schema.insert(String::from("required"), json!(required));
    schema.insert(String::from("additionalProperties"), json!(false));
    Tool::new(name, description, Arc::new(schema))
}
