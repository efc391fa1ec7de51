//! Tools by what they do. Programs name the same tool differently; the one table of names is here.

/// What a tool does, as far as its results are alike in every program.
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

/// Names in lower case, words joined by nothing.
const NAMES: &[(ToolKind, &[&str])] = &[
    (ToolKind::Read, &["read", "readfile", "view", "viewfile", "notebookread"]),
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

impl ToolKind {
    /// What the tool with this name does; none for any other tool, and for all that a server offers (`mcp__…`).
    ///
    /// ```
    /// use pal_model::ToolKind;
    /// assert_eq!(ToolKind::named("read_file"), Some(ToolKind::Read));
    /// assert_eq!(ToolKind::named("run_shell_command"), ToolKind::named("Bash"));
    /// assert_eq!(ToolKind::named("mcp__files__read"), None);
    /// ```
    pub fn named(name: &str) -> Option<ToolKind> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_many_programs_lead_to_one_kind() {
        let kinds = [
            (ToolKind::Read, ["Read", "read_file", "view", "ReadFile"]),
            (ToolKind::Shell, ["Bash", "exec_command", "run_shell_command", "write_stdin"]),
            (ToolKind::Edit, ["Edit", "apply_patch", "replace", "str_replace_based_edit_tool"]),
            (ToolKind::Write, ["Write", "write_file", "create", "create_file"]),
        ];
        for (kind, names) in kinds {
            for name in names {
                assert_eq!(ToolKind::named(name), Some(kind), "{name}");
            }
        }
        for other in
            ["", "Task", "mcp__x__read", "TodoWrite", "wait", "a_name_that_is_longer_than_any_in_the_table"]
        {
            assert_eq!(ToolKind::named(other), None, "{other}");
        }
    }
}
