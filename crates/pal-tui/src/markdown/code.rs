//! Simple syntax highlighting: comments, strings, numbers and common keywords. It knows no grammar; a wrong guess is only a
//! wrong color.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::styled_text::wrap_anywhere;
use crate::theme::Theme;

/// Keywords of common languages.
const WORDS: &[&str] = &[
    "abstract",
    "and",
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "def",
    "default",
    "defer",
    "del",
    "do",
    "done",
    "elif",
    "else",
    "enum",
    "esac",
    "except",
    "export",
    "extends",
    "extern",
    "false",
    "fi",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "go",
    "if",
    "impl",
    "import",
    "in",
    "interface",
    "is",
    "lambda",
    "let",
    "loop",
    "match",
    "mod",
    "move",
    "mut",
    "new",
    "nil",
    "none",
    "not",
    "null",
    "or",
    "package",
    "pass",
    "private",
    "protected",
    "pub",
    "public",
    "raise",
    "ref",
    "return",
    "select",
    "self",
    "static",
    "struct",
    "super",
    "switch",
    "then",
    "this",
    "throw",
    "trait",
    "true",
    "try",
    "type",
    "undefined",
    "unsafe",
    "use",
    "var",
    "void",
    "where",
    "while",
    "with",
    "yield",
    "None",
    "True",
    "False",
    "Self",
];

/// Languages whose comments start with `#`.
const NUMBER_SIGN: &[&str] = &[
    "python",
    "py",
    "sh",
    "bash",
    "shell",
    "zsh",
    "toml",
    "yaml",
    "yml",
    "ruby",
    "rb",
    "perl",
    "make",
    "makefile",
    "dockerfile",
    "r",
    "conf",
    "ini",
];

/// Languages without highlighting.
const PLAIN: &[&str] = &["", "text", "txt", "plain", "markdown", "md", "console", "output", "log"];

/// An indented line of a code block.
pub(crate) fn code_line(line: &str, language: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let indent = [Span::raw("  ")];
    wrap_anywhere(&spans(line, language, theme), &indent, &indent, width.max(8))
}

/// Highlights a line of code.
pub(crate) fn spans(line: &str, language: &str, theme: Theme) -> Vec<Span<'static>> {
    if line.is_empty() {
        return Vec::new();
    }
    if language == "diff" || language == "patch" {
        return vec![Span::styled(line.to_owned(), diff_style(line, theme))];
    }
    if PLAIN.contains(&language) {
        return vec![Span::raw(line.to_owned())];
    }
    let mut spans = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (length, style) = token(rest, first, language, theme);
        let (text, after) = rest.split_at(length);
        match spans.last_mut() {
            Some(last) if is_same(last, style) => last.content.to_mut().push_str(text),
            _ => spans.push(Span::styled(text.to_owned(), style)),
        }
        rest = after;
    }
    spans
}

fn is_same(span: &Span<'static>, style: Style) -> bool {
    span.style == style
}

/// Length in bytes and style of the next token.
fn token(rest: &str, first: char, language: &str, theme: Theme) -> (usize, Style) {
    let takes_number_sign = NUMBER_SIGN.contains(&language);
    let is_comment = (takes_number_sign && first == '#')
        || (!takes_number_sign && rest.starts_with("//"))
        || (rest.starts_with("--") && matches!(language, "sql" | "lua" | "haskell"));
    if is_comment {
        return (rest.len(), theme.dim());
    }
    if matches!(first, '"' | '\'' | '`')
        && let Some(length) = quoted(rest, first)
    {
        return (length, theme.good());
    }
    if first.is_alphabetic() || first == '_' {
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let is_known = WORDS.contains(&&rest[..length]);
        return (length, if is_known { theme.keyword() } else { Style::new() });
    }
    if first.is_ascii_digit() {
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.'));
        return (length.unwrap_or(rest.len()), theme.warning());
    }
    (first.len_utf8(), Style::new())
}

/// Length in bytes of a string literal that ends in this line. A lone apostrophe is not a string.
fn quoted(rest: &str, mark: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        if is_escaped {
            is_escaped = false;
        } else if character == '\\' {
            is_escaped = true;
        } else if character == mark {
            return Some(at + mark.len_utf8());
        }
    }
    None
}

/// Style of a line in a unified diff.
fn diff_style(line: &str, theme: Theme) -> Style {
    match line.chars().next() {
        Some('+') => theme.good(),
        Some('-') => theme.bad(),
        Some('@') => theme.accent(),
        _ => Style::new(),
    }
}
