//! Recognition of file content: by the tool, by the command, and by numbered lines.
//!
//! In doubt a text counts as file content, and stays whole.

use pal_model::ToolKind;

use super::OutputOrigin;

/// Returns true if the tool returned the text of a file.
pub(super) fn reads_file(asked: OutputOrigin<'_>) -> bool {
    is_reading_tool(asked.tool) || asked.command.is_some_and(|command| is_reading_command(command, 0))
}

/// Returns true if the tool runs commands.
pub(super) fn is_shell(asked: OutputOrigin<'_>) -> bool {
    asked.command.is_some() || ToolKind::Shell.matches_name(asked.tool)
}

/// String-replacing editors show files, too.
fn is_reading_tool(tool: &str) -> bool {
    let is_editor = tool.to_ascii_lowercase().contains("str_replace");
    ToolKind::Read.matches_name(tool) || is_editor
}

/// Returns true if some part of a command line prints a file. A part that only filters another's output does
/// not.
fn is_reading_command(command: &str, depth: usize) -> bool {
    pipelines(command).into_iter().any(|pipeline| {
        let words = words(pipeline);
        let mut words = words.as_slice();
        while let [first, rest @ ..] = words
            && is_before_command(first)
        {
            words = rest;
        }
        match words {
            [shell, flag, script, ..]
                if is_command(shell, &["bash", "sh", "zsh"])
                    && flag.starts_with('-')
                    && flag.ends_with('c') =>
            {
                let at = pipeline.find(script).unwrap_or_default();
                depth < 3 && is_reading_command(pipeline[at..].trim_matches(['"', '\'']), depth + 1)
            }
            [program, arguments @ ..] => prints_file(program, arguments),
            [] => false,
        }
    })
}

/// Returns true for words that precede the program name.
fn is_before_command(word: &str) -> bool {
    let is_assignment = word
        .split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_'));
    is_assignment
        || matches!(word, "sudo" | "time" | "do" | "then" | "else" | "{" | "(" | "!" | "command" | "env")
}

fn is_command(word: &str, names: &[&str]) -> bool {
    names.contains(&word.rsplit('/').next().unwrap_or(word))
}

fn prints_file(program: &str, arguments: &[&str]) -> bool {
    if arguments.iter().any(|word| word.contains("<<")) {
        return false;
    }
    let until_redirect = arguments.iter().position(|word| word.starts_with('>')).unwrap_or(arguments.len());
    let arguments = &arguments[..until_redirect];
    let operands = arguments
        .iter()
        .filter(|word| !word.starts_with(['-', '2', '<']) && word.parse::<u64>().is_err())
        .count();
    const READERS: [&str; 16] = [
        "cat",
        "bat",
        "batcat",
        "head",
        "tail",
        "nl",
        "less",
        "more",
        "tac",
        "xxd",
        "hexdump",
        "od",
        "strings",
        "type",
        "get-content",
        "gc",
    ];
    let name = program.to_ascii_lowercase();
    if is_command(&name, &READERS) {
        return operands > 0;
    }
    if is_command(&name, &["sed", "awk", "gawk", "perl"]) {
        return operands > 1;
    }
    if is_command(&name, &["git"]) {
        let mut words = arguments.iter().copied().filter(|word| !word.starts_with('-'));
        return match words.find(|word| matches!(*word, "show" | "cat-file")) {
            Some("show") => words.any(|word| word.contains(':')),
            found => found.is_some(),
        };
    }
    false
}

/// Parts of a command line that print: separated by `&&`, `||`, `;` and line ends, each up to its first pipe;
/// quotes are respected.
fn pipelines(command: &str) -> Vec<&str> {
    let bytes = command.as_bytes();
    let (mut parts, mut from, mut quote, mut in_pipe) = (Vec::new(), 0, None, false);
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'\\') => at += 1,
            (None, b';' | b'\n' | b'&' | b'|') => {
                if !in_pipe {
                    parts.push(&command[from..at]);
                }
                let is_double = bytes.get(at + 1) == Some(&byte);
                in_pipe = byte == b'|' && !is_double;
                from = at + 1 + usize::from(is_double);
                at = from - 1;
            }
            _ => {}
        }
        at += 1;
    }
    if !in_pipe && from < bytes.len() {
        parts.push(&command[from..]);
    }
    parts
}

