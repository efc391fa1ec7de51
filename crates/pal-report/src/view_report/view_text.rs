//! The report for people: 80 columns, one line per message, its decisions below.

use std::io::{self, Write};

use pal_model::text::{count_noun, group_digits};
use pal_model::{BlockType, ContentBlock, EntryBody, MessageOrigin};
use pal_view::{Category, Visibility, VisibleEntry, VisiblePart};

use super::decision_margin::describe_decision;
use super::{HiddenMessages, ViewReport};
use crate::text_layout::{DEFAULT_COLUMNS, clip_line, sanitize_lines, wrap_lines};
use crate::text_style::TextStyle;
use crate::units::format_tokens;

impl ViewReport<'_> {
    pub(super) fn print(&self, colors: TextStyle, out: &mut dyn Write) -> io::Result<()> {
        self.print_head(colors, out)?;
        let estimator = self.view.estimator();
        let mut stretch: Option<HiddenRange> = None;
        for (at, (shown, blocks)) in self.view.visible_blocks().enumerate() {
            let number = at + 1;
            if shown.visibility == Visibility::Visible {
                self.end_stretch(stretch.take(), colors, out)?;
                let tokens = estimator.total(shown.tokens);
                writeln!(out, "{}", self.line(number, &shown, &blocks, tokens, colors))?;
                if self.is_full {
                    print_whole(&blocks, out)?;
                }
                self.print_margin(&self.margin.decisions_for(&shown), colors, out)?;
                continue;
            }
            let goes_on = stretch.as_ref().is_some_and(|stretch| stretch.continues_with(self, &shown));
            if !goes_on {
                self.end_stretch(stretch.take(), colors, out)?;
                stretch = Some(HiddenRange::begin(self, number, &shown));
            }
            if let Some(stretch) = &mut stretch {
                stretch.last = number;
                stretch.bytes += shown.entry.line.len();
            }
        }
        self.end_stretch(stretch, colors, out)?;
        self.print_foot(colors, out)
    }

    fn print_head(&self, colors: TextStyle, out: &mut dyn Write) -> io::Result<()> {
        let size = self.view.size().tokens;
        let limits = &self.engine.limits;
        let left = limits.fill(size).percent_left;
        let title = format!("{} tokens for {}", group_digits(size), self.view.lens().card.model);
        writeln!(out, "{}", colors.bold(&clip_line(&title, DEFAULT_COLUMNS)))?;
        let known = match self.view.size().anchor {
            Some(_) => "from reported usage",
            None => "estimated",
        };
        writeln!(out, "{known}; window {}, {left:.0}% left", group_digits(limits.window))?;
        writeln!(out)?;
        writeln!(out, "{}", colors.bold(&format!("{:>5}  {:<9}  {:>7}", "#", "who", "tokens")))?;
        let ledger = self.view.breakdown();
        let of = |wanted: Category| {
            ledger
                .by_category
                .iter()
                .filter(|(category, _)| *category == wanted)
                .map(|(_, tokens)| tokens)
                .sum::<f64>()
        };
        let heads = [
            (Category::SystemPrompt, "system prompt"),
            (Category::ToolSchemas, "tool schemas"),
            (Category::UnseenPrefix, "prefix not in the transcript"),
        ];
        for (category, what) in heads {
            let tokens = of(category);
            if tokens > 0.0 {
                let line = message_line("", "prefix", &format_tokens(tokens), str::to_owned, what);
                writeln!(out, "{}", colors.dim(&line))?;
            }
        }
        match &self.hidden {
            Some(HiddenMessages { messages: 0, .. }) | None => {}
            Some(HiddenMessages { messages, by_people, bytes, why }) => {
                let line = format!(
                    "    …  {} {why} hidden, {} from people ({})",
                    count_noun(*messages, "message"),
                    group_digits(*by_people as u64),
                    kilobytes(*bytes)
                );
                writeln!(out, "{}", colors.dim(&line))?;
            }
        }
        Ok(())
    }

    fn line(
        &self,
        number: usize,
        shown: &VisibleEntry<'_>,
        blocks: &[ContentBlock],
        tokens: u64,
        colors: TextStyle,
    ) -> String {
        let who = message_author(number, shown);
        let paint = |text: &str| match who {
            "user" => colors.green(text),
            "assistant" => colors.cyan(text),
            "summary" | "restored" | "earlier" => colors.yellow(text),
            _ => text.to_owned(),
        };
        message_line(&number.to_string(), who, &group_digits(tokens), paint, &message_start(blocks))
    }

    fn print_margin(&self, lines: &[String], colors: TextStyle, out: &mut dyn Write) -> io::Result<()> {
        for line in lines {
            for (at, part) in wrap_lines(line, DEFAULT_COLUMNS - 9).iter().enumerate() {
                let sign = if at == 0 { "└" } else { " " };
                writeln!(out, "       {}", colors.yellow(&format!("{sign} {part}")))?;
            }
        }
        Ok(())
    }

    /// Writes one line for a hidden range.
    fn end_stretch(
        &self,
        stretch: Option<HiddenRange>,
        colors: TextStyle,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(stretch) = stretch else { return Ok(()) };
        let count = stretch.last - stretch.first + 1;
        let numbers = match count {
            1 => stretch.first.to_string(),
            _ => format!("{}–{}", stretch.first, stretch.last),
        };
        let line =
            format!("{numbers:>5}  {} hidden ({})", count_noun(count, "message"), kilobytes(stretch.bytes));
        writeln!(out, "{}", colors.dim(&line))?;
        if let Some(text) = &stretch.text {
            let estimator = self.view.estimator();
            let tokens = group_digits(estimator.total(estimator.text(text)));
            writeln!(out, "{}", message_line("", "fold", &tokens, |who| colors.yellow(who), text))?;
            if self.is_full {
                writeln!(out, "{}", indented(text))?;
            }
        }
        self.print_margin(&stretch.reasons, colors, out)
    }

    fn print_foot(&self, colors: TextStyle, out: &mut dyn Write) -> io::Result<()> {
        if !self.margin.others.is_empty() {
            writeln!(out, "\n{}", colors.bold("Other decisions"))?;
            for decision in &self.margin.others {
                print_item("", &describe_decision(decision), out)?;
            }
        }
        if !self.pins.is_empty() {
            let taken: u64 = self.pins.iter().map(|(_, tokens)| tokens).sum();
            let title =
                format!("Pins: {} of {} tokens", group_digits(taken), group_digits(self.engine.pin_budget()));
            writeln!(out, "\n{}", colors.bold(&title))?;
            for (at, (text, tokens)) in self.pins.iter().enumerate() {
                writeln!(
                    out,
                    "{:>5}  {:>7}  {}",
                    at + 1,
                    group_digits(*tokens),
                    clip_line(text, DEFAULT_COLUMNS - 16)
                )?;
            }
        }
        writeln!(out, "\n{}", colors.bold("Layer plan for the next request"))?;
        for layer in &self.layers {
            print_item(&format!("{}: ", layer.name), &format!("{} – {}", layer.would, layer.reason), out)?;
        }
        Ok(())
    }
}

