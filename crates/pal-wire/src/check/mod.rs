//! The strict judge of a Messages request: what the provider would refuse, refused in the provider's words.
//!
//! It reads bytes and nothing else, and shares no code with whatever wrote them. One pass over the bytes checks
//! the JSON ([`json`]), tables check the fields ([`shape`], [`tables`]), and then come the rules between the parts,
//! a file for each concern. The first error ends the check. Two things are stricter than the provider, which would
//! merge or move silently: messages of one role must not follow each other, and tool results come first.

mod compaction;
mod content;
mod error;
mod formats;
mod json;
mod marks;
mod pairs;
mod path;
mod request;
mod rules;
mod shape;
mod tables;
mod thoughts;
mod tools;
mod turns;
mod view;

use json::Document;
use view::{Request, Tag};

pub use error::{ApiError, ErrorKind};
pub use json::{Node, Text as NodeText, Type as NodeType};
pub use rules::{ApiVersion, Beta, Betas, Endpoint, Rules};

/// What a request that passed holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Bytes of the body.
    pub bytes: usize,
    /// Messages, those of the system included.
    pub messages: usize,
    /// Content blocks of all messages; a string counts as one.
    pub blocks: usize,
    /// Entries of `tools`.
    pub tools: usize,
    /// Cache marks, the automatic one included.
    pub marks: usize,
    /// Calls of the client's tools.
    pub tool_uses: usize,
    /// Results of the client's tools.
    pub tool_results: usize,
    /// Thinking blocks, redacted ones included.
    pub thinking: usize,
    /// Images and documents that stand on their own.
    pub media: usize,
}

/// Judges the body of a request; the first error, as the provider would report it.
pub fn check_request(body: &[u8], rules: &Rules) -> Result<Checked, ApiError> {
    Reading::new(body, rules.max_body_bytes)?.check(rules)
}

/// A body that is a JSON object, scanned once, to be judged and to be looked at.
pub struct Reading<'t> {
    document: Document<'t>,
    bytes: usize,
}

impl<'t> Reading<'t> {
    /// Scans a body of at most so many bytes.
    pub fn new(body: &'t [u8], max_bytes: usize) -> Result<Reading<'t>, ApiError> {
        if body.len() > max_bytes {
            return Err(ApiError::new(ErrorKind::RequestTooLarge, "Request exceeds the maximum size"));
        }
        let document = Document::parse(body)
            .map_err(|reason| error::invalid(format!("The request body is not valid JSON: {reason}")))?;
        if document.root().kind() != json::Type::Object {
            return Err(error::invalid("Input should be a valid dictionary"));
        }
        Ok(Reading { document, bytes: body.len() })
    }

    /// The body.
    pub fn root(&self) -> Node<'_> {
        self.document.root()
    }

    /// Judges the body as [`check_request`] does.
    pub fn check(&self, rules: &Rules) -> Result<Checked, ApiError> {
        let root = self.root();
        shape::check_value(root, &tables::BODY, &path::Path::ROOT, rules)?;
        let request = Request::new(root, rules);
        request::check_parameters(&request)?;
        turns::check_turns(&request)?;
        content::check_content(&request)?;
        thoughts::check_thoughts(&request)?;
        compaction::check_compaction(&request)?;
        pairs::check_pairs(&request)?;
        tools::check_tools(&request)?;
        let marks = marks::check_marks(&request)?;
        Ok(count(&request, self.bytes, marks))
    }
}

fn count(request: &Request<'_>, bytes: usize, marks: usize) -> Checked {
    let blocks = request.all_blocks();
    let of = |wanted: &[Tag]| blocks.iter().filter(|block| wanted.contains(&block.tag)).count();
    Checked {
        bytes,
        messages: request.messages.len(),
        blocks: blocks.len() + request.messages.iter().filter(|message| message.text.is_some()).count(),
        tools: request.body.get("tools").into_iter().flat_map(Node::items).count(),
        marks,
        tool_uses: of(&[Tag::ToolUse]),
        tool_results: of(&[Tag::ToolResult]),
        thinking: of(&[Tag::Thinking, Tag::RedactedThinking]),
        media: of(&[Tag::Image, Tag::Document]),
    }
}