/// Splits into words at white space; quoted ones stay whole.
fn words(part: &str) -> Vec<&str> {
    let (mut words, mut start, mut quote) = (Vec::new(), None, None);
    for (at, character) in part.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => {
                quote = Some(character);
                start = start.or(Some(at));
            }
            (None, _) if character.is_whitespace() => {
                if let Some(from) = start.take() {
                    words.push(&part[from..at]);
                }
            }
            _ => start = start.or(Some(at)),
        }
    }
    words.extend(start.map(|from| &part[from..]));
    words
}

/// Returns true if most lines have ascending numbers: a file with line numbers.
pub(super) fn is_numbered(lines: &[&str]) -> bool {
    let (mut said, mut in_order, mut previous) = (0_usize, 0_usize, None);
    for line in lines.iter().filter(|line| !line.trim().is_empty()) {
        said += 1;
        let line = line.trim_start();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let number = line[..digits].parse::<u64>().ok();
        let is_followed =
            line[digits..].is_empty() || line[digits..].starts_with(['\t', '→', ' ', ':', '|', '│']);
        let number = number.filter(|_| is_followed);
        if number.is_some()
            && (previous.is_none() || number == previous.map(|previous: u64| previous.wrapping_add(1)))
        {
            in_order += 1;
        }
        previous = number;
    }
    said >= 10 && in_order * 10 >= said * 8
}

/// Returns true if a text has document headings.
pub(super) fn is_document(lines: &[&str]) -> bool {
    lines.iter().filter(|line| line.starts_with("## ") || line.starts_with("### ")).nth(2).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_print_files() {
        let table = [
            ("cat src/lib.rs", true),
            ("cd /a && sed -n '1,200p' src/main.rs", true),
            ("bash -lc \"sed -n 1,20p a.rs\"", true),
            ("bash -lc 'cd x && cat a.rs'", true),
            ("nl -ba file.ts | sed -n 10,20p", true),
            ("head -n 50 a.txt", true),
            ("for f in a b; do cat $f; done", true),
            ("git show HEAD:src/lib.rs", true),
            ("sudo A=1 /bin/cat x", true),
            ("cargo test 2>&1 | tail -50", false),
            ("cargo build 2>&1 | sed -n '1,50p'", false),
            ("cat <<EOF > file", false),
            ("cat > file", false),
            ("git -C x cat-file -p HEAD:a", true),
            ("git show HEAD~1 --stat -p", false),
            ("git log --format='%h: %s'", false),
            ("echo 'cat x; cat y'", false),
            ("ls -lR", false),
            ("head", false),
            ("", false),
            ("'", false),
            ("&&;|\\", false),
        ];
        for (command, expected) in table {
            let asked = OutputOrigin { tool: "Bash", command: Some(command) };
            assert_eq!(reads_file(asked), expected, "{command}");
        }
    }

    #[test]
    fn tools_that_read_files() {
        let reads = |tool| reads_file(OutputOrigin { tool, command: None });
        for tool in
            ["Read", "read_file", "view", "mcp__fs__read_text_file", "NotebookRead", "ReadFile", "fs.read"]
        {
            assert!(reads(tool), "{tool}");
        }
        for tool in ["Bash", "Grep", "Task", "spread", "mcp__ci__get_log"] {
            assert!(!reads(tool), "{tool}");
        }
        assert!(is_shell(OutputOrigin { tool: "write_stdin", command: None }));
        assert!(!is_shell(OutputOrigin { tool: "Task", command: None }));
    }

    #[test]
    fn numbered_lines_are_a_file() {
        let file: Vec<String> = (7..40).map(|number| format!("{number:>6}→let x = {number};")).collect();
        assert!(is_numbered(&file.iter().map(String::as_str).collect::<Vec<_>>()));
        let hits: Vec<String> = (7..40).map(|number| format!("{}:let x;", number * 3)).collect();
        assert!(!is_numbered(&hits.iter().map(String::as_str).collect::<Vec<_>>()));
    }
}
