//! Content blocks: those of messages, those inside tool results, those of the system prompt.

use crate::check::formats::Format;
use crate::check::rules::Beta;
use crate::check::shape::{Field, Gate, Kind, Shape, Union, optional, required};

use super::media::{CITATIONS_CONFIG, DOCUMENT, IMAGE};
use super::tools::TOOL;

/// The blocks of a message.
pub(super) static BLOCKS: Union = Union {
    shapes: &[
        &TEXT,
        &IMAGE,
        &DOCUMENT,
        &SEARCH_RESULT,
        &THINKING,
        &REDACTED_THINKING,
        &TOOL_USE,
        &TOOL_RESULT,
        &SERVER_TOOL_USE,
        &WEB_SEARCH_RESULT,
        &WEB_FETCH_RESULT,
        &CODE_EXECUTION_RESULT,
        &BASH_RESULT,
        &TEXT_EDITOR_RESULT,
        &TOOL_SEARCH_RESULT,
        &CONTAINER_UPLOAD,
        &ADVISOR_RESULT,
        &MCP_TOOL_USE,
        &MCP_TOOL_RESULT,
        &MCP_TOOL_LISTING,
        &COMPACTION,
        &FALLBACK,
        &TOOL_ADDITION,
        &TOOL_REMOVAL,
        &CACHE_EDITS,
    ],
    default: None,
    marks: true,
};

/// The blocks of the system prompt.
pub(super) static SYSTEM_BLOCKS: Union = Union { shapes: &[&TEXT], default: None, marks: true };

/// The blocks inside a tool result. Only the result as a whole can be marked.
static RESULT_BLOCKS: Union = Union {
    shapes: &[&TEXT, &IMAGE, &DOCUMENT, &SEARCH_RESULT, &TOOL_REFERENCE, &BROWSER_STATE],
    default: None,
    marks: false,
};

pub(super) static TEXT: Shape = Shape::tagged(
    "text",
    &[required("text", Kind::Text), optional("citations", Kind::List(&Kind::Dictionary)).or_null()],
)
.with_marks();

static INNER_TEXT: Union = Union { shapes: &[&TEXT], default: None, marks: false };
static SEARCH_RESULT: Shape = Shape::tagged(
    "search_result",
    &[
        required("source", Kind::Text),
        required("title", Kind::Text),
        required("content", Kind::List(&Kind::Tagged(&INNER_TEXT))),
        CITATIONS_CONFIG,
    ],
)
.with_marks();

static THINKING: Shape =
    Shape::tagged("thinking", &[required("thinking", Kind::Text), required("signature", Kind::Text)]);
static REDACTED_THINKING: Shape = Shape::tagged("redacted_thinking", &[required("data", Kind::Text)]);

static CALLER: Shape = Shape::plain(&[required("type", Kind::FilledText)]).open();
const CALLER_FIELD: Field = optional("caller", Kind::Object(&CALLER)).or_null();
const TOOLSET_NAME: Field = optional("toolset_name", Kind::Text).or_null();

static TOOL_USE: Shape = Shape::tagged(
    "tool_use",
    &[
        required("id", Kind::Formatted(Format::Id)),
        required("name", Kind::Formatted(Format::Name)),
        required("input", Kind::Dictionary),
        CALLER_FIELD,
        TOOLSET_NAME,
    ],
)
.with_marks();

static TOOL_RESULT: Shape = Shape::tagged(
    "tool_result",
    &[
        required("tool_use_id", Kind::Formatted(Format::Id)),
        optional("content", Kind::Either(&[Kind::Text, Kind::List(&Kind::Tagged(&RESULT_BLOCKS))])).or_null(),
        optional("is_error", Kind::Bool).or_null(),
        TOOLSET_NAME,
        optional("cache_reference", Kind::FilledText).when(Gate::Betas(&[Beta::CacheEdits])),
    ],
)
.with_marks();

static TOOL_REFERENCE: Shape =
    Shape::tagged("tool_reference", &[required("tool_name", Kind::Formatted(Format::Name))]);
static BROWSER_STATE: Shape = Shape::tagged("browser_state", &[]).open();

const SERVER_TOOLS: &[&str] = &[
    "advisor",
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
];

static SERVER_TOOL_USE: Shape = Shape::tagged(
    "server_tool_use",
    &[
        required("id", Kind::Formatted(Format::ServerId)),
        required("name", Kind::OneOf(SERVER_TOOLS)),
        required("input", Kind::Dictionary),
        CALLER_FIELD,
    ],
)
.with_marks();

const SERVER_RESULT: &[Field] = &[
    required("tool_use_id", Kind::Formatted(Format::ServerId)),
    required("content", Kind::Any),
    CALLER_FIELD,
];

