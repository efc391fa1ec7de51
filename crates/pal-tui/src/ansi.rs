//! Conversion of text with ANSI colors to styled lines.

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::styled_text::sanitize;

/// Parses text with ANSI color codes. Any other escape sequence is shown, not executed.
pub(crate) fn lines(text: &str) -> Vec<Line<'static>> {
    let mut style = Style::new();
    text.lines().map(|line| spans(line, &mut style)).collect()
}

fn spans(line: &str, style: &mut Style) -> Line<'static> {
    let mut spans = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("\u{1b}[") {
        if at > 0 {
            spans.push(Span::styled(sanitize(&rest[..at]), *style));
        }
        let after = &rest[at + 2..];
        let end = after.find(|character: char| character.is_ascii_alphabetic());
        match end {
            Some(end) if after.as_bytes()[end] == b'm' => {
                *style = styled(*style, &after[..end]);
                rest = &after[end + 1..];
            }
            _ => {
                spans.push(Span::styled("·[", *style));
                rest = after;
            }
        }
    }
    if !rest.is_empty() {
        spans.push(Span::styled(sanitize(rest), *style));
    }
    Line::from(spans)
}

/// Applies color codes to a style.
fn styled(mut style: Style, codes: &str) -> Style {
    let mut codes = codes.split(';').map(|code| code.parse::<u8>().unwrap_or(0));
    while let Some(code) = codes.next() {
        style = match code {
            0 => Style::new(),
            1 => style.add_modifier(Modifier::BOLD),
            2 => style.add_modifier(Modifier::DIM),
            3 => style.add_modifier(Modifier::ITALIC),
            4 => style.add_modifier(Modifier::UNDERLINED),
            7 => style.add_modifier(Modifier::REVERSED),
            22 => style.remove_modifier(Modifier::BOLD | Modifier::DIM),
            30..=37 => style.fg(Color::Indexed(code - 30)),
            90..=97 => style.fg(Color::Indexed(code - 82)),
            40..=47 => style.bg(Color::Indexed(code - 40)),
            100..=107 => style.bg(Color::Indexed(code - 92)),
            38 | 48 => {
                let color = match (codes.next(), codes.next()) {
                    (Some(5), Some(index)) => Color::Indexed(index),
                    (Some(2), Some(red)) => {
                        Color::Rgb(red, codes.next().unwrap_or(0), codes.next().unwrap_or(0))
                    }
                    _ => Color::Reset,
                };
                if code == 38 { style.fg(color) } else { style.bg(color) }
            }
            39 => style.fg(Color::Reset),
            49 => style.bg(Color::Reset),
            _ => style,
        };
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_are_kept_and_other_escapes_are_shown() {
        let read = lines("a\u{1b}[1;36mb\u{1b}[0mc\u{1b}[2Jd\n\u{1b}[38;5;208me");
        let texts: Vec<String> = read.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["abc·[2Jd", "e"]);
        assert_eq!(read[0].spans[1].style, Style::new().add_modifier(Modifier::BOLD).fg(Color::Indexed(6)));
        assert_eq!(read[0].spans[2].style, Style::new());
        assert_eq!(read[1].spans[0].style.fg, Some(Color::Indexed(208)));
    }
}
