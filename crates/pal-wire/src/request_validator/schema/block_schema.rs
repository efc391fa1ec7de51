//! Schema of content blocks: in messages, inside tool results, in the system prompt.

use crate::request_validator::request_rules::Beta;
use crate::request_validator::text_format::TextFormat;
use crate::request_validator::value_shape::{
    FieldGate, FieldRule, ObjectShape, TaggedUnion, ValueKind, optional, required,
};

use super::media_schema::{CITATIONS_CONFIG, DOCUMENT, IMAGE, TEXT};
use super::tool_schema::TOOL;

/// Blocks of a message.
pub(super) static BLOCKS: TaggedUnion = TaggedUnion {
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
    accepts_cache_control: true,
};

/// Blocks of the system prompt.
pub(super) static SYSTEM_BLOCKS: TaggedUnion =
    TaggedUnion { shapes: &[&TEXT], default: None, accepts_cache_control: true };

/// Blocks inside a tool result. Only the result itself accepts `cache_control`.
static RESULT_BLOCKS: TaggedUnion = TaggedUnion {
    shapes: &[&TEXT, &IMAGE, &DOCUMENT, &SEARCH_RESULT, &TOOL_REFERENCE, &BROWSER_STATE],
    default: None,
    accepts_cache_control: false,
};

static INNER_TEXT: TaggedUnion =
    TaggedUnion { shapes: &[&TEXT], default: None, accepts_cache_control: false };
static SEARCH_RESULT: ObjectShape = ObjectShape::tagged(
    "search_result",
    &[
        required("source", ValueKind::Text),
        required("title", ValueKind::Text),
        required("content", ValueKind::List(&ValueKind::Tagged(&INNER_TEXT))),
        CITATIONS_CONFIG,
    ],
)
.with_cache_control();

static THINKING: ObjectShape = ObjectShape::tagged(
    "thinking",
    &[required("thinking", ValueKind::Text), required("signature", ValueKind::Text)],
);
static REDACTED_THINKING: ObjectShape =
    ObjectShape::tagged("redacted_thinking", &[required("data", ValueKind::Text)]);

static CALLER: ObjectShape = ObjectShape::plain(&[required("type", ValueKind::FilledText)]).open();
const CALLER_FIELD: FieldRule = optional("caller", ValueKind::Object(&CALLER)).or_null();
const TOOLSET_NAME: FieldRule = optional("toolset_name", ValueKind::Text).or_null();

static TOOL_USE: ObjectShape = ObjectShape::tagged(
    "tool_use",
    &[
        required("id", ValueKind::Formatted(TextFormat::Id)),
        required("name", ValueKind::Formatted(TextFormat::Name)),
        required("input", ValueKind::Dictionary),
        CALLER_FIELD,
        TOOLSET_NAME,
    ],
)
.with_cache_control();

static TOOL_RESULT: ObjectShape = ObjectShape::tagged(
    "tool_result",
    &[
        required("tool_use_id", ValueKind::Formatted(TextFormat::Id)),
        optional(
            "content",
            ValueKind::Either(&[ValueKind::Text, ValueKind::List(&ValueKind::Tagged(&RESULT_BLOCKS))]),
        )
        .or_null(),
        optional("is_error", ValueKind::Bool).or_null(),
        TOOLSET_NAME,
        optional("cache_reference", ValueKind::FilledText).when(FieldGate::Betas(&[Beta::CacheEdits])),
    ],
)
.with_cache_control();

static TOOL_REFERENCE: ObjectShape =
    ObjectShape::tagged("tool_reference", &[required("tool_name", ValueKind::Formatted(TextFormat::Name))]);
static BROWSER_STATE: ObjectShape = ObjectShape::tagged("browser_state", &[]).open();

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

static SERVER_TOOL_USE: ObjectShape = ObjectShape::tagged(
    "server_tool_use",
    &[
        required("id", ValueKind::Formatted(TextFormat::ServerId)),
        required("name", ValueKind::OneOf(SERVER_TOOLS)),
        required("input", ValueKind::Dictionary),
        CALLER_FIELD,
    ],
)
.with_cache_control();

const SERVER_RESULT: &[FieldRule] = &[
    required("tool_use_id", ValueKind::Formatted(TextFormat::ServerId)),
    required("content", ValueKind::Any),
    CALLER_FIELD,
];

static WEB_SEARCH_RESULT: ObjectShape =
    ObjectShape::tagged("web_search_tool_result", SERVER_RESULT).with_cache_control();
static WEB_FETCH_RESULT: ObjectShape =
    ObjectShape::tagged("web_fetch_tool_result", SERVER_RESULT).with_cache_control();
static CODE_EXECUTION_RESULT: ObjectShape =
    ObjectShape::tagged("code_execution_tool_result", SERVER_RESULT).with_cache_control();
static BASH_RESULT: ObjectShape =
    ObjectShape::tagged("bash_code_execution_tool_result", SERVER_RESULT).with_cache_control();