/// A range of messages hidden for one reason.
struct HiddenRange {
    first: usize,
    last: usize,
    bytes: usize,
    showing: Visibility,
    reasons: Vec<String>,
    /// Text that the model reads instead.
    text: Option<String>,
}

impl HiddenRange {
    fn begin(page: &ViewReport<'_>, number: usize, shown: &VisibleEntry<'_>) -> HiddenRange {
        let decision = match shown.visibility {
            Visibility::Folded(fold) => page.margin.fold(fold),
            _ => page.margin.snip(shown.entry.id),
        };
        let text = match decision.map(|decision| &decision.kind) {
            Some(pal_model::DecisionKind::Fold { text, .. }) => Some(text.clone()),
            _ => None,
        };
        let reasons = decision.map(describe_decision).into_iter().collect();
        HiddenRange { first: number, last: number, bytes: 0, showing: shown.visibility, reasons, text }
    }

    /// Tells whether a message is hidden for the same reason.
    fn continues_with(&self, page: &ViewReport<'_>, shown: &VisibleEntry<'_>) -> bool {
        let reason =
            || page.margin.snip(shown.entry.id).map(describe_decision).into_iter().collect::<Vec<_>>();
        self.showing == shown.visibility
            && (shown.visibility != Visibility::Snipped || self.reasons == reason())
    }
}

