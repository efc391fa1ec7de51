//! The document that a user reads before they allow a call: the whole call, its marked risks, and the rule.
//!
//! Nothing is cut. Text of the model has a gutter, so that it cannot pass for program output; control and invisible characters
//! are spelled out.

use std::path::Path;

use pal_events::{ConsentMark, PermissionQuestion};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};
use serde_json::Value;

use crate::diff::full_diff;
use crate::markdown::render_markdown;
use crate::styled_text::{line_columns, spell_out, wrap, wrap_anywhere};
use crate::theme::Theme;

/// Maximum size of an overwritten file that is diffed, in bytes.
const PRIOR_BYTES_MAX: u64 = 256 << 10;

/// Minimum width for a gutter, in columns.
const GUTTER_COLUMNS_MIN: usize = 20;

/// Current content of a file that a call overwrites.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PriorContent {
    /// No such file, or a relative path that cannot be resolved here.
    None,
    /// Text of the file.
    Text(String),
    /// Size in bytes of a file that is too large or not text.
    Other(u64),
}

impl PriorContent {
    /// Reads the file that a call changes.
    pub(crate) fn read(asked: &PermissionQuestion) -> PriorContent {
        let input: Value = serde_json::from_str(&asked.input).unwrap_or(Value::Null);
        let path = input.get("file_path").and_then(Value::as_str);
        let path = path.map(|path| Path::new(&asked.directory).join(path));
        let is_change = matches!(asked.tool.as_str(), "Write" | "Edit" | "MultiEdit");
        // Without a working directory, a relative path could be another file.
        let Some(path) = path.filter(|path| is_change && path.is_absolute()) else {
            return PriorContent::None;
        };
        match path.metadata() {
            Ok(file) if file.is_file() && file.len() <= PRIOR_BYTES_MAX => {
                std::fs::read_to_string(&path).map_or(PriorContent::Other(file.len()), PriorContent::Text)
            }
            Ok(file) if file.is_file() => PriorContent::Other(file.len()),
            _ => PriorContent::None,
        }
    }
}

/// Builds the document in lines of at most `width` columns.
pub(crate) fn consent_document(
    asked: &PermissionQuestion,
    prior: &PriorContent,
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let tool = one_line(&asked.tool);
    let title = match &asked.agent {
        None if tool == "ExitPlanMode" => String::from("The agent has a plan and asks to carry it out"),
        Some(agent) => format!("{tool} of the agent {} wants your consent", one_line(agent)),
        None => format!("{tool} wants your consent"),
    };
    let strong = theme.warning().patch(theme.strong());
    let mut lines = wrap(&[Span::styled(title, strong)], &[], &[Span::raw("  ")], width);
    lines.extend(call_lines(asked, prior, width, theme));
    lines.extend(mark_lines(asked, width, theme));
    let indent = [Span::raw("  ")];
    if tool == "ExitPlanMode" {
        return lines.into_iter().flat_map(|line| fitted(line, width)).collect();
    }
    let why = [Span::styled(format!("Why you are asked: {}", one_line(&asked.why)), theme.dim())];
    lines.extend(wrap(&why, &indent, &indent, width));
    lines.into_iter().flat_map(|line| fitted(line, width)).collect()
}

/// Splits a line that is too wide: the screen would cut it.
fn fitted(line: Line<'static>, width: usize) -> Vec<Line<'static>> {
    match line_columns(&line) <= width {
        true => vec![line],
        false => wrap_anywhere(&line.spans, &[], &[], width),
    }
}

/// The rule that "always" stores, verbatim.
pub(crate) fn rule_lines(asked: &PermissionQuestion, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let indent = [Span::raw("  ")];
    let head = [Span::styled("\"Always\" stores this rule for the project:", theme.dim())];
    let mut lines = wrap(&head, &indent, &indent, width);
    lines.extend(block(&asked.rule, &[], width, theme));
    lines.into_iter().flat_map(|line| fitted(line, width)).collect()
}

/// A plan, rendered as Markdown; control and invisible characters are spelled out.
pub(crate) fn plan_lines(plan: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let indented = |line: Line<'static>| {
        let mut spans = vec![Span::raw("  ")];
        spans.extend(line.spans);
        Line::from(spans)
    };
    let room = width.saturating_sub(2).max(1);
    render_markdown(&spell_out(plan), room, theme).into_iter().map(indented).collect()
}

