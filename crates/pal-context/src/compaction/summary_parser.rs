//! Parses the response to a summary directive (§4.5): removes the draft and extracts the summary.
//!
//! Models quote the tags in code, leave them open, start over, or forget them. So tags count by position:
//! those that open or end a line outside of code first, any others only if these give nothing.

use std::fmt;

use pal_extract::count_named_sections;
use pal_model::{BlockType, ContentBlock};

/// Reason why a response holds no summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SummaryError {
    /// The response is empty.
    Empty,
    /// The model called a tool instead.
    ToolCall,
    /// The text has neither the tags nor the sections: a refusal, or an unrelated answer.
    NotInForm,
    /// The response holds no compaction block of the provider.
    NoBlock,
}

impl fmt::Display for SummaryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            SummaryError::Empty => "the answer is empty",
            SummaryError::ToolCall => "the model called a tool instead of answering in text",
            SummaryError::NotInForm => {
                "the answer has neither a <summary> nor the sections of one: a refusal?"
            }
            SummaryError::NoBlock => "the provider returned no summary",
        })
    }
}

/// Minimum sections of a text without tags to count as a summary.
const SECTIONS_MIN: usize = 3;

/// Extracts the summary from a response.
pub fn summary(blocks: &[ContentBlock]) -> Result<String, SummaryError> {
    let texts = blocks.iter().filter(|block| block.kind() == BlockType::Text);
    let texts: Vec<_> = texts.filter_map(|block| block.string("text")).collect();
    let found = in_text(&texts.concat());
    let calls = blocks.iter().any(|block| block.kind() == BlockType::ToolUse);
    // A complete summary beside a call counts; anything less is a call.
    found.map_err(|failure| if calls { SummaryError::ToolCall } else { failure })
}

/// Finds the provider's compaction block.
pub(crate) fn provider_block(blocks: &[ContentBlock]) -> Result<ContentBlock, SummaryError> {
    let is_summary = |block: &&ContentBlock| {
        block.kind() == BlockType::Compaction
            && block.string("content").is_some_and(|text| !text.trim().is_empty())
    };
    blocks.iter().find(is_summary).cloned().ok_or(SummaryError::NoBlock)
}

fn in_text(text: &str) -> Result<String, SummaryError> {
    if text.trim().is_empty() {
        return Err(SummaryError::Empty);
    }
    let tags = tags(text);
    let trusts = [TagTrust::Structural, TagTrust::OutsideCode, TagTrust::Any];
    let with =
        |trust: TagTrust| tags.iter().filter(move |tag| tag.trust <= trust).copied().collect::<Vec<_>>();
    let complete = trusts.iter().find_map(|trust| last_complete(text, &with(*trust)));
    if let Some(body) = complete {
        return if body.is_empty() { Err(SummaryError::Empty) } else { Ok(body.to_owned()) };
    }
    let whole = trusts.iter().find_map(|trust| unclosed(text, &with(*trust)));
    let whole = whole.unwrap_or_else(|| without_drafts(text, &with(TagTrust::OutsideCode)));
    match whole.trim() {
        "" => Err(SummaryError::Empty),
        body if count_named_sections(body) >= SECTIONS_MIN => Ok(body.to_owned()),
        _ => Err(SummaryError::NotInForm),
    }
}

/// Trust in a tag, highest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum TagTrust {
    /// Opens or ends a line outside of code.
    Structural,
    /// Inside a line.
    OutsideCode,
    /// Inside code.
    Any,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TagName {
    Analysis,
    Summary,
}

/// A tag with its position.
#[derive(Clone, Copy, Debug)]
struct SummaryTag {
    name: TagName,
    opens: bool,
    start: usize,
    end: usize,
    trust: TagTrust,
}

/// Finds all tags, in order.
fn tags(text: &str) -> Vec<SummaryTag> {
    const SPELLINGS: [(&str, TagName, bool); 4] = [
        ("<analysis>", TagName::Analysis, true),
        ("</analysis>", TagName::Analysis, false),
        ("<summary>", TagName::Summary, true),
        ("</summary>", TagName::Summary, false),
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
                (true, _) => TagTrust::Any,
                (false, true) => TagTrust::Structural,
                (false, false) => TagTrust::OutsideCode,
            };
            let start = at + place;
            found.push(SummaryTag { name: *name, opens: *opens, start, end: start + spelling.len(), trust });
        }
        at += line.len();
    }
    found
}

/// A tag with the one that closes it.
#[derive(Clone, Copy)]
struct TagPair {
    open: SummaryTag,
    close: SummaryTag,
}

