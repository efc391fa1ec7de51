//! The page as people read it: eighty columns, one line a message, its margin below.

use std::io::Write;

use pal_model::{Block, BlockType, Body, Origin};
use pal_view::{Category, Showing, Shown, ShownPart};

use super::margin::words;
use super::{Hidden, Page};
use crate::colour::{COLUMNS, Colours, clipped, wrapped};
use crate::failure::Failure;
use crate::table::{counted, harmless_lines, rounded, thousands};

impl Page<'_> {
    pub(super) fn print(&self, colours: Colours, out: &mut dyn Write) -> Result<(), Failure> {
        self.print_head(colours, out)?;
        let estimator = self.view.estimator();
        let mut stretch: Option<Stretch> = None;
        for (at, (shown, blocks)) in self.view.seen().enumerate() {
            let number = at + 1;
            if shown.showing == Showing::Itself {
                self.end_stretch(stretch.take(), colours, out)?;
                let tokens = estimator.total(shown.tokens);
                writeln!(out, "{}", self.line(number, &shown, &blocks, tokens, colours))?;
                if self.is_full {
                    print_whole(&blocks, out)?;
                }
                self.print_margin(&self.margin.beside(&shown), colours, out)?;
                continue;
            }
            let goes_on = stretch.as_ref().is_some_and(|stretch| stretch.goes_on(self, &shown));
            if !goes_on {
                self.end_stretch(stretch.take(), colours, out)?;
                stretch = Some(Stretch::begin(self, number, &shown));
            }
            if let Some(stretch) = &mut stretch {
                stretch.last = number;
                stretch.bytes += shown.entry.line.len();
            }
        }
        self.end_stretch(stretch, colours, out)?;
        self.print_foot(colours, out)
    }

    fn print_head(&self, colours: Colours, out: &mut dyn Write) -> Result<(), Failure> {
        let size = self.view.size().tokens;
        let limits = &self.engine.limits;
        let left = limits.fill(size).percent_left;
        let title = format!("{} tokens for {}", thousands(size), self.view.lens().card.model);
        writeln!(out, "{}", colours.bold(&clipped(&title, COLUMNS)))?;
        let known = match self.view.size().anchor {
            Some(_) => "from reported usage",
            None => "estimated",
        };
        writeln!(out, "{known}; window {}, {left:.0} % left", thousands(limits.window))?;
        writeln!(out)?;
        writeln!(out, "{}", colours.bold(&format!("{:>5}  {:<9}  {:>7}", "#", "who", "tokens")))?;
        let ledger = self.view.ledger();
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
            (Category::UnseenPrefix, "a prefix that the transcript does not hold"),
        ];
        for (category, what) in heads {
            let tokens = of(category);
            if tokens > 0.0 {
                let line = gutter("", "prefix", &rounded(tokens), str::to_owned, what);
                writeln!(out, "{}", colours.dim(&line))?;
            }
        }
        match &self.hidden {
            Some(Hidden { messages: 0, .. }) | None => {}
            Some(Hidden { messages, by_people, bytes, why }) => {
                let line = format!(
                    "    …  {} {why} hidden, {} of people ({})",
                    counted(*messages, "message"),
                    thousands(*by_people as u64),
                    kilobytes(*bytes)
                );
                writeln!(out, "{}", colours.dim(&line))?;
            }
        }
        Ok(())
    }

    fn line(
        &self,
        number: usize,
        shown: &Shown<'_>,
        blocks: &[Block],
        tokens: u64,
        colours: Colours,
    ) -> String {
        let who = who(number, shown);
        let paint = |text: &str| match who {
            "user" => colours.green(text),
            "assistant" => colours.cyan(text),
            "summary" | "restored" | "earlier" => colours.yellow(text),
            _ => text.to_owned(),
        };
        gutter(&number.to_string(), who, &thousands(tokens), paint, &beginning(blocks))
    }

    fn print_margin(&self, lines: &[String], colours: Colours, out: &mut dyn Write) -> Result<(), Failure> {
        for line in lines {
            for (at, part) in wrapped(line, COLUMNS - 9).iter().enumerate() {
                let sign = if at == 0 { "└" } else { " " };
                writeln!(out, "       {}", colours.yellow(&format!("{sign} {part}")))?;
            }
        }
        Ok(())
    }

    /// One line for a stretch that does not show itself.
    fn end_stretch(
        &self,
        stretch: Option<Stretch>,
        colours: Colours,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let Some(stretch) = stretch else { return Ok(()) };
        let count = stretch.last - stretch.first + 1;
        let numbers = match count {
            1 => stretch.first.to_string(),
            _ => format!("{}–{}", stretch.first, stretch.last),
        };
        let line =
            format!("{numbers:>5}  {} hidden ({})", counted(count, "message"), kilobytes(stretch.bytes));
        writeln!(out, "{}", colours.dim(&line))?;
        if let Some(text) = &stretch.text {
            let estimator = self.view.estimator();
            let tokens = thousands(estimator.total(estimator.text(text)));
            writeln!(out, "{}", gutter("", "fold", &tokens, |who| colours.yellow(who), text))?;
            if self.is_full {
                writeln!(out, "{}", indented(text))?;
            }
        }
        self.print_margin(&stretch.reasons, colours, out)
    }

    fn print_foot(&self, colours: Colours, out: &mut dyn Write) -> Result<(), Failure> {
        if !self.margin.others.is_empty() {
            writeln!(out, "\n{}", colours.bold("Other decisions"))?;
            for decision in &self.margin.others {
                print_item("", &words(decision), out)?;
            }
        }
        if !self.pins.is_empty() {
            let taken: u64 = self.pins.iter().map(|(_, tokens)| tokens).sum();
            let title =
                format!("Pins: {} of {} tokens", thousands(taken), thousands(self.engine.pin_budget()));
            writeln!(out, "\n{}", colours.bold(&title))?;
            for (at, (text, tokens)) in self.pins.iter().enumerate() {
                writeln!(out, "{:>5}  {:>7}  {}", at + 1, thousands(*tokens), clipped(text, COLUMNS - 16))?;
            }
        }
        writeln!(out, "\n{}", colours.bold("What each layer would do before the next request"))?;
        for layer in &self.layers {
            print_item(&format!("{}: ", layer.name), &format!("{} – {}", layer.would, layer.reason), out)?;
        }
        Ok(())
    }
}

