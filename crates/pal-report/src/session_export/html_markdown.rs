//! Markdown of the model as HTML. Only the structure becomes markup: text is escaped, raw HTML is shown as text, and
//! pictures behind addresses are named instead of fetched.

use std::fmt::Write;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::html_text::escaped;

/// Renders Markdown as HTML.
pub(super) fn render(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = MarkdownPage::default();
    for event in Parser::new_ext(text, options) {
        page.event(event);
    }
    page.html
}

#[derive(Default)]
struct MarkdownPage {
    html: String,
    /// Alignments of the current table.
    columns: Vec<Alignment>,
    /// Column of the current table cell.
    column: usize,
    is_head: bool,
    /// Addresses of open links; none for those that are not shown as links.
    links: Vec<Option<String>>,
    /// Addresses of open pictures.
    pictures: Vec<String>,
}

impl MarkdownPage {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.html.push_str(&escaped(&text));
            }
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::Code(text) => {
                self.push(&format!("<code>{}</code>", escaped(&text)));
            }
            Event::SoftBreak => self.push("\n"),
            Event::HardBreak => self.push("<br>\n"),
            Event::Rule => self.push("<hr>\n"),
            Event::TaskListMarker(is_done) => self.push(if is_done { "☑ " } else { "☐ " }),
            Event::FootnoteReference(name) => self.push(&format!("[{}]", escaped(&name))),
        }
    }

    fn push(&mut self, html: &str) {
        self.html.push_str(html);
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.push("<p>"),
            // Headings of the page itself are above those of a message.
            Tag::Heading { level, .. } => self.push(&format!("<h{}>", level_below(level))),
            Tag::BlockQuote(_) => self.push("<blockquote>"),
            Tag::CodeBlock(kind) => {
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',']).next().unwrap_or_default(),
                    CodeBlockKind::Indented => "",
                };
                match language {
                    "" => self.push("<pre>"),
                    "diff" | "patch" => self.push("<pre class=\"patch\">"),
                    language => self.push(&format!("<pre title=\"{}\">", escaped(language))),
                }
            }
            Tag::List(None) => self.push("<ul>\n"),
            Tag::List(Some(1)) => self.push("<ol>\n"),
            Tag::List(Some(first)) => self.push(&format!("<ol start=\"{first}\">\n")),
            Tag::Item => self.push("<li>"),
            Tag::Table(columns) => {
                self.columns = columns;
                self.push("<table class=\"said\">\n");
            }
            Tag::TableHead => {
                (self.is_head, self.column) = (true, 0);
                self.push("<tr>");
            }
            Tag::TableRow => {
                (self.is_head, self.column) = (false, 0);
                self.push("<tr>");
            }
            Tag::TableCell => {
                let name = if self.is_head { "th" } else { "td" };
                let class = match self.columns.get(self.column) {
                    Some(Alignment::Right) => " class=\"right\"",
                    Some(Alignment::Center) => " class=\"center\"",
                    _ => "",
                };
                self.push(&format!("<{name}{class}>"));
                self.column += 1;
            }
            Tag::Emphasis => self.push("<em>"),
            Tag::Strong => self.push("<strong>"),
            Tag::Strikethrough => self.push("<s>"),
            Tag::Link { dest_url, .. } => self.start_link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.pictures.push(dest_url.into_string());
                self.push("[picture: ");
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.push("</p>\n"),
            TagEnd::Heading(level) => self.push(&format!("</h{}>\n", level_below(level))),
            TagEnd::BlockQuote(_) => self.push("</blockquote>\n"),
            TagEnd::CodeBlock => self.push("</pre>\n"),
            TagEnd::List(true) => self.push("</ol>\n"),
            TagEnd::List(false) => self.push("</ul>\n"),
            TagEnd::Item => self.push("</li>\n"),
            TagEnd::Table => self.push("</table>\n"),
            TagEnd::TableHead | TagEnd::TableRow => self.push("</tr>\n"),
            TagEnd::TableCell => self.push(if self.is_head { "</th>" } else { "</td>" }),
            TagEnd::Emphasis => self.push("</em>"),
            TagEnd::Strong => self.push("</strong>"),
            TagEnd::Strikethrough => self.push("</s>"),
            TagEnd::Link => match self.links.pop().flatten() {
                Some(address) => {
                    let _ = write!(self.html, " ({})", escaped(&address));
                }
                None => self.push("</a>"),
            },
            TagEnd::Image => {
                let address = self.pictures.pop().unwrap_or_default();
                let _ = write!(self.html, " ({})]", escaped(&address));
            }
            _ => {}
        }
    }

    /// Only addresses of the web become links; others are shown as text behind their name.
    fn start_link(&mut self, address: &str) {
        if address.starts_with("https://") || address.starts_with("http://") {
            let address = escaped(address);
            self.push(&format!("<a href=\"{address}\" rel=\"noopener noreferrer nofollow\">"));
            self.links.push(None);
        } else {
            self.links.push(Some(address.to_owned()));
        }
    }
}

fn level_below(level: HeadingLevel) -> u8 {
    (level as u8 + 2).min(6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structure_becomes_markup_and_content_stays_text() {
        for (text, expected) in [
            ("# A **b**", "<h3>A <strong>b</strong></h3>\n"),
            ("one\ntwo", "<p>one\ntwo</p>\n"),
            ("- a\n- [x] b", "<ul>\n<li>a</li>\n<li>☑ b</li>\n</ul>\n"),
            ("3. c", "<ol start=\"3\">\n<li>c</li>\n</ol>\n"),
            (
                "```rust\nlet a = \"<b>\";\n```",
                "<pre title=\"rust\">let a = &quot;&lt;b&gt;&quot;;\n</pre>\n",
            ),
            ("`<i>` ~~x~~", "<p><code>&lt;i&gt;</code> <s>x</s></p>\n"),
            (
                "[t](https://e.org/?a=1&b=\"x)",
                "<p><a href=\"https://e.org/?a=1&amp;b=&quot;x\" rel=\"noopener noreferrer nofollow\">t</a></p>\n",
            ),
            ("[t](javascript:alert(1))", "<p>t (javascript:alert(1))</p>\n"),
            ("![p](https://e.org/x.png)", "<p>[picture: p (https://e.org/x.png)]</p>\n"),
            (
                "<script>x</script>\n\na <b onclick=y>z</b>",
                "&lt;script&gt;x&lt;/script&gt;\n<p>a &lt;b onclick=y&gt;z&lt;/b&gt;</p>\n",
            ),
            (
                "| a | b |\n|---|--:|\n| 1 | 2 |",
                "<table class=\"said\">\n<tr><th>a</th><th class=\"right\">b</th></tr>\n<tr><td>1</td><td class=\"right\">2</td></tr>\n</table>\n",
            ),
        ] {
            assert_eq!(render(text), expected, "{text}");
        }
    }
}
