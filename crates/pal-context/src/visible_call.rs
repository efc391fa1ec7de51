//! Tool calls in the view: kind of tool, file and command.

use std::borrow::Cow;

use pal_model::{
    ContentBlock, JsonField, ToolKind, ToolUseId, array_items, member, member_string, object_fields, unescape,
};
use pal_view::View;

const PATH_KEYS: [&str; 6] =
    ["file_path", "path", "absolute_path", "notebook_path", "filename", "target_file"];
const COMMAND_KEYS: [&str; 3] = ["command", "cmd", "script"];

/// A tool call in the view.
pub struct VisibleCall<'a> {
    /// Tool name.
    pub name: Cow<'a, str>,
    /// Kind of the tool, if it is a well-known one.
    pub kind: Option<ToolKind>,
    /// Input as raw JSON.
    pub input: &'a str,
}

impl<'a> VisibleCall<'a> {
    /// Finds the call with this id in the view.
    pub(crate) fn of(view: &'a View, id: &ToolUseId) -> Option<VisibleCall<'a>> {
        view.call_block(id).and_then(VisibleCall::read)
    }

    /// Parses a `tool_use` block.
    pub fn read(block: &'a ContentBlock) -> Option<VisibleCall<'a>> {
        let known = block.fields()?;
        let name = member_string(&known, "name")?;
        Some(VisibleCall {
            kind: ToolKind::from_name(&name),
            name,
            input: member(&known, "input").unwrap_or("{}"),
        })
    }

    fn members(&self) -> Vec<JsonField<'a>> {
        object_fields(self.input).unwrap_or_default()
    }

    /// Raw member of the input.
    pub fn member(&self, name: &str) -> Option<&'a str> {
        member(&self.members(), name)
    }

    /// File path in the input.
    pub fn path(&self) -> Option<Cow<'a, str>> {
        let members = self.members();
        PATH_KEYS.iter().find_map(|key| member_string(&members, key))
    }

    /// Command line in the input.
    pub fn command(&self) -> Option<Cow<'a, str>> {
        let members = self.members();
        let raw = COMMAND_KEYS.iter().find_map(|key| member(&members, key))?;
        unescape(raw).or_else(|| {
            let words = array_items(raw).ok()?;
            let words: Vec<Cow<'_, str>> = words.into_iter().filter_map(unescape).collect();
            Some(Cow::Owned(words.join(" ")))
        })
    }

    /// Returns true if it reads a memory file.
    pub(crate) fn reads_memory(&self) -> bool {
        self.kind == Some(ToolKind::Read) && self.path().is_some_and(|path| is_memory(&path))
    }
}

/// Returns true for a memory file: the index, or a page in a directory of that name.
fn is_memory(path: &str) -> bool {
    let mut parts = path.rsplit(['/', '\\']);
    let Some(file) = parts.next() else { return false };
    file == "MEMORY.md" || (file.ends_with(".md") && parts.any(|part| matches!(part, "memory" | "memories")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::SharedText;

    fn check(block: &str, read: impl Fn(&VisibleCall<'_>) -> String) -> String {
        let block = ContentBlock::parse(SharedText::from(block));
        read(&VisibleCall::read(&block).unwrap())
    }

    #[test]
    fn call_inputs_of_many_programs_are_parsed() {
        let path = |call: &VisibleCall<'_>| call.path().unwrap_or_default().into_owned();
        let command = |call: &VisibleCall<'_>| call.command().unwrap_or_default().into_owned();
        let call = |name: &str, input: &str| {
            format!(r#"{{"type":"tool_use","id":"a","name":"{name}","input":{input}}}"#)
        };
        assert_eq!(check(&call("read_file", r#"{"absolute_path":"/a \"b\""}"#), path), "/a \"b\"");
        assert_eq!(check(&call("exec_command", r#"{"cmd":"ls -l"}"#), command), "ls -l");
        assert_eq!(check(&call("shell", r#"{"command":["bash","-lc","ls"]}"#), command), "bash -lc ls");
        assert_eq!(check(&call("Task", "7"), command), "");
        let memory = |call: &VisibleCall<'_>| call.reads_memory().to_string();
        for (path, is_memory) in [
            ("/home/a/.claude/projects/x/memory/MEMORY.md", "true"),
            ("/p/memory/style.md", "true"),
            ("/p/src/memory/mod.rs", "false"),
            ("/p/README.md", "false"),
        ] {
            assert_eq!(
                check(&call("Read", &format!(r#"{{"file_path":"{path}"}}"#)), memory),
                is_memory,
                "{path}"
            );
        }
    }
}