static WEB_SEARCH_RESULT: Shape = Shape::tagged("web_search_tool_result", SERVER_RESULT).with_marks();
static WEB_FETCH_RESULT: Shape = Shape::tagged("web_fetch_tool_result", SERVER_RESULT).with_marks();
static CODE_EXECUTION_RESULT: Shape = Shape::tagged("code_execution_tool_result", SERVER_RESULT).with_marks();
static BASH_RESULT: Shape = Shape::tagged("bash_code_execution_tool_result", SERVER_RESULT).with_marks();
static TEXT_EDITOR_RESULT: Shape =
    Shape::tagged("text_editor_code_execution_tool_result", SERVER_RESULT).with_marks();
static TOOL_SEARCH_RESULT: Shape = Shape::tagged("tool_search_tool_result", SERVER_RESULT).with_marks();
static ADVISOR_RESULT: Shape =
    Shape::tagged("advisor_tool_result", SERVER_RESULT).with_marks().beta(&[Beta::Advisor]);

static CONTAINER_UPLOAD: Shape =
    Shape::tagged("container_upload", &[required("file_id", Kind::FilledText)]).with_marks();

const MCP: &[Beta] = &[Beta::McpClient, Beta::McpListing];
static MCP_TOOL_USE: Shape = Shape::tagged(
    "mcp_tool_use",
    &[
        required("id", Kind::Formatted(Format::Id)),
        required("name", Kind::FilledText),
        required("input", Kind::Dictionary),
        required("server_name", Kind::FilledText),
    ],
)
.with_marks()
.beta(MCP);
static MCP_TOOL_RESULT: Shape = Shape::tagged(
    "mcp_tool_result",
    &[
        required("tool_use_id", Kind::Formatted(Format::Id)),
        optional("content", Kind::Either(&[Kind::Text, Kind::List(&Kind::Tagged(&INNER_TEXT))])),
        optional("is_error", Kind::Bool),
    ],
)
.with_marks()
.beta(MCP);
static MCP_TOOL_LISTING: Shape = Shape::tagged("mcp_tool_listing", &[]).open().beta(&[Beta::McpListing]);

static COMPACTION: Shape = Shape::tagged(
    "compaction",
    &[
        required("content", Kind::Text).or_null(),
        optional("encrypted_content", Kind::Text).or_null().when(Gate::Betas(&[Beta::ThresholdCompaction])),
        optional("signature", Kind::FilledText).when(Gate::Betas(&[Beta::Compaction])),
        optional("tool_changes", Kind::List(&Kind::Dictionary)).when(Gate::Betas(&[Beta::Compaction])),
    ],
)
.with_marks()
.beta(&[Beta::ThresholdCompaction, Beta::Compaction]);

static FALLBACK: Shape = Shape::tagged(
    "fallback",
    &[required("from", Kind::Any), required("to", Kind::Any), optional("trigger", Kind::Any).or_null()],
)
.beta(&[Beta::Fallbacks]);

const TOOL_CHANGE: &[Beta] = &[Beta::ToolChanges, Beta::InlineTools];
static NAMED_REFERENCE: Shape =
    Shape::tagged("tool_reference", &[required("name", Kind::Formatted(Format::Name))]);
static MCP_TOOL_REFERENCE: Shape = Shape::tagged("mcp_tool_reference", &[]).open().beta(MCP);
static MCP_TOOLSET_REFERENCE: Shape = Shape::tagged("mcp_toolset_reference", &[]).open().beta(MCP);
static TOOL_DEFINITION: Shape =
    Shape::tagged("tool_definition", &[required("definition", Kind::Tagged(&TOOL))])
        .beta(&[Beta::InlineTools]);
static ADDED: Union = Union {
    shapes: &[&NAMED_REFERENCE, &MCP_TOOL_REFERENCE, &MCP_TOOLSET_REFERENCE, &TOOL_DEFINITION],
    default: None,
    marks: false,
};
static REMOVED: Union = Union {
    shapes: &[&NAMED_REFERENCE, &MCP_TOOL_REFERENCE, &MCP_TOOLSET_REFERENCE],
    default: None,
    marks: false,
};
static TOOL_ADDITION: Shape =
    Shape::tagged("tool_addition", &[required("tool", Kind::Tagged(&ADDED))]).beta(TOOL_CHANGE);
static TOOL_REMOVAL: Shape =
    Shape::tagged("tool_removal", &[required("tool", Kind::Tagged(&REMOVED))]).beta(TOOL_CHANGE);

static CACHE_EDIT: Union = Union {
    shapes: &[&Shape::tagged("delete", &[required("cache_reference", Kind::FilledText)])],
    default: None,
    marks: false,
};
static CACHE_EDITS: Shape =
    Shape::tagged("cache_edits", &[required("edits", Kind::List(&Kind::Tagged(&CACHE_EDIT)))])
        .beta(&[Beta::CacheEdits]);
