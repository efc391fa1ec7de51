//! Strict check of Messages requests: refuses what the provider would refuse, with the provider's error.
//!
//! It reads only bytes and shares no code with the encoders. One pass checks the JSON ([`json`]), tables check the fields
//! ([`value_shape`], [`schema`]), then the rules between parts follow, one file per concern. The first error ends the
//! check. It is stricter than the provider in two points that the provider would fix silently: messages of one role must
//! not follow each other, and tool results come first.

mod api_error;
mod block_content;
mod cache_breakpoints;
mod compaction_blocks;
mod json;
mod json_path;
mod message_order;
mod request_parameters;
mod request_rules;
mod request_view;
mod schema;
mod text_format;
mod thinking_blocks;
mod tool_pairs;
mod tool_references;
mod value_shape;

use json::JsonDocument;
use request_view::{BlockTag, RequestView};

pub use api_error::{ApiError, ApiErrorKind};
pub use json::{JsonNode, NodeText, NodeType};
pub use request_rules::{ApiVersion, Beta, BetaSet, MessagesEndpoint, RequestRules};

/// Counts of a valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestStats {
    /// Length of the body in bytes.
    pub bytes: usize,
    /// Messages, including system messages.
    pub messages: usize,
    /// Content blocks of all messages; a string counts as one.
    pub blocks: usize,
    /// Entries of `tools`.
    pub tools: usize,
    /// Cache breakpoints, including the automatic one.
    pub breakpoints: usize,
    /// Calls of the client's tools.
    pub tool_uses: usize,
    /// Results of the client's tools.
    pub tool_results: usize,
    /// Thinking blocks, including redacted ones.
    pub thinking: usize,
    /// Top-level images and documents.
    pub media: usize,
}

/// Checks the body of a request; returns the first error as the provider would report it.
pub fn check_request(body: &[u8], rules: &RequestRules) -> Result<RequestStats, ApiError> {
    RequestDocument::new(body, rules.max_body_bytes)?.check(rules)
}

/// Body of a request: a JSON object, scanned once.
pub struct RequestDocument<'t> {
    document: JsonDocument<'t>,
    bytes: usize,
}

impl<'t> RequestDocument<'t> {
    /// Scans a body of at most `max_bytes`; fails if it is larger or not a JSON object.
    pub fn new(body: &'t [u8], max_bytes: usize) -> Result<RequestDocument<'t>, ApiError> {
        if body.len() > max_bytes {
            return Err(ApiError::new(ApiErrorKind::RequestTooLarge, "Request exceeds the maximum size"));
        }
        let document = JsonDocument::parse(body)
            .map_err(|reason| api_error::invalid(format!("The request body is not valid JSON: {reason}")))?;
        if document.root().kind() != json::NodeType::Object {
            return Err(api_error::invalid("Input should be a valid dictionary"));
        }
        Ok(RequestDocument { document, bytes: body.len() })
    }

    /// Returns the body object.
    pub fn root(&self) -> JsonNode<'_> {
        self.document.root()
    }

    /// Checks the body as [`check_request`] does.
    pub fn check(&self, rules: &RequestRules) -> Result<RequestStats, ApiError> {
        let root = self.root();
        value_shape::check_value(root, &schema::BODY, &json_path::JsonPath::ROOT, rules)?;
        let request = RequestView::new(root, rules);
        request_parameters::check_parameters(&request)?;
        message_order::check_turns(&request)?;
        block_content::check_content(&request)?;
        thinking_blocks::check_thinking(&request)?;
        compaction_blocks::check_compaction(&request)?;
        tool_pairs::check_pairs(&request)?;
        tool_references::check_tools(&request)?;
        let breakpoints = cache_breakpoints::check_breakpoints(&request)?;
        Ok(count(&request, self.bytes, breakpoints))
    }
}

fn count(request: &RequestView<'_>, bytes: usize, breakpoints: usize) -> RequestStats {
    let blocks = request.all_blocks();
    let of = |wanted: &[BlockTag]| blocks.iter().filter(|block| wanted.contains(&block.tag)).count();
    RequestStats {
        bytes,
        messages: request.messages.len(),
        blocks: blocks.len() + request.messages.iter().filter(|message| message.text.is_some()).count(),
        tools: request.body.get("tools").into_iter().flat_map(JsonNode::items).count(),
        breakpoints,
        tool_uses: of(&[BlockTag::ToolUse]),
        tool_results: of(&[BlockTag::ToolResult]),
        thinking: of(&[BlockTag::Thinking, BlockTag::RedactedThinking]),
        media: of(&[BlockTag::Image, BlockTag::Document]),
    }
}