/// The call: its command, diff or plan, and its remaining input.
fn call_lines(
    asked: &PermissionQuestion,
    prior: &PriorContent,
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let parsed: Result<Value, _> = serde_json::from_str(&asked.input);
    let Ok(input @ Value::Object(_)) = parsed else { return block(&asked.input, &[], width, theme) };
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    let mut lines = Vec::new();
    let shown: &[&str] = match (text("command"), text("file_path").or(text("notebook_path")), text("plan")) {
        (Some(command), _, _) if asked.tool == "Bash" => {
            lines.extend(block(command, &asked.marks, width, theme));
            &["command"]
        }
        (_, Some(path), _) if is_change(&asked.tool) => {
            lines.extend(block(path, &asked.marks, width, theme));
            lines.extend(change_lines(asked, &input, prior, width, theme));
            &["file_path", "notebook_path", "old_string", "new_string", "edits", "content", "new_source"]
        }
        (_, _, Some(plan)) if asked.tool == "ExitPlanMode" => {
            lines.push(Line::default());
            lines.extend(plan_lines(plan, width, theme));
            lines.push(Line::default());
            &["plan"]
        }
        _ => &[],
    };
    lines.extend(field_lines(&input, shown, width, theme));
    lines
}

fn is_change(tool: &str) -> bool {
    matches!(tool, "Edit" | "MultiEdit" | "Write" | "NotebookEdit")
}

fn change_lines(
    asked: &PermissionQuestion,
    input: &Value,
    prior: &PriorContent,
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let before = match prior {
        PriorContent::Text(text) => Some(text.as_str()),
        PriorContent::None | PriorContent::Other(_) => None,
    };
    let note = match prior {
        _ if asked.tool != "Write" => String::new(),
        PriorContent::Text(text) if text.is_empty() => "  It replaces an empty file:".to_owned(),
        PriorContent::Text(_) => "  It replaces the file; this is what changes:".to_owned(),
        PriorContent::Other(bytes) => {
            format!(
                "  It replaces a file of {bytes} bytes, too large or no text to compare with; its new content:"
            )
        }
        PriorContent::None => "  Its content:".to_owned(),
    };
    let mut lines = Vec::new();
    if !note.is_empty() {
        lines.extend(wrap(&[Span::styled(note, theme.dim())], &[], &[Span::raw("  ")], width));
    }
    let changes = full_diff(&asked.tool, input, before, width, theme);
    if changes.is_empty() {
        let is_same = before.is_some_and(|text| !text.is_empty());
        let note = if is_same { "  nothing: the content is the same" } else { "  (nothing: it is empty)" };
        lines.push(Line::from(Span::styled(note, theme.warning())));
    }
    lines.extend(changes);
    // `replace_all` decides how often a change applies, and the diff does not show it.
    let edits = input.get("edits").and_then(Value::as_array).into_iter().flatten();
    for (at, edit) in edits.enumerate() {
        if edit.get("replace_all").is_some_and(|all| all != &Value::Bool(false)) {
            lines.push(Line::from(Span::styled(
                format!("  change {} replaces every occurrence", at + 1),
                theme.warning(),
            )));
        }
    }
    lines
}

