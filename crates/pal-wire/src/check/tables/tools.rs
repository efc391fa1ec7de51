//! Tool definitions: the client's own, and those that the provider defines.

use crate::check::formats::Format;
use crate::check::rules::Beta;
use crate::check::shape::{Field, Kind, Shape, Tag, Union, optional, required};

/// An entry of `tools`.
pub(super) static TOOL: Union = Union {
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
    marks: true,
};

const CALLERS: &[&str] =
    &["direct", "code_execution_20250825", "code_execution_20260120", "code_execution_20260521"];

static INPUT_SCHEMA: Shape = Shape::plain(&[required("type", Kind::OneOf(&["object"]))]).open();

static CUSTOM: Shape = Shape::tagged(
    "custom",
    &[
        required("name", Kind::Formatted(Format::Name)),
        optional("description", Kind::Text),
        required("input_schema", Kind::Object(&INPUT_SCHEMA)),
        optional("strict", Kind::Bool),
        optional("defer_loading", Kind::Bool),
        optional("allowed_callers", Kind::List(&Kind::OneOf(CALLERS))),
        optional("eager_input_streaming", Kind::Bool).or_null(),
        optional("input_examples", Kind::List(&Kind::Dictionary)),
    ],
)
.with_marks();

/// A tool whose other fields differ from one date to the next, so that only the name is checked.
const fn dated(tag: &'static str, fields: &'static [Field]) -> Shape {
    Shape { tag: Tag::Dated(tag), fields, open: true, marks: true, betas: &[] }
}

const DEFER: Field = optional("defer_loading", Kind::Bool);

static BASH: Shape = dated("bash", &[required("name", Kind::OneOf(&["bash"])), DEFER]);
static TEXT_EDITOR: Shape = dated(
    "text_editor",
    &[required("name", Kind::OneOf(&["str_replace_based_edit_tool", "str_replace_editor"])), DEFER],
);
static MEMORY: Shape = dated("memory", &[required("name", Kind::OneOf(&["memory"])), DEFER]);
static CODE_EXECUTION: Shape =
    dated("code_execution", &[required("name", Kind::OneOf(&["code_execution"])), DEFER]);
static WEB_SEARCH: Shape = dated("web_search", &[required("name", Kind::OneOf(&["web_search"])), DEFER]);
static WEB_FETCH: Shape = dated("web_fetch", &[required("name", Kind::OneOf(&["web_fetch"])), DEFER]);
static SEARCH_REGEX: Shape =
    dated("tool_search_tool_regex", &[required("name", Kind::OneOf(&["tool_search_tool_regex"])), DEFER]);
static SEARCH_BM25: Shape =
    dated("tool_search_tool_bm25", &[required("name", Kind::OneOf(&["tool_search_tool_bm25"])), DEFER]);
static COMPUTER: Shape = dated("computer", &[required("name", Kind::OneOf(&["computer"])), DEFER]);
static COMPUTER_TOOLSET: Shape = dated("computer_toolset", &[]);
static BROWSER_TOOLSET: Shape = dated("browser_toolset", &[]);
static ADVISOR: Shape =
    dated("advisor", &[required("name", Kind::OneOf(&["advisor"])), DEFER]).beta(&[Beta::Advisor]);
static MCP_TOOLSET: Shape = Shape::tagged(
    "mcp_toolset",
    &[
        required("mcp_server_name", Kind::FilledText),
        optional("default_config", Kind::Dictionary).or_null(),
        optional("configs", Kind::Dictionary).or_null(),
    ],
)
.with_marks()
.beta(&[Beta::McpClient, Beta::McpListing]);
