//! Kinds of tools. Agents name the same tool differently; this module has the only table of names.

/// Function of a tool, for tools whose results are alike in all agents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ToolKind {
    /// Shows a file.
    Read,
    /// Runs a command, or shows what a running one printed.
    Shell,
    /// Searches in files.
    Search,
    /// Lists files.
    List,
    /// Searches the web.
    WebSearch,
    /// Fetches a page.
    WebFetch,
    /// Changes a file.
    Edit,
    /// Writes a whole file.
    Write,
}

/// Tool names in lower case, without separators.
const NAMES: &[(ToolKind, &[&str])] = &[
    (ToolKind::Read, &["read", "readfile", "view", "viewfile", "notebookread", "getfilecontents"]),
    (
        ToolKind::Shell,
        &[
            "bash",
            "shell",
            "localshell",
            "shellcommand",
            "exec",
            "execcommand",
            "runshellcommand",
            "runcommand",
            "runterminalcmd",
            "executebash",
            "terminal",
            "writestdin",
            "readbash",
            "writebash",
            "stopbash",
            "bashoutput",
            "powershell",
        ],
    ),
    (ToolKind::Search, &["grep", "rg", "grepsearch", "searchfilecontent", "ripgrep"]),
    (
        ToolKind::List,
        &["glob", "find", "ls", "list", "listdirectory", "listdir", "listfiles", "fileglobsearch"],
    ),
    (ToolKind::WebSearch, &["websearch", "googlewebsearch"]),
    (ToolKind::WebFetch, &["webfetch", "fetch", "fetchurl"]),
    (
        ToolKind::Edit,
        &[
            "edit",
            "multiedit",
            "editfile",
            "replace",
            "applypatch",
            "strreplace",
            "strreplaceeditor",
            "strreplacebasededittool",
            "notebookedit",
        ],
    ),
    (ToolKind::Write, &["write", "writefile", "create", "createfile"]),
];

/// Words that hint at a kind, for names that are not in the table.
const WORDS: &[(ToolKind, &[&str])] = &[
    (ToolKind::Read, &["read", "view", "cat", "open"]),
    (
        ToolKind::Shell,
        &[
            "bash",
            "shell",
            "exec",
            "terminal",
            "command",
            "stdin",
            "powershell",
            "console",
            "process",
            "run",
            "zsh",
            "sh",
            "wait",
        ],
    ),
    (ToolKind::Search, &["grep", "search"]),
    (ToolKind::List, &["glob", "list", "ls", "find"]),
    (ToolKind::Edit, &["edit", "replace", "patch", "insert"]),
    (ToolKind::Write, &["write", "create"]),
];

impl ToolKind {
    /// Returns the kind of a tool by its name; none for other tools and all MCP tools (`mcp__…`).
    ///
    /// ```
    /// use pal_model::ToolKind;
    /// assert_eq!(ToolKind::from_name("read_file"), Some(ToolKind::Read));
    /// assert_eq!(ToolKind::from_name("run_shell_command"), ToolKind::from_name("Bash"));
    /// assert_eq!(ToolKind::from_name("mcp__files__read"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<ToolKind> {
        let mut letters = [0; 32];
        let mut length = 0;
        for byte in name.bytes().filter(|byte| !matches!(byte, b'_' | b'-')) {
            *letters.get_mut(length)? = byte.to_ascii_lowercase();
            length += 1;
        }
        let spelled = &letters[..length];
        let found = NAMES.iter().find(|(_, names)| names.iter().any(|name| name.as_bytes() == spelled));
        found.map(|(kind, _)| *kind)
    }
}

impl ToolKind {
    /// Returns true if a tool with this name is likely of this kind: the table says so, or the name is not in the table
    /// and one of its words hints at the kind. The name of an MCP server is ignored.
    ///
    /// ```
    /// use pal_model::ToolKind;
    /// assert!(ToolKind::Read.matches_name("mcp__files__read_text_file"));
    /// assert!(ToolKind::Edit.matches_name("replaceInFile") && !ToolKind::Read.matches_name("spread"));
    /// ```
    pub fn matches_name(self, name: &str) -> bool {
        let name = name.rsplit("__").next().unwrap_or(name);
        let name = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
        if let Some(kind) = ToolKind::from_name(name) {
            return kind == self;
        }
        let known = WORDS.iter().filter(|(kind, _)| *kind == self).flat_map(|(_, words)| words.iter());
        name_words(name).any(|word| known.clone().any(|known| word.eq_ignore_ascii_case(known)))
    }
}

/// Splits a name into words at non-alphanumeric characters and camel-case humps.
fn name_words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|letter: char| !letter.is_ascii_alphanumeric()).flat_map(|part| {
        let bytes = part.as_bytes();
        let is_hump =
            |at: &usize| *at > 0 && bytes[*at].is_ascii_uppercase() && bytes[*at - 1].is_ascii_lowercase();
        let starts = (0..part.len()).filter(move |at| *at == 0 || is_hump(at));
        let ends = (1..=part.len()).filter(move |at| *at == part.len() || is_hump(at));
        starts.zip(ends).filter_map(|(start, end)| part.get(start..end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_name_hint_at_the_kind() {
        let split = |name| name_words(name).collect::<Vec<_>>();
        assert_eq!(split("replaceInFile-now"), ["replace", "In", "File", "now"]);
        assert_eq!((split(""), split("HTTPGet")), (vec![], vec!["HTTPGet"]));
        let kinds = [ToolKind::Read, ToolKind::Shell, ToolKind::Search, ToolKind::Edit, ToolKind::Write];
        for (name, kind) in [
            ("mcp__read__run_thing", ToolKind::Shell),
            ("fs.read", ToolKind::Read),
            ("write_stdin", ToolKind::Shell),
            ("search_code", ToolKind::Search),
            ("mcp__x__insert_lines", ToolKind::Edit),
            ("mcp__x__write_text_file", ToolKind::Write),
        ] {
            let found: Vec<_> = kinds.into_iter().filter(|kind| kind.matches_name(name)).collect();
            assert_eq!(found, [kind], "{name}");
        }
    }

    #[test]
    fn names_of_different_agents_map_to_one_kind() {
        let kinds = [
            (ToolKind::Read, ["Read", "read_file", "view", "ReadFile"]),
            (ToolKind::Shell, ["Bash", "exec_command", "run_shell_command", "write_stdin"]),
            (ToolKind::Edit, ["Edit", "apply_patch", "replace", "str_replace_based_edit_tool"]),
            (ToolKind::Write, ["Write", "write_file", "create", "create_file"]),
        ];
        for (kind, names) in kinds {
            for name in names {
                assert_eq!(ToolKind::from_name(name), Some(kind), "{name}");
            }
        }
        for other in
            ["", "Task", "mcp__x__read", "TodoWrite", "wait", "a_name_that_is_longer_than_any_in_the_table"]
        {
            assert_eq!(ToolKind::from_name(other), None, "{other}");
        }
    }
}