/// Input fields in full, except those already shown.
fn field_lines(input: &Value, shown: &[&str], width: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let fields = input.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| !shown.contains(&name.as_str())) {
        let head = Span::styled(format!("{}: ", one_line(name)), theme.accent());
        let indent = [Span::raw("  ")];
        let text = match value {
            Value::String(text) => text.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_default(),
        };
        if text.contains('\n') {
            lines.extend(wrap_anywhere(&[head], &indent, &indent, width));
            lines.extend(block(&text, &[], width, theme));
        } else {
            let text = Span::raw(spell_out(&text));
            lines.extend(wrap_anywhere(&[head, text], &indent, &[Span::raw("    ┊ ")], width));
        }
    }
    lines
}

/// Verbatim text behind a gutter, with styled marks.
fn block(text: &str, marks: &[ConsentMark], width: usize, theme: Theme) -> Vec<Line<'static>> {
    let levels = levels(text, marks);
    let count = text.split('\n').count();
    let digits = if count > 1 { count.to_string().len() } else { 0 };
    let has_gutter = width >= GUTTER_COLUMNS_MIN + digits;
    let mut lines = Vec::new();
    let mut start = 0;
    for (at, line) in text.split('\n').enumerate() {
        let number = if digits > 0 { format!("{:>digits$}", at + 1) } else { String::new() };
        let gutter = |text: String| match has_gutter {
            true => vec![Span::styled(text, theme.dim())],
            false => Vec::new(),
        };
        let first = gutter(format!("  {number}│ "));
        let rest = gutter(format!("  {}┊ ", " ".repeat(digits)));
        let mut spans: Vec<Span<'static>> = Vec::new();
        for (offset, character) in line.char_indices() {
            let level = levels.get(start + offset).copied().unwrap_or(0);
            let piece = spell_out(character.encode_utf8(&mut [0; 4]));
            let is_spelt = piece.chars().ne([character]) && character != '\t';
            let style = style_of(if is_spelt { DANGER } else { level }, theme);
            match spans.last_mut() {
                Some(last) if last.style == style => last.content.to_mut().push_str(&piece),
                _ => spans.push(Span::styled(piece, style)),
            }
        }
        start += line.len() + 1;
        lines.extend(wrap_anywhere(&spans, &first, &rest, width));
    }
    lines
}

/// Levels of marked bytes; 0 is unmarked.
const NOTICE: u8 = 1;
const DANGER: u8 = 2;

fn levels(text: &str, marks: &[ConsentMark]) -> Vec<u8> {
    let mut levels = vec![0; text.len()];
    for mark in marks {
        let level = if mark.is_dangerous { DANGER } else { NOTICE };
        // A mark over several lines would hide those inside it; it is described in text.
        let is_one_line = text.get(mark.start..mark.end).is_some_and(|part| !part.contains('\n'));
        if let Some(marked) = levels.get_mut(mark.start..mark.end).filter(|_| is_one_line) {
            marked.iter_mut().for_each(|known| *known = level.max(*known));
        }
    }
    levels
}

fn style_of(level: u8, theme: Theme) -> Style {
    match level {
        DANGER => theme.bad().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
        NOTICE => theme.warning().add_modifier(Modifier::UNDERLINED),
        _ => Style::new(),
    }
}

/// Descriptions of the marks, dangerous ones first, without duplicates.
fn mark_lines(asked: &PermissionQuestion, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let sentences = asked.mark_sentences();
    let mut lines = Vec::new();
    if !sentences.is_empty() {
        lines.push(Line::from(Span::styled("  Look at this before you allow it:", theme.strong())));
    }
    for sentence in sentences {
        let (sign, style) =
            if sentence.is_dangerous { ("  ! ", theme.bad()) } else { ("  · ", theme.warning()) };
        let text = [Span::raw(one_line(&sentence.text))];
        lines.extend(wrap(&text, &[Span::styled(sign, style)], &[Span::raw("    ")], width));
    }
    lines
}

/// Joins text into one line, with invisible characters spelled out.
fn one_line(text: &str) -> String {
    pal_model::text::one_line(&spell_out(text))
}