static TEXT_EDITOR_RESULT: ObjectShape =
    ObjectShape::tagged("text_editor_code_execution_tool_result", SERVER_RESULT).with_cache_control();
static TOOL_SEARCH_RESULT: ObjectShape =
    ObjectShape::tagged("tool_search_tool_result", SERVER_RESULT).with_cache_control();
static ADVISOR_RESULT: ObjectShape =
    ObjectShape::tagged("advisor_tool_result", SERVER_RESULT).with_cache_control().beta(&[Beta::Advisor]);

static CONTAINER_UPLOAD: ObjectShape =
    ObjectShape::tagged("container_upload", &[required("file_id", ValueKind::FilledText)])
        .with_cache_control();

const MCP: &[Beta] = &[Beta::McpClient, Beta::McpListing];
static MCP_TOOL_USE: ObjectShape = ObjectShape::tagged(
    "mcp_tool_use",
    &[
        required("id", ValueKind::Formatted(TextFormat::Id)),
        required("name", ValueKind::FilledText),
        required("input", ValueKind::Dictionary),
        required("server_name", ValueKind::FilledText),
    ],
)
.with_cache_control()
.beta(MCP);
static MCP_TOOL_RESULT: ObjectShape = ObjectShape::tagged(
    "mcp_tool_result",
    &[
        required("tool_use_id", ValueKind::Formatted(TextFormat::Id)),
        optional(
            "content",
            ValueKind::Either(&[ValueKind::Text, ValueKind::List(&ValueKind::Tagged(&INNER_TEXT))]),
        ),
        optional("is_error", ValueKind::Bool),
    ],
)
.with_cache_control()
.beta(MCP);
static MCP_TOOL_LISTING: ObjectShape =
    ObjectShape::tagged("mcp_tool_listing", &[]).open().beta(&[Beta::McpListing]);

static COMPACTION: ObjectShape = ObjectShape::tagged(
    "compaction",
    &[
        required("content", ValueKind::Text).or_null(),
        optional("encrypted_content", ValueKind::Text)
            .or_null()
            .when(FieldGate::Betas(&[Beta::ThresholdCompaction])),
        optional("signature", ValueKind::FilledText).when(FieldGate::Betas(&[Beta::Compaction])),
        optional("tool_changes", ValueKind::List(&ValueKind::Dictionary))
            .when(FieldGate::Betas(&[Beta::Compaction])),
    ],
)
.with_cache_control()
.beta(&[Beta::ThresholdCompaction, Beta::Compaction]);

static FALLBACK: ObjectShape = ObjectShape::tagged(
    "fallback",
    &[
        required("from", ValueKind::Any),
        required("to", ValueKind::Any),
        optional("trigger", ValueKind::Any).or_null(),
    ],
)
.beta(&[Beta::Fallbacks]);

const TOOL_CHANGE: &[Beta] = &[Beta::ToolChanges, Beta::InlineTools];
static NAMED_REFERENCE: ObjectShape =
    ObjectShape::tagged("tool_reference", &[required("name", ValueKind::Formatted(TextFormat::Name))]);
static MCP_TOOL_REFERENCE: ObjectShape = ObjectShape::tagged("mcp_tool_reference", &[]).open().beta(MCP);
static MCP_TOOLSET_REFERENCE: ObjectShape =
    ObjectShape::tagged("mcp_toolset_reference", &[]).open().beta(MCP);
static TOOL_DEFINITION: ObjectShape =
    ObjectShape::tagged("tool_definition", &[required("definition", ValueKind::Tagged(&TOOL))])
        .beta(&[Beta::InlineTools]);
static ADDED: TaggedUnion = TaggedUnion {
    shapes: &[&NAMED_REFERENCE, &MCP_TOOL_REFERENCE, &MCP_TOOLSET_REFERENCE, &TOOL_DEFINITION],
    default: None,
    accepts_cache_control: false,
};
static REMOVED: TaggedUnion = TaggedUnion {
    shapes: &[&NAMED_REFERENCE, &MCP_TOOL_REFERENCE, &MCP_TOOLSET_REFERENCE],
    default: None,
    accepts_cache_control: false,
};
static TOOL_ADDITION: ObjectShape =
    ObjectShape::tagged("tool_addition", &[required("tool", ValueKind::Tagged(&ADDED))]).beta(TOOL_CHANGE);
static TOOL_REMOVAL: ObjectShape =
    ObjectShape::tagged("tool_removal", &[required("tool", ValueKind::Tagged(&REMOVED))]).beta(TOOL_CHANGE);

static CACHE_EDIT: TaggedUnion = TaggedUnion {
    shapes: &[&ObjectShape::tagged("delete", &[required("cache_reference", ValueKind::FilledText)])],
    default: None,
    accepts_cache_control: false,
};
static CACHE_EDITS: ObjectShape = ObjectShape::tagged(
    "cache_edits",
    &[required("edits", ValueKind::List(&ValueKind::Tagged(&CACHE_EDIT)))],
)
.beta(&[Beta::CacheEdits]);
