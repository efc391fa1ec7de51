//! The body: its own fields, messages, and everything that is neither a block nor a tool.

use crate::check::rules::Beta;
use crate::check::shape::{Field, Gate, Kind, Shape, Tag, Union, optional, required};

use super::blocks::{BLOCKS, SYSTEM_BLOCKS};
use super::tools::TOOL;

/// A whole request.
pub(crate) static BODY: Kind = Kind::Object(&Shape {
    tag: Tag::None,
    fields: FIELDS,
    open: false,
    // Automatic caching.
    marks: true,
    betas: &[],
});

static FIELDS: &[Field] = &[
    required("model", Kind::FilledText),
    required("max_tokens", Kind::Integer(0)).when(Gate::Answers),
    required("messages", Kind::List(&Kind::Object(&MESSAGE))),
    optional("system", Kind::Either(&[Kind::Text, Kind::List(&Kind::Tagged(&SYSTEM_BLOCKS))])),
    optional("tools", Kind::List(&Kind::Tagged(&TOOL))),
    optional("tool_choice", Kind::Tagged(&TOOL_CHOICE)),
    optional("thinking", Kind::Tagged(&THINKING)),
    optional("output_config", Kind::Object(&OUTPUT_CONFIG)),
    optional("diagnostics", Kind::Object(&DIAGNOSTICS)).or_null(),
    optional("container", Kind::Either(&[Kind::Text, Kind::Object(&CONTAINER)])).or_null(),
    optional("metadata", Kind::Object(&METADATA)),
    optional("service_tier", Kind::OneOf(&["auto", "standard_only"])),
    optional("speed", Kind::OneOf(&["standard", "fast"])).or_null(),
    optional("inference_geo", Kind::Text).or_null(),
    optional("stop_sequences", Kind::List(&Kind::Text)),
    optional("stream", Kind::Bool).when(Gate::Answers),
    optional("temperature", Kind::Number).when(Gate::OldVersion),
    optional("top_p", Kind::Number).when(Gate::OldVersion),
    optional("top_k", Kind::Integer(0)).when(Gate::OldVersion),
    optional("compaction", Kind::Tagged(&COMPACTION)).or_null().when(Gate::Betas(&[Beta::Compaction])),
    optional("context_management", Kind::Object(&CONTEXT_MANAGEMENT))
        .or_null()
        .when(Gate::Betas(&[Beta::ContextManagement, Beta::ThresholdCompaction])),
    optional("thread", Kind::Tagged(&THREAD)).when(Gate::Betas(&[Beta::Threads])),
    optional("mcp_servers", Kind::List(&Kind::Tagged(&MCP_SERVER)))
        .when(Gate::Betas(&[Beta::McpClient, Beta::McpListing])),
    optional("fallbacks", Kind::Either(&[Kind::OneOf(&["default"]), Kind::List(&Kind::Dictionary)]))
        .when(Gate::Betas(&[Beta::Fallbacks])),
    optional("fallback_credit_token", Kind::FilledText).when(Gate::Betas(&[Beta::FallbackCredit])),
];

static MESSAGE: Shape = Shape::plain(&[
    required("role", Kind::OneOf(&["user", "assistant", "system"])),
    required("content", Kind::Either(&[Kind::Text, Kind::List(&Kind::Tagged(&BLOCKS))])),
    optional("clear_at", Kind::OneOf(&["next_user_message"])).when(Gate::Betas(&[Beta::ClearAt])),
    optional("output_config", Kind::Object(&MESSAGE_OUTPUT_CONFIG))
        .when(Gate::Betas(&[Beta::MessageOutputConfig])),
]);

const EFFORT: Kind = Kind::OneOf(&["low", "medium", "high", "xhigh", "max"]);
static MESSAGE_OUTPUT_CONFIG: Shape = Shape::plain(&[required("effort", EFFORT)]);

static OUTPUT_CONFIG: Shape = Shape::plain(&[
    optional("effort", EFFORT).or_null(),
    optional("format", Kind::Tagged(&OUTPUT_FORMAT)).or_null(),
    optional("task_budget", Kind::Tagged(&TASK_BUDGET)).or_null().when(Gate::Betas(&[Beta::TaskBudgets])),
]);
static OUTPUT_FORMAT: Union = Union {
    shapes: &[&Shape::tagged("json_schema", &[required("schema", Kind::Dictionary)])],
    default: None,
    marks: false,
};
static TASK_BUDGET: Union = Union {
    shapes: &[&Shape::tagged(
        "tokens",
        &[required("total", Kind::Integer(1)), optional("remaining", Kind::Integer(0)).or_null()],
    )],
    default: None,
    marks: false,
};

const PARALLEL: Field = optional("disable_parallel_tool_use", Kind::Bool);
static TOOL_CHOICE: Union = Union {
    shapes: &[
        &Shape::tagged("auto", &[PARALLEL]),
        &Shape::tagged("any", &[PARALLEL]),
        &Shape::tagged("tool", &[required("name", Kind::FilledText), PARALLEL]),
        &Shape::tagged("none", &[]),
    ],
    default: None,
    marks: false,
};

