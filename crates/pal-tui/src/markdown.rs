//! Rendering of Markdown for a terminal of any width.

mod code;
mod table;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::styled_text::{sanitize, wrap, wrap_anywhere};
use crate::theme::Theme;
use table::MarkdownTable;

pub(crate) use code::{code_line, spans as highlight};

/// Enabled Markdown extensions.
pub(crate) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Renders Markdown in lines of at most `width` columns.
pub fn render_markdown(text: &str, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let text = sanitize(text);
    let mut page = MarkdownPage::new(width, theme);
    for event in Parser::new_ext(&text, options()) {
        page.event(event);
    }
    page.flush();
    page.lines
}

/// Prefix of the lines in a block.
struct BlockMargin {
    /// Prefix of the first line, used once.
    first: Option<Span<'static>>,
    rest: Span<'static>,
}

struct MarkdownPage {
    lines: Vec<Line<'static>>,
    width: usize,
    theme: Theme,
    spans: Vec<Span<'static>>,
    styles: Vec<Style>,
    margins: Vec<BlockMargin>,
    /// Next number of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// Language and text of the open code block.
    code: Option<(String, String)>,
    table: Option<MarkdownTable>,
    /// Targets of open links, innermost last.
    links: Vec<String>,
    /// A block has ended, so a blank line precedes the next one.
    is_parted: bool,
}

impl MarkdownPage {
    fn new(width: usize, theme: Theme) -> MarkdownPage {
        MarkdownPage {
            lines: Vec::new(),
            width: width.max(8),
            theme,
            spans: Vec::new(),
            styles: vec![Style::new()],
            margins: Vec::new(),
            lists: Vec::new(),
            code: None,
            table: None,
            links: Vec::new(),
            is_parted: false,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.push(&text, self.style().patch(self.theme.code())),
            Event::Html(text) | Event::InlineHtml(text) => self.text(text.trim_end_matches('\n')),
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.text("\n"),
            Event::Rule => {
                self.part();
                let style = self.theme.dim();
                self.line(&[Span::styled("─".repeat(self.width.min(24)), style)]);
                self.is_parted = true;
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.text(&format!("[{name}]")),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.part(),
            Tag::Heading { level, .. } => {
                self.part();
                let strong = self.theme.strong();
                self.styles.push(if level <= HeadingLevel::H2 {
                    strong.patch(self.theme.accent())
                } else {
                    strong
                });
            }
            Tag::BlockQuote(_) => {
                self.part();
                let bar = Span::styled("│ ", self.theme.dim());
                self.margins.push(BlockMargin { first: None, rest: bar });
                self.styles.push(self.style().patch(self.theme.dim()));
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                self.part();
                let language = match kind {
                    pulldown_cmark::CodeBlockKind::Fenced(language) => language.to_lowercase(),
                    pulldown_cmark::CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(start) => {
                self.flush();
                // A list inside of an item follows it closely.
                if self.lists.is_empty() {
                    self.part();
                }
                self.is_parted = false;
                self.lists.push(start);
            }
            Tag::Item => self.item(),
            Tag::Table(alignments) => {
                self.part();
                self.table = Some(MarkdownTable::new(alignments));
            }
            Tag::TableCell => self.spans.clear(),
            Tag::Emphasis => self.styles.push(self.style().patch(self.theme.leaning())),
            Tag::Strong => self.styles.push(self.style().patch(self.theme.strong())),
            Tag::Strikethrough => self.styles.push(self.style().patch(self.theme.struck())),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.to_string());
                self.styles.push(self.style().patch(self.theme.accent()));
            }
            _ => {}
        }
    }

    fn item(&mut self) {
        self.flush();
        self.is_parted = false;
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => String::from("• "),
        };
        let rest = Span::raw(" ".repeat(mark.chars().count()));
        self.margins.push(BlockMargin { first: Some(Span::styled(mark, self.theme.accent())), rest });
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.flush();
                self.is_parted = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.is_parted = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.margins.pop();
                self.styles.pop();
                self.is_parted = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
                self.is_parted = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                // An item without words still has its mark.
                if self.margins.last().is_some_and(|margin| margin.first.is_some()) {
                    self.line(&[]);
                }
                self.margins.pop();
                self.is_parted = false;
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.spans);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let lines = table.lines(self.room(), self.theme);
                    lines.into_iter().for_each(|line| self.line(&line.spans));
                }
                self.is_parted = true;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                self.end_link();
            }
            _ => {}
        }
    }

    /// Adds the target after a link's text, unless the text is the target.
    fn end_link(&mut self) {
        let Some(address) = self.links.pop() else { return };
        let is_said = self.spans.last().is_some_and(|span| span.content.contains(address.as_str()));
        if !is_said && !address.is_empty() {
            self.push(&format!(" ({address})"), self.theme.dim());
        }
    }

    fn end_code(&mut self) {
        let Some((language, text)) = self.code.take() else { return };
        for line in text.lines() {
            let spans = code::spans(line, &language, self.theme);
            let (first, rest) = self.beginning();
            let indent = [Span::raw("  ")];
            let lines = wrap_anywhere(
                &spans,
                &[first.as_slice(), &indent].concat(),
                &[rest.as_slice(), &indent].concat(),
                self.width,
            );
            self.lines.extend(lines);
        }
        self.is_parted = true;
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some((_, code)) => code.push_str(text),
            None => self.push(text, self.style()),
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        self.spans.push(Span::styled(text.to_owned(), style));
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    /// Adds a blank line if a block has ended.
    fn part(&mut self) {
        self.flush();
        if std::mem::take(&mut self.is_parted) && !self.lines.is_empty() {
            let (_, rest) = self.beginning_again();
            self.lines.push(Line::from(rest));
        }
    }

    /// Turns pending spans into lines.
    fn flush(&mut self) {
        if self.spans.is_empty() {
            return;
        }
        let spans = std::mem::take(&mut self.spans);
        self.line(&spans);
    }

    fn line(&mut self, spans: &[Span<'static>]) {
        let (first, rest) = self.beginning();
        self.lines.extend(wrap(spans, &first, &rest, self.width));
    }

    /// Columns inside all margins.
    fn room(&self) -> usize {
        let taken: usize = self.margins.iter().map(|margin| margin.rest.content.chars().count()).sum();
        self.width.saturating_sub(taken).max(8)
    }

    /// Prefix of the next line and of those after it.
    fn beginning(&mut self) -> (Vec<Span<'static>>, Vec<Span<'static>>) {
        let first = self.margins.iter_mut().map(|margin| margin.first.take().unwrap_or(margin.rest.clone()));
        let first = first.collect();
        (first, self.margins.iter().map(|margin| margin.rest.clone()).collect())
    }

    /// The same without consuming item markers.
    fn beginning_again(&self) -> (Vec<Span<'static>>, Vec<Span<'static>>) {
        let rest: Vec<Span<'static>> = self.margins.iter().map(|margin| margin.rest.clone()).collect();
        (rest.clone(), rest)
    }
}