/// Formats a message in one line: number, author, tokens, start of its text.
fn message_line(number: &str, who: &str, tokens: &str, paint: impl Fn(&str) -> String, text: &str) -> String {
    let (number, who, tokens) = (format!("{number:>5}  "), format!("{who:<9}"), format!("  {tokens:>7}  "));
    let taken = number.chars().count() + who.chars().count() + tokens.chars().count();
    let line =
        format!("{number}{}{tokens}{}", paint(&who), clip_line(text, DEFAULT_COLUMNS.saturating_sub(taken)));
    line.trim_end().to_owned()
}

fn kilobytes(bytes: usize) -> String {
    format!("{} KB", group_digits(bytes.div_ceil(1024) as u64))
}

/// Writes an item of a list, wrapped.
fn print_item(name: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    for (at, line) in wrap_lines(&format!("{name}{text}"), DEFAULT_COLUMNS - 4).iter().enumerate() {
        writeln!(out, "{}{line}", if at == 0 { "  " } else { "    " })?;
    }
    Ok(())
}

/// Returns the author of a message.
pub(super) fn message_author(number: usize, shown: &VisibleEntry<'_>) -> &'static str {
    match &shown.entry.body {
        EntryBody::Assistant(_) => "assistant",
        EntryBody::Attachment(_) => "reminder",
        EntryBody::User(user) => match user.origin {
            MessageOrigin::Person => "user",
            MessageOrigin::Tool | MessageOrigin::Synthetic => "tool",
            MessageOrigin::Agent => "agent",
        },
        EntryBody::Boundary(_) if shown.part == VisiblePart::Content => "summary",
        // Content restored by an earlier boundary stands first.
        EntryBody::Boundary(_) if number == 1 => "earlier",
        EntryBody::Boundary(_) => "restored",
        _ => "",
    }
}

/// Returns the start of a message as text.
pub(super) fn message_start(blocks: &[ContentBlock]) -> String {
    let mut text = String::new();
    for block in blocks {
        if !text.is_empty() {
            text.push_str("  ");
        }
        text.push_str(&block_text(block));
        if text.len() > 4 * DEFAULT_COLUMNS {
            break;
        }
    }
    text
}

fn block_text(block: &ContentBlock) -> String {
    match block.kind() {
        BlockType::Text => block.string("text").unwrap_or_default().into_owned(),
        BlockType::Thinking => format!("(thinking) {}", block.string("thinking").unwrap_or_default()),
        BlockType::ToolUse | BlockType::ServerToolUse => {
            let name = block.string("name").unwrap_or_default();
            format!("{name} {}", block.field("input").unwrap_or_default())
        }
        BlockType::ToolResult => {
            block.content().blocks().iter().map(block_text).collect::<Vec<_>>().join("\n")
        }
        kind => format!("[{}]", kind.name().unwrap_or("unknown block")),
    }
}

fn print_whole(blocks: &[ContentBlock], out: &mut dyn Write) -> io::Result<()> {
    for block in blocks {
        writeln!(out, "{}", indented(&block_text(block)))?;
    }
    Ok(())
}

fn indented(text: &str) -> String {
    let text = sanitize_lines(text.trim_end());
    text.lines().map(|line| format!("       │ {line}")).collect::<Vec<_>>().join("\n")
}