const DISPLAY: Field = optional("display", Kind::OneOf(&["summarized", "omitted", "updates"])).or_null();
static BLOCK_BINDING: Shape = Shape::plain(&[optional("prefix_mismatch_behavior", Kind::FilledText)]);
static THINKING: Union = Union {
    shapes: &[
        &Shape::tagged(
            "adaptive",
            &[
                DISPLAY,
                optional("block_binding", Kind::Object(&BLOCK_BINDING))
                    .or_null()
                    .when(Gate::Betas(&[Beta::BlockBinding])),
            ],
        ),
        &Shape::tagged("enabled", &[required("budget_tokens", Kind::Integer(1024)), DISPLAY]),
        &Shape::tagged("disabled", &[]),
        &Shape::tagged("between_tools", &[]),
    ],
    default: None,
    marks: false,
};

static DIAGNOSTICS: Shape = Shape::plain(&[required("previous_message_id", Kind::FilledText).or_null()]);
static METADATA: Shape = Shape::plain(&[optional("user_id", Kind::Text).or_null()]);
static CONTAINER: Shape = Shape::plain(&[
    optional("id", Kind::Text).or_null(),
    optional("skills", Kind::List(&Kind::Tagged(&SKILL))).or_null(),
]);
const SKILL_FIELDS: &[Field] =
    &[required("skill_id", Kind::FilledText), optional("version", Kind::FilledText)];
static SKILL: Union = Union {
    shapes: &[&Shape::tagged("anthropic", SKILL_FIELDS), &Shape::tagged("custom", SKILL_FIELDS)],
    default: None,
    marks: false,
};

static COMPACTION: Union = Union {
    shapes: &[&Shape::tagged("summarize", &[optional("instructions", Kind::ShortText(16_384)).or_null()])],
    default: None,
    marks: false,
};

static CONTEXT_MANAGEMENT: Shape = Shape::plain(&[optional("edits", Kind::List(&Kind::Tagged(&EDIT)))]);
static EDIT: Union =
    Union { shapes: &[&CLEAR_TOOL_USES, &CLEAR_THINKING, &COMPACT], default: None, marks: false };

const VALUE: &[Field] = &[required("value", Kind::Integer(0))];
static INPUT_TOKENS: Shape = Shape::tagged("input_tokens", VALUE);
static TOOL_USES: Shape = Shape::tagged("tool_uses", VALUE);
static TOKENS_OR_USES: Union = Union { shapes: &[&INPUT_TOKENS, &TOOL_USES], default: None, marks: false };
static TOKENS: Union = Union { shapes: &[&INPUT_TOKENS], default: None, marks: false };
static USES: Union = Union { shapes: &[&TOOL_USES], default: None, marks: false };
static THINKING_TURNS: Union = Union {
    shapes: &[
        &Shape::tagged("thinking_turns", &[required("value", Kind::Integer(1))]),
        &Shape::tagged("all", &[]),
    ],
    default: None,
    marks: false,
};
static COMPACT_TRIGGER: Union = Union {
    shapes: &[&Shape::tagged("input_tokens", &[required("value", Kind::Integer(50_000))])],
    default: None,
    marks: false,
};

static CLEAR_TOOL_USES: Shape = Shape::tagged(
    "clear_tool_uses_20250919",
    &[
        optional("trigger", Kind::Tagged(&TOKENS_OR_USES)),
        optional("keep", Kind::Tagged(&USES)),
        optional("clear_at_least", Kind::Tagged(&TOKENS)).or_null(),
        optional("exclude_tools", Kind::List(&Kind::Text)).or_null(),
        optional("clear_tool_inputs", Kind::Either(&[Kind::List(&Kind::Text), Kind::Bool])).or_null(),
    ],
)
.beta(&[Beta::ContextManagement]);
static CLEAR_THINKING: Shape = Shape::tagged(
    "clear_thinking_20251015",
    &[optional("keep", Kind::Either(&[Kind::OneOf(&["all"]), Kind::Tagged(&THINKING_TURNS)]))],
)
.beta(&[Beta::ContextManagement]);
static COMPACT: Shape = Shape::tagged(
    "compact_20260112",
    &[
        optional("trigger", Kind::Tagged(&COMPACT_TRIGGER)).or_null(),
        optional("pause_after_compaction", Kind::Bool),
        optional("instructions", Kind::Text).or_null(),
    ],
)
.beta(&[Beta::ThresholdCompaction]);

static THREAD: Union = Union {
    shapes: &[
        &Shape::tagged("create", &[]),
        &Shape::tagged("continue", &[required("previous_message_id", Kind::FilledText)]),
    ],
    default: None,
    marks: false,
};
static MCP_SERVER: Union = Union {
    shapes: &[&Shape::tagged(
        "url",
        &[
            required("url", Kind::FilledText),
            required("name", Kind::FilledText),
            optional("authorization_token", Kind::Text).or_null(),
            optional("tool_configuration", Kind::Dictionary).or_null(),
        ],
    )],
    default: None,
    marks: false,
};
