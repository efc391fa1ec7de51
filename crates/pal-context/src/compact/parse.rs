//! Reads what a model answered to a directive for a summary (§4.5): the draft is cut out, the summary is taken.
//!
//! Models quote the tags in code, forget to close them, begin anew, or forget them altogether. So tags count by where
//! they stand: those that open or end a line outside of code first, any others only where these give nothing.

use std::fmt;

use pal_extract::sections_named;
use pal_model::{Block, BlockType};

/// Why an answer is no summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoSummary {
    /// Nothing was said.
    Empty,
    /// A tool was called instead.
    ToolCall,
    /// What was said has neither the tags nor the sections: a refusal, or an answer to something else.
    NotInForm,
    /// The provider's answer holds no summary of its own.
    NoBlock,
}

impl fmt::Display for NoSummary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            NoSummary::Empty => "the answer is empty",
            NoSummary::ToolCall => "the model called a tool instead of answering in text",
            NoSummary::NotInForm => "the answer has neither a <summary> nor the sections of one: a refusal?",
            NoSummary::NoBlock => "the provider returned no summary",
        })
    }
}

/// Sections that a text without tags must have to be taken for a summary.
const SECTIONS_LEAST: usize = 3;

/// The summary that an answer holds.
pub fn summary(blocks: &[Block]) -> Result<String, NoSummary> {
    let texts = blocks.iter().filter(|block| block.kind() == BlockType::Text);
    let texts: Vec<_> = texts.filter_map(|block| block.string("text")).collect();
    let found = in_text(&texts.concat());
    let calls = blocks.iter().any(|block| block.kind() == BlockType::ToolUse);
    // A whole summary beside a call is a summary; anything less is a call.
    found.map_err(|failure| if calls { NoSummary::ToolCall } else { failure })
}

/// The block in which the provider summarised.
pub(crate) fn provider_block(blocks: &[Block]) -> Result<Block, NoSummary> {
    let is_summary = |block: &&Block| {
        block.kind() == BlockType::Compaction
            && block.string("content").is_some_and(|text| !text.trim().is_empty())
    };
    blocks.iter().find(is_summary).cloned().ok_or(NoSummary::NoBlock)
}

fn in_text(text: &str) -> Result<String, NoSummary> {
    if text.trim().is_empty() {
        return Err(NoSummary::Empty);
    }
    let tags = tags(text);
    let trusts = [Trust::Structural, Trust::OutsideCode, Trust::Any];
    let with = |trust: Trust| tags.iter().filter(move |tag| tag.trust <= trust).copied().collect::<Vec<_>>();
    let complete = trusts.iter().find_map(|trust| last_complete(text, &with(*trust)));
    if let Some(body) = complete {
        return if body.is_empty() { Err(NoSummary::Empty) } else { Ok(body.to_owned()) };
    }
    let whole = trusts.iter().find_map(|trust| unclosed(text, &with(*trust)));
    let whole = whole.unwrap_or_else(|| without_drafts(text, &with(Trust::OutsideCode)));
    match whole.trim() {
        "" => Err(NoSummary::Empty),
        body if sections_named(body) >= SECTIONS_LEAST => Ok(body.to_owned()),
        _ => Err(NoSummary::NotInForm),
    }
}

/// How far a tag is to be trusted, the most first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Trust {
    /// It opens a line, or closes one, outside of code.
    Structural,
    /// It stands inside a line.
    OutsideCode,
    /// It stands in code.
    Any,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Name {
    Analysis,
    Summary,
}

/// A tag, where it stands.
#[derive(Clone, Copy, Debug)]
struct Tag {
    name: Name,
    opens: bool,
    start: usize,
    end: usize,
    trust: Trust,
}

