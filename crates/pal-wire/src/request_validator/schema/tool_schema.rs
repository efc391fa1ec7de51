//! Schema of tool definitions: client tools, and those that the provider defines.

use crate::request_validator::request_rules::Beta;
use crate::request_validator::text_format::TextFormat;
use crate::request_validator::value_shape::{
    FieldRule, ObjectShape, ShapeTag, TaggedUnion, ValueKind, optional, required,
};

/// An entry of `tools`.
pub(super) static TOOL: TaggedUnion = TaggedUnion {
    shapes: &[
        &CUSTOM,
        &BASH,
        &TEXT_EDITOR,
        &MEMORY,
        &CODE_EXECUTION,
        &WEB_SEARCH,
        &WEB_FETCH,
        &SEARCH_REGEX,
        &SEARCH_BM25,
        &COMPUTER,
        &COMPUTER_TOOLSET,
        &BROWSER_TOOLSET,
        &ADVISOR,
        &MCP_TOOLSET,
    ],
    default: Some("custom"),
    accepts_cache_control: true,
};

const CALLERS: &[&str] =
    &["direct", "code_execution_20250825", "code_execution_20260120", "code_execution_20260521"];

static INPUT_SCHEMA: ObjectShape =
    ObjectShape::plain(&[required("type", ValueKind::OneOf(&["object"]))]).open();

static CUSTOM: ObjectShape = ObjectShape::tagged(
    "custom",
    &[
        required("name", ValueKind::Formatted(TextFormat::Name)),
        optional("description", ValueKind::Text),
        required("input_schema", ValueKind::Object(&INPUT_SCHEMA)),
        optional("strict", ValueKind::Bool),
        optional("defer_loading", ValueKind::Bool),
        optional("allowed_callers", ValueKind::List(&ValueKind::OneOf(CALLERS))),
        optional("eager_input_streaming", ValueKind::Bool).or_null(),
        optional("input_examples", ValueKind::List(&ValueKind::Dictionary)),
    ],
)
.with_cache_control();

/// A provider tool whose fields depend on its version date, so that only the name is checked.
const fn dated(tag: &'static str, fields: &'static [FieldRule]) -> ObjectShape {
    ObjectShape { tag: ShapeTag::Dated(tag), fields, open: true, accepts_cache_control: true, betas: &[] }
}

const DEFER: FieldRule = optional("defer_loading", ValueKind::Bool);

static BASH: ObjectShape = dated("bash", &[required("name", ValueKind::OneOf(&["bash"])), DEFER]);
static TEXT_EDITOR: ObjectShape = dated(
    "text_editor",
    &[required("name", ValueKind::OneOf(&["str_replace_based_edit_tool", "str_replace_editor"])), DEFER],
);
static MEMORY: ObjectShape = dated("memory", &[required("name", ValueKind::OneOf(&["memory"])), DEFER]);
static CODE_EXECUTION: ObjectShape =
    dated("code_execution", &[required("name", ValueKind::OneOf(&["code_execution"])), DEFER]);
static WEB_SEARCH: ObjectShape =
    dated("web_search", &[required("name", ValueKind::OneOf(&["web_search"])), DEFER]);
static WEB_FETCH: ObjectShape =
    dated("web_fetch", &[required("name", ValueKind::OneOf(&["web_fetch"])), DEFER]);
static SEARCH_REGEX: ObjectShape = dated(
    "tool_search_tool_regex",
    &[required("name", ValueKind::OneOf(&["tool_search_tool_regex"])), DEFER],
);
static SEARCH_BM25: ObjectShape =
    dated("tool_search_tool_bm25", &[required("name", ValueKind::OneOf(&["tool_search_tool_bm25"])), DEFER]);
static COMPUTER: ObjectShape = dated("computer", &[required("name", ValueKind::OneOf(&["computer"])), DEFER]);
static COMPUTER_TOOLSET: ObjectShape = dated("computer_toolset", &[]);
static BROWSER_TOOLSET: ObjectShape = dated("browser_toolset", &[]);
static ADVISOR: ObjectShape =
    dated("advisor", &[required("name", ValueKind::OneOf(&["advisor"])), DEFER]).beta(&[Beta::Advisor]);
static MCP_TOOLSET: ObjectShape = ObjectShape::tagged(
    "mcp_toolset",
    &[
        required("mcp_server_name", ValueKind::FilledText),
        optional("default_config", ValueKind::Dictionary).or_null(),
        optional("configs", ValueKind::Dictionary).or_null(),
    ],
)
.with_cache_control()
.beta(&[Beta::McpClient, Beta::McpListing]);
