//! Calls of tools as layers look at them: what the tool does, and what it was asked about.

use std::borrow::Cow;

use pal_model::{Block, Field, ToolKind, ToolUseId, array_items, fields, member, member_string, unescape};
use pal_view::View;

const PATH_KEYS: [&str; 6] =
    ["file_path", "path", "absolute_path", "notebook_path", "filename", "target_file"];
const COMMAND_KEYS: [&str; 3] = ["command", "cmd", "script"];

/// A call that the view shows.
pub struct Call<'a> {
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// What the tool does, if it is one of those that every program has.
    pub kind: Option<ToolKind>,
    /// The input, raw JSON.
    pub input: &'a str,
}

impl<'a> Call<'a> {
    /// The call with this id, if the view holds it.
    pub(crate) fn of(view: &'a View, id: &ToolUseId) -> Option<Call<'a>> {
        view.call(id).and_then(Call::read)
    }

    /// Reads a block that makes a call.
    pub fn read(block: &'a Block) -> Option<Call<'a>> {
        let known = block.fields()?;
        let name = member_string(&known, "name")?;
        Some(Call { kind: ToolKind::named(&name), name, input: member(&known, "input").unwrap_or("{}") })
    }

    fn members(&self) -> Vec<Field<'a>> {
        fields(self.input).unwrap_or_default()
    }

    /// A member of the input, raw.
    pub fn member(&self, name: &str) -> Option<&'a str> {
        member(&self.members(), name)
    }

    /// The file that it is about.
    pub fn path(&self) -> Option<Cow<'a, str>> {
        let members = self.members();
        PATH_KEYS.iter().find_map(|key| member_string(&members, key))
    }

    /// The command line that it runs.
    pub fn command(&self) -> Option<Cow<'a, str>> {
        let members = self.members();
        let raw = COMMAND_KEYS.iter().find_map(|key| member(&members, key))?;
        unescape(raw).or_else(|| {
            let words = array_items(raw).ok()?;
            let words: Vec<Cow<'_, str>> = words.into_iter().filter_map(unescape).collect();
            Some(Cow::Owned(words.join(" ")))
        })
    }

    /// Whether it reads the project's memory.
    pub(crate) fn reads_memory(&self) -> bool {
        self.kind == Some(ToolKind::Read) && self.path().is_some_and(|path| is_memory(&path))
    }
}

/// Whether a file belongs to the memory: the index, or a page in a folder of that name.
fn is_memory(path: &str) -> bool {
    let mut parts = path.rsplit(['/', '\\']);
    let Some(file) = parts.next() else { return false };
    file == "MEMORY.md" || (file.ends_with(".md") && parts.any(|part| matches!(part, "memory" | "memories")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_model::Text;

    fn check(block: &str, read: impl Fn(&Call<'_>) -> String) -> String {
        let block = Block::parse(Text::from(block));
        read(&Call::read(&block).unwrap())
    }

    #[test]
    fn inputs_of_many_programs_are_read() {
        let path = |call: &Call<'_>| call.path().unwrap_or_default().into_owned();
        let command = |call: &Call<'_>| call.command().unwrap_or_default().into_owned();
        let call = |name: &str, input: &str| {
            format!(r#"{{"type":"tool_use","id":"a","name":"{name}","input":{input}}}"#)
        };
        assert_eq!(check(&call("read_file", r#"{"absolute_path":"/a \"b\""}"#), path), "/a \"b\"");
        assert_eq!(check(&call("exec_command", r#"{"cmd":"ls -l"}"#), command), "ls -l");
        assert_eq!(check(&call("shell", r#"{"command":["bash","-lc","ls"]}"#), command), "bash -lc ls");
        assert_eq!(check(&call("Task", "7"), command), "");
        let memory = |call: &Call<'_>| call.reads_memory().to_string();
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