/// All tags, in order.
fn tags(text: &str) -> Vec<Tag> {
    const SPELLINGS: [(&str, Name, bool); 4] = [
        ("<analysis>", Name::Analysis, true),
        ("</analysis>", Name::Analysis, false),
        ("<summary>", Name::Summary, true),
        ("</summary>", Name::Summary, false),
    ];
    let mut found = Vec::new();
    let mut in_fence = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            in_fence = !in_fence;
        }
        for place in memchr::memchr_iter(b'<', line.as_bytes()) {
            let rest = &line.as_bytes()[place..];
            let tag = SPELLINGS.iter().find(|(spelling, ..)| {
                rest.get(..spelling.len()).is_some_and(|head| head.eq_ignore_ascii_case(spelling.as_bytes()))
            });
            let Some((spelling, name, opens)) = tag else { continue };
            let (before, after) = (&line[..place], &line[place + spelling.len()..]);
            let is_code = in_fence || before.matches('`').count() % 2 == 1;
            let at_edge = before.trim().is_empty() || (!opens && after.trim().is_empty());
            let trust = match (is_code, at_edge) {
                (true, _) => Trust::Any,
                (false, true) => Trust::Structural,
                (false, false) => Trust::OutsideCode,
            };
            let start = at + place;
            found.push(Tag { name: *name, opens: *opens, start, end: start + spelling.len(), trust });
        }
        at += line.len();
    }
    found
}

/// A tag with the one that closes it.
#[derive(Clone, Copy)]
struct Pair {
    open: Tag,
    close: Tag,
}

/// The pairs that no other pair holds, in order. A tag that is never closed holds nothing.
fn outermost(tags: &[Tag]) -> Vec<Pair> {
    let mut open: Vec<Tag> = Vec::new();
    let mut pairs: Vec<Pair> = Vec::new();
    for tag in tags {
        if tag.opens {
            open.push(*tag);
        } else if let Some(index) = open.iter().rposition(|opened| opened.name == tag.name) {
            let opened = open[index];
            open.truncate(index);
            pairs.retain(|pair| pair.open.start < opened.start);
            pairs.push(Pair { open: opened, close: *tag });
        }
    }
    pairs
}

/// The body of the last complete summary.
fn last_complete<'a>(text: &'a str, tags: &[Tag]) -> Option<&'a str> {
    let pair = outermost(tags).into_iter().rfind(|pair| pair.open.name == Name::Summary)?;
    let body = text.get(pair.open.end..pair.close.start)?.trim();
    // Some put the draft into the summary.
    let draft = body.strip_prefix("<analysis>").and_then(|rest| rest.split_once("</analysis>"));
    Some(draft.map_or(body, |(_, rest)| rest.trim()))
}

/// What follows the last summary that was begun and not ended, as when an answer was cut off.
fn unclosed(text: &str, tags: &[Tag]) -> Option<String> {
    let drafts = outermost(tags);
    let is_drafted =
        |tag: &Tag| drafts.iter().any(|draft| (draft.open.start..draft.close.end).contains(&tag.start));
    let tag = tags.iter().rfind(|tag| tag.name == Name::Summary && tag.opens && !is_drafted(tag))?;
    text.get(tag.end..).map(|rest| rest.trim().to_owned())
}

