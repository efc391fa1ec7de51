//! Subagents that `--agents` defines.

use std::path::PathBuf;

use pal_model::did_you_mean;
use pal_tools::AgentDefinition;
use serde_json::{Map, Value};

use crate::failure::Failure;

/// Fields of a definition. Those after `model` have no effect here.
const FIELDS: &[&str] = &[
    "description",
    "prompt",
    "tools",
    "disallowedTools",
    "model",
    "skills",
    "mcpServers",
    "hooks",
    "maxTurns",
    "permissionMode",
    "effort",
    "color",
    "memory",
    "background",
    "isolation",
    "initialPrompt",
];

/// Parses definitions by name: `{"reviewer": {"description": "…", "prompt": "…", "tools": ["Read"], "model": "haiku"}}`.
pub(super) fn parse_agents(text: &str) -> Result<Vec<AgentDefinition>, Failure> {
    let agents: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| wrong(format!("not a JSON object: {error}")))?;
    agents.into_iter().map(|(name, fields)| definition(name, &fields)).collect()
}

/// Parses the definitions of a driving program's `initialize` request. Fields that are unknown here are left out: a newer
/// program may send more.
pub(crate) fn agents_of_program(agents: &Value) -> Result<Vec<AgentDefinition>, String> {
    let table = match agents {
        Value::Null => return Ok(Vec::new()),
        Value::Object(table) => table,
        _ => return Err(String::from("`agents` is not an object")),
    };
    let known = |fields: &Value| match fields {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| FIELDS.contains(&name.as_str()));
            Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        other => other.clone(),
    };
    let parse = |(name, fields): (&String, &Value)| {
        let agent = definition(name.clone(), &known(fields)).map_err(|failure| failure.message())?;
        Ok(AgentDefinition { path: PathBuf::from("the driving program"), ..agent })
    };
    table.iter().map(parse).collect()
}

fn definition(name: String, fields: &Value) -> Result<AgentDefinition, Failure> {
    let Some(table) = fields.as_object() else { return Err(wrong(format!("`{name}` is not an object"))) };
    if let Some(field) = table.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(wrong(format!("`{name}` has an unknown field `{field}`{}", did_you_mean(field, FIELDS))));
    }
    let text = |field: &str| table.get(field).and_then(Value::as_str).map(str::to_owned);
    let required = |field: &str| {
        text(field)
            .filter(|text| !text.trim().is_empty())
            .ok_or_else(|| wrong(format!("`{name}` has no `{field}`")))
    };
    let list = |field: &str| match table.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => {
            Ok(Some(items.iter().filter_map(|item| Some(item.as_str()?.to_owned())).collect()))
        }
        Some(Value::String(text)) => Ok(Some(text.split(',').map(|name| name.trim().to_owned()).collect())),
        Some(_) => Err(wrong(format!("`{field}` of `{name}` is not a list of tools"))),
    };
    Ok(AgentDefinition {
        description: required("description")?,
        prompt: required("prompt")?,
        model: text("model").filter(|model| model != "inherit"),
        tools: list("tools")?,
        without_tools: list("disallowedTools")?.unwrap_or_default(),
        is_isolated: text("isolation").as_deref() == Some("worktree"),
        is_background: table.get("background") == Some(&Value::Bool(true)),
        memory: text("memory"),
        path: PathBuf::from("--agents"),
        name,
    })
}

fn wrong(what: impl std::fmt::Display) -> Failure {
    Failure::usage_error(
        format!("--agents: {what}"),
        r#"write it like '{"reviewer": {"description": "Reviews code", "prompt": "You review code."}}'"#,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_read_and_mistakes_are_named() {
        let text = r#"{"r": {"description": "d", "prompt": "p", "tools": ["Read", "Grep"], "model": "haiku", "maxTurns": 3}}"#;
        let [agent] = <[AgentDefinition; 1]>::try_from(parse_agents(text).unwrap()).unwrap();
        assert_eq!((agent.name.as_str(), agent.model.as_deref()), ("r", Some("haiku")));
        assert_eq!(agent.tools.unwrap(), ["Read", "Grep"]);
        for (text, expected) in [
            ("reviewer", "not a JSON object"),
            (r#"{"r": {"prompt": "p"}}"#, "no `description`"),
            (r#"{"r": {"description": "d", "promt": "p"}}"#, "did you mean `prompt`?"),
            (r#"{"r": []}"#, "not an object"),
        ] {
            let error = parse_agents(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
