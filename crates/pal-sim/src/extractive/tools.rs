//! The tools of a request that can change a file, and how each is called.

use std::borrow::Cow;

use pal_model::{Text, fields, member, member_string};
use serde_json::{Map, Value};

use crate::Said;

/// A tool that changes files, with the names of its parameters.
#[derive(Clone, Debug)]
pub(crate) struct FileTool {
    name: String,
    path: &'static str,
    /// What makes the tool do this, where it has several commands.
    command: Option<&'static str>,
    /// The parameters that hold the texts.
    texts: Texts,
}

#[derive(Clone, Copy, Debug)]
enum Texts {
    Whole(&'static str),
    Exchange { old: &'static str, new: &'static str },
}

const PATHS: [&str; 3] = ["file_path", "path", "filename"];
const CONTENTS: [&str; 3] = ["content", "file_text", "contents"];
const EXCHANGES: [(&str, &str); 2] = [("old_string", "new_string"), ("old_str", "new_str")];

impl FileTool {
    /// The tool that writes a whole file.
    pub(crate) fn writer(tools: &[Cow<'_, str>]) -> Option<FileTool> {
        tools.iter().find_map(|raw| {
            let (name, members, command) = read(raw)?;
            let content = CONTENTS.into_iter().find(|key| members.iter().any(|name| name == key))?;
            let path = PATHS.into_iter().find(|key| members.iter().any(|name| name == key))?;
            Some(FileTool { name, path, command: command.then_some("create"), texts: Texts::Whole(content) })
        })
    }

    /// The tool that exchanges one stretch of a file for another.
    pub(crate) fn editor(tools: &[Cow<'_, str>]) -> Option<FileTool> {
        tools.iter().find_map(|raw| {
            let (name, members, command) = read(raw)?;
            let has = |key: &str| members.iter().any(|name| name == key);
            let (old, new) = EXCHANGES.into_iter().find(|(old, new)| has(old) && has(new))?;
            let path = PATHS.into_iter().find(|key| has(key))?;
            let command = command.then_some("str_replace");
            Some(FileTool { name, path, command, texts: Texts::Exchange { old, new } })
        })
    }

    /// The call that puts `new` into the file; an editor puts it in the place of `old`.
    pub(crate) fn call(&self, path: &str, old: &str, new: &str) -> Said {
        let mut input = Map::new();
        let mut put = |key: &str, value: &str| input.insert(key.to_owned(), Value::from(value));
        if let Some(command) = self.command {
            put("command", command);
        }
        put(self.path, path);
        match self.texts {
            Texts::Whole(content) => put(content, new),
            Texts::Exchange { old: old_key, new: new_key } => {
                put(old_key, old);
                put(new_key, new)
            }
        };
        let input = Text::from(Value::Object(input).to_string());
        Said::ToolUse { id: None, name: self.name.clone(), input }
    }
}

/// A tool's name, its parameters, and whether it has several commands.
fn read(raw: &str) -> Option<(String, Vec<String>, bool)> {
    let members = fields(raw).ok()?;
    let name = member_string(&members, "name")?.into_owned();
    let kind = member_string(&members, "type").unwrap_or_default();
    if kind.starts_with("text_editor_") || kind.starts_with("memory_") {
        let known = ["command", "path", "file_text", "old_str", "new_str"];
        return Some((name, known.map(str::to_owned).to_vec(), true));
    }
    let schema = fields(member(&members, "input_schema")?).ok()?;
    let properties = fields(member(&schema, "properties")?).ok()?;
    let names: Vec<String> = properties.into_iter().map(|(name, _)| name.into_owned()).collect();
    let has_commands = names.iter().any(|name| name == "command");
    Some((name, names, has_commands))
}

/// The first path in a text that ends in this way, as it stands there.
pub(crate) fn path_in(text: &str, is_wanted: impl Fn(&str) -> bool) -> Option<&str> {
    let around = |letter: char| letter.is_whitespace() || "\"'`<>()[]{},;".contains(letter);
    let words = text.split(around).map(|word| word.trim_end_matches(['.', ':', '!', '?']));
    words.filter(|word| word.contains('/') && !word.contains("://")).find(|word| is_wanted(word))
}
