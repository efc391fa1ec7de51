//! Tools of a request that can change files, and their calls.

use std::borrow::Cow;

use pal_model::{SharedText, member, member_string, object_fields};
use serde_json::{Map, Value};

use crate::OutputBlock;

/// A tool that changes files, with its parameter names.
#[derive(Clone, Debug)]
pub(crate) struct FileTool {
    name: String,
    path: &'static str,
    /// Value of `command`, if the tool has several.
    command: Option<&'static str>,
    /// Parameters that hold texts.
    texts: TextParameters,
}

#[derive(Clone, Copy, Debug)]
enum TextParameters {
    Whole(&'static str),
    Exchange { old: &'static str, new: &'static str },
}

const PATHS: [&str; 3] = ["file_path", "path", "filename"];
const CONTENTS: [&str; 3] = ["content", "file_text", "contents"];
const EXCHANGES: [(&str, &str); 2] = [("old_string", "new_string"), ("old_str", "new_str")];

impl FileTool {
    /// Finds the tool that writes whole files.
    pub(crate) fn writer(tools: &[Cow<'_, str>]) -> Option<FileTool> {
        tools.iter().find_map(|raw| {
            let (name, members, command) = read(raw)?;
            let content = CONTENTS.into_iter().find(|key| members.iter().any(|name| name == key))?;
            let path = PATHS.into_iter().find(|key| members.iter().any(|name| name == key))?;
            Some(FileTool {
                name,
                path,
                command: command.then_some("create"),
                texts: TextParameters::Whole(content),
            })
        })
    }

    /// Finds the tool that replaces text in files.
    pub(crate) fn editor(tools: &[Cow<'_, str>]) -> Option<FileTool> {
        tools.iter().find_map(|raw| {
            let (name, members, command) = read(raw)?;
            let has = |key: &str| members.iter().any(|name| name == key);
            let (old, new) = EXCHANGES.into_iter().find(|(old, new)| has(old) && has(new))?;
            let path = PATHS.into_iter().find(|key| has(key))?;
            let command = command.then_some("str_replace");
            Some(FileTool { name, path, command, texts: TextParameters::Exchange { old, new } })
        })
    }

    /// Call that writes `new` to the file; an editor replaces `old` with it.
    pub(crate) fn call(&self, path: &str, old: &str, new: &str) -> OutputBlock {
        let mut input = Map::new();
        let mut put = |key: &str, value: &str| input.insert(key.to_owned(), Value::from(value));
        if let Some(command) = self.command {
            put("command", command);
        }
        put(self.path, path);
        match self.texts {
            TextParameters::Whole(content) => put(content, new),
            TextParameters::Exchange { old: old_key, new: new_key } => {
                put(old_key, old);
                put(new_key, new)
            }
        };
        let input = SharedText::from(Value::Object(input).to_string());
        OutputBlock::ToolUse { id: None, name: self.name.clone(), input }
    }
}

/// Name and parameters of a tool, and true if it has several commands.
fn read(raw: &str) -> Option<(String, Vec<String>, bool)> {
    let members = object_fields(raw).ok()?;
    let name = member_string(&members, "name")?.into_owned();
    let kind = member_string(&members, "type").unwrap_or_default();
    if kind.starts_with("text_editor_") || kind.starts_with("memory_") {
        let known = ["command", "path", "file_text", "old_str", "new_str"];
        return Some((name, known.map(str::to_owned).to_vec(), true));
    }
    let schema = object_fields(member(&members, "input_schema")?).ok()?;
    let properties = object_fields(member(&schema, "properties")?).ok()?;
    let names: Vec<String> = properties.into_iter().map(|(name, _)| name.into_owned()).collect();
    let has_commands = names.iter().any(|name| name == "command");
    Some((name, names, has_commands))
}

/// First path in a text that `is_wanted` accepts.
pub(crate) fn path_in(text: &str, is_wanted: impl Fn(&str) -> bool) -> Option<&str> {
    let around = |letter: char| letter.is_whitespace() || "\"'`<>()[]{},;".contains(letter);
    let words = text.split(around).map(|word| word.trim_end_matches(['.', ':', '!', '?']));
    words.filter(|word| word.contains('/') && !word.contains("://")).find(|word| is_wanted(word))
}