/// Outermost pairs, in order. A tag that is never closed contains nothing.
fn outermost(tags: &[SummaryTag]) -> Vec<TagPair> {
    let mut open: Vec<SummaryTag> = Vec::new();
    let mut pairs: Vec<TagPair> = Vec::new();
    for tag in tags {
        if tag.opens {
            open.push(*tag);
        } else if let Some(index) = open.iter().rposition(|opened| opened.name == tag.name) {
            let opened = open[index];
            open.truncate(index);
            pairs.retain(|pair| pair.open.start < opened.start);
            pairs.push(TagPair { open: opened, close: *tag });
        }
    }
    pairs
}

/// The body of the last complete summary.
fn last_complete<'a>(text: &'a str, tags: &[SummaryTag]) -> Option<&'a str> {
    let pair = outermost(tags).into_iter().rfind(|pair| pair.open.name == TagName::Summary)?;
    let body = text.get(pair.open.end..pair.close.start)?.trim();
    // Some put the draft into the summary.
    let draft = body.strip_prefix("<analysis>").and_then(|rest| rest.split_once("</analysis>"));
    Some(draft.map_or(body, |(_, rest)| rest.trim()))
}

/// Text behind the last summary tag that was opened and not closed, as in a truncated response.
fn unclosed(text: &str, tags: &[SummaryTag]) -> Option<String> {
    let drafts = outermost(tags);
    let is_drafted = |tag: &SummaryTag| {
        drafts.iter().any(|draft| (draft.open.start..draft.close.end).contains(&tag.start))
    };
    let tag = tags.iter().rfind(|tag| tag.name == TagName::Summary && tag.opens && !is_drafted(tag))?;
    text.get(tag.end..).map(|rest| rest.trim().to_owned())
}

/// Removes complete drafts and stray draft tags from a text.
fn without_drafts(text: &str, tags: &[SummaryTag]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for pair in outermost(tags).iter().filter(|pair| pair.open.name == TagName::Analysis) {
        out.push_str(text.get(from..pair.open.start).unwrap_or_default());
        from = pair.close.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out.replace("<analysis>", "").replace("</analysis>", "")
}

#[cfg(test)]
mod tests {
    use pal_model::SharedText;
    use proptest::prelude::*;

    use super::*;

    const FORM: &str =
        "## 1. Request and intent\nx\n## 2. Key concepts and decisions\ny\n## 3. Files and code\nz";

    fn read(text: &str) -> Result<String, SummaryError> {
        summary(&[ContentBlock::text(text)])
    }

    #[test]
    fn draft_is_removed_from_the_summary() {
        let cases = [
            ("<analysis>\ndraft\n</analysis>\n\n<summary>\nkept\n</summary>", "kept"),
            ("<summary>kept</summary>", "kept"),
            ("Here: <summary>kept</summary> done", "kept"),
            ("<Analysis>d</Analysis><SUMMARY>\nkept\n</SUMMARY>\nAnything else?", "kept"),
            // A draft that mentions the tags.
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
    fn tags_in_code_and_quotes_are_text() {
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
            ("", SummaryError::Empty),
            (" \n", SummaryError::Empty),
            ("<summary>\n\n</summary>", SummaryError::Empty),
            ("<analysis>only a draft</analysis>", SummaryError::Empty),
            ("<analysis>\n<summary>\nstill a draft\n</summary>\n</analysis>", SummaryError::Empty),
            ("I cannot help with that.", SummaryError::NotInForm),
            ("<summary>\nThe user asked for", SummaryError::NotInForm),
        ];
        for (text, wanted) in failures {
            assert_eq!(read(text), Err(wanted), "{text}");
        }
    }

    #[test]
    fn call_counts_as_summary_only_with_summary_text() {
        let call =
            ContentBlock::parse(SharedText::from(r#"{"type":"tool_use","id":"a","name":"Read","input":{}}"#));
        assert_eq!(summary(std::slice::from_ref(&call)), Err(SummaryError::ToolCall));
        assert_eq!(summary(&[ContentBlock::text("Let me look."), call.clone()]), Err(SummaryError::ToolCall));
        assert_eq!(summary(&[ContentBlock::text("<summary>s</summary>"), call]).as_deref(), Ok("s"));
        assert_eq!(summary(&[]), Err(SummaryError::Empty));
        let provider = |raw: &str| {
            provider_block(&[ContentBlock::parse(SharedText::from(raw))]).map(|block| block.kind())
        };
        assert_eq!(provider(r#"{"type":"compaction","content":"s"}"#), Ok(BlockType::Compaction));
        assert_eq!(provider(r#"{"type":"compaction","content":null}"#), Err(SummaryError::NoBlock));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(pal_testkit::cases(500)))]

        /// For any response: no panic, and a well-formed summary at the end is taken whole.
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