/// A stretch of messages that do not show themselves, for one reason.
struct Stretch {
    first: usize,
    last: usize,
    bytes: usize,
    showing: Showing,
    reasons: Vec<String>,
    /// What the model reads instead.
    text: Option<String>,
}

impl Stretch {
    fn begin(page: &Page<'_>, number: usize, shown: &Shown<'_>) -> Stretch {
        let decision = match shown.showing {
            Showing::Folded(fold) => page.margin.fold(fold),
            _ => page.margin.snip(shown.entry.id),
        };
        let text = match decision.map(|decision| &decision.kind) {
            Some(pal_model::DecisionKind::Fold { text, .. }) => Some(text.clone()),
            _ => None,
        };
        let reasons = decision.map(words).into_iter().collect();
        Stretch { first: number, last: number, bytes: 0, showing: shown.showing, reasons, text }
    }

    /// Whether a message hides for the same reason.
    fn goes_on(&self, page: &Page<'_>, shown: &Shown<'_>) -> bool {
        let reason = || page.margin.snip(shown.entry.id).map(words).into_iter().collect::<Vec<_>>();
        self.showing == shown.showing && (shown.showing != Showing::Snipped || self.reasons == reason())
    }
}

/// A message in one line: its number, who speaks, its tokens, how it begins.
fn gutter(number: &str, who: &str, tokens: &str, paint: impl Fn(&str) -> String, text: &str) -> String {
    let (number, who, tokens) = (format!("{number:>5}  "), format!("{who:<9}"), format!("  {tokens:>7}  "));
    let taken = number.chars().count() + who.chars().count() + tokens.chars().count();
    let line = format!("{number}{}{tokens}{}", paint(&who), clipped(text, COLUMNS.saturating_sub(taken)));
    line.trim_end().to_owned()
}

fn kilobytes(bytes: usize) -> String {
    format!("{} KB", thousands(bytes.div_ceil(1024) as u64))
}

/// An item of a list, broken into lines.
fn print_item(name: &str, text: &str, out: &mut dyn Write) -> Result<(), Failure> {
    for (at, line) in wrapped(&format!("{name}{text}"), COLUMNS - 4).iter().enumerate() {
        writeln!(out, "{}{line}", if at == 0 { "  " } else { "    " })?;
    }
    Ok(())
}

/// Who speaks in the message with this number.
pub(super) fn who(number: usize, shown: &Shown<'_>) -> &'static str {
    match &shown.entry.body {
        Body::Assistant(_) => "assistant",
        Body::Attachment(_) => "reminder",
        Body::User(user) => match user.origin {
            Origin::Person => "user",
            Origin::Tool | Origin::Synthetic => "tool",
            Origin::Agent => "agent",
        },
        Body::Boundary(_) if shown.part == ShownPart::Said => "summary",
        // What an earlier boundary showed stands before everything else.
        Body::Boundary(_) if number == 1 => "earlier",
        Body::Boundary(_) => "restored",
        _ => "",
    }
}

/// The blocks of a message as text, for its beginning.
pub(super) fn beginning(blocks: &[Block]) -> String {
    let mut text = String::new();
    for block in blocks {
        if !text.is_empty() {
            text.push_str("  ");
        }
        text.push_str(&spelled(block));
        if text.len() > 4 * COLUMNS {
            break;
        }
    }
    text
}

fn spelled(block: &Block) -> String {
    match block.kind() {
        BlockType::Text => block.string("text").unwrap_or_default().into_owned(),
        BlockType::Thinking => format!("(thinking) {}", block.string("thinking").unwrap_or_default()),
        BlockType::ToolUse | BlockType::ServerToolUse => {
            let name = block.string("name").unwrap_or_default();
            format!("{name} {}", block.field("input").unwrap_or_default())
        }
        BlockType::ToolResult => block.content().blocks().iter().map(spelled).collect::<Vec<_>>().join("\n"),
        kind => format!("[{}]", kind.name().unwrap_or("a block of another kind")),
    }
}

fn print_whole(blocks: &[Block], out: &mut dyn Write) -> Result<(), Failure> {
    for block in blocks {
        writeln!(out, "{}", indented(&spelled(block)))?;
    }
    Ok(())
}

fn indented(text: &str) -> String {
    let text = harmless_lines(text.trim_end());
    text.lines().map(|line| format!("       │ {line}")).collect::<Vec<_>>().join("\n")
}