/// A text without its complete drafts and without stray tags of drafts.
fn without_drafts(text: &str, tags: &[Tag]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for pair in outermost(tags).iter().filter(|pair| pair.open.name == Name::Analysis) {
        out.push_str(text.get(from..pair.open.start).unwrap_or_default());
        from = pair.close.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out.replace("<analysis>", "").replace("</analysis>", "")
}

#[cfg(test)]
mod tests {
    use pal_model::Text;
    use proptest::prelude::*;

    use super::*;

    const FORM: &str =
        "## 1. Request and intent\nx\n## 2. Key concepts and decisions\ny\n## 3. Files and code\nz";

    fn read(text: &str) -> Result<String, NoSummary> {
        summary(&[Block::text(text)])
    }

    #[test]
    fn the_summary_is_taken_and_the_draft_is_not() {
        let cases = [
            ("<analysis>\ndraft\n</analysis>\n\n<summary>\nkept\n</summary>", "kept"),
            ("<summary>kept</summary>", "kept"),
            ("Here: <summary>kept</summary> done", "kept"),
            ("<Analysis>d</Analysis><SUMMARY>\nkept\n</SUMMARY>\nAnything else?", "kept"),
            // A draft that speaks of the tags.
            (
                "<analysis>\nI shall write\n<summary>\nno\n</summary>\n</analysis>\n<summary>\nkept\n</summary>",
                "kept",
            ),
            ("<analysis>\nnever closed\n<summary>\nkept\n</summary>", "kept"),
            // The last complete one counts; one that was abandoned does not.
            ("<summary>\none\n</summary>\n<summary>\nkept\n</summary>", "kept"),
            ("<summary>\none\n<summary>\nkept\n</summary>", "kept"),
            ("<summary>\nkept\n</summary>\n<summary>\ncut o", "kept"),
            ("<summary>\n<analysis>d</analysis>\nkept\n</summary>", "kept"),
        ];
        for (text, wanted) in cases {
            assert_eq!(read(text).as_deref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn tags_in_code_and_in_quoted_words_are_words() {
        let body = "The user: write `</summary>` at the end\n```\n</summary>\n<summary>\n```\nand the <summary> tag inside";
        assert_eq!(read(&format!("<summary>\n{body}\n</summary>")).as_deref(), Ok(body));
        let nested = "a\n<summary>\nquoted\n</summary>\nb";
        assert_eq!(read(&format!("<summary>\n{nested}\n</summary>")).as_deref(), Ok(nested));
        let quoted = "a\n<analysis>\nthe user's\n</analysis>\nb";
        assert_eq!(read(&format!("<summary>\n{quoted}\n</summary>")).as_deref(), Ok(quoted));
        assert_eq!(read("```xml\n<summary>\nkept\n</summary>\n```").as_deref(), Ok("kept"));
    }

    #[test]
    fn without_tags_the_sections_decide() {
        assert_eq!(read(FORM).as_deref(), Ok(FORM));
        assert_eq!(read(&format!("<analysis>d</analysis>\n{FORM}")).as_deref(), Ok(FORM));
        assert_eq!(read(&format!("<summary>\n{FORM}\ncut o")), Ok(format!("{FORM}\ncut o")));
        let failures = [
            ("", NoSummary::Empty),
            (" \n", NoSummary::Empty),
            ("<summary>\n\n</summary>", NoSummary::Empty),
            ("<analysis>only a draft</analysis>", NoSummary::Empty),
            ("<analysis>\n<summary>\nstill a draft\n</summary>\n</analysis>", NoSummary::Empty),
            ("I cannot help with that.", NoSummary::NotInForm),
            ("<summary>\nThe user asked for", NoSummary::NotInForm),
        ];
        for (text, wanted) in failures {
            assert_eq!(read(text), Err(wanted), "{text}");
        }
    }

    #[test]
    fn a_call_is_no_summary_unless_one_stands_beside_it() {
        let call = Block::parse(Text::from(r#"{"type":"tool_use","id":"a","name":"Read","input":{}}"#));
        assert_eq!(summary(std::slice::from_ref(&call)), Err(NoSummary::ToolCall));
        assert_eq!(summary(&[Block::text("Let me look."), call.clone()]), Err(NoSummary::ToolCall));
        assert_eq!(summary(&[Block::text("<summary>s</summary>"), call]).as_deref(), Ok("s"));
        assert_eq!(summary(&[]), Err(NoSummary::Empty));
        let provider = |raw: &str| provider_block(&[Block::parse(Text::from(raw))]).map(|block| block.kind());
        assert_eq!(provider(r#"{"type":"compaction","content":"s"}"#), Ok(BlockType::Compaction));
        assert_eq!(provider(r#"{"type":"compaction","content":null}"#), Err(NoSummary::NoBlock));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(pal_testkit::cases(500)))]

        /// Whatever a model says: nothing breaks, and a well-formed summary at the end is taken whole.
        #[test]
        fn the_last_well_formed_summary_is_taken(
            noise in "(<analysis>|</analysis>|<summary>|</summary>|`|```|\n|é| ){0,12}",
            body in "[a-zé]{1,4}(\n| |<analysis> |`<summary>` |`</summary>` |[a-zé]){0,8}[a-zé]",
        ) {
            let _ = read(&noise);
            let answered = read(&format!("<analysis>\nd\n</analysis>\n<summary>\n{body}\n</summary>"));
            prop_assert_eq!(answered.as_deref(), Ok(body.as_str()));
        }
    }
}
