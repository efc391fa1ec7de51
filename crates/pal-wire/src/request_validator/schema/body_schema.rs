//! Schema of the body: top-level fields, messages, and everything except blocks and tools.

use crate::request_validator::request_rules::Beta;
use crate::request_validator::value_shape::{
    FieldGate, FieldRule, ObjectShape, ShapeTag, TaggedUnion, ValueKind, optional, required,
};

use super::block_schema::{BLOCKS, SYSTEM_BLOCKS};
use super::tool_schema::TOOL;

/// A whole request.
pub(crate) static BODY: ValueKind = ValueKind::Object(&ObjectShape {
    tag: ShapeTag::None,
    fields: FIELDS,
    open: false,
    // Automatic caching.
    accepts_cache_control: true,
    betas: &[],
});

static FIELDS: &[FieldRule] = &[
    required("model", ValueKind::FilledText),
    required("max_tokens", ValueKind::Integer(0)).when(FieldGate::Answers),
    required("messages", ValueKind::List(&ValueKind::Object(&MESSAGE))),
    optional(
        "system",
        ValueKind::Either(&[ValueKind::Text, ValueKind::List(&ValueKind::Tagged(&SYSTEM_BLOCKS))]),
    ),
    optional("tools", ValueKind::List(&ValueKind::Tagged(&TOOL))),
    optional("tool_choice", ValueKind::Tagged(&TOOL_CHOICE)),
    optional("thinking", ValueKind::Tagged(&THINKING)),
    optional("output_config", ValueKind::Object(&OUTPUT_CONFIG)),
    optional("diagnostics", ValueKind::Object(&DIAGNOSTICS)).or_null(),
    optional("container", ValueKind::Either(&[ValueKind::Text, ValueKind::Object(&CONTAINER)])).or_null(),
    optional("metadata", ValueKind::Object(&METADATA)),
    optional("service_tier", ValueKind::OneOf(&["auto", "standard_only"])),
    optional("speed", ValueKind::OneOf(&["standard", "fast"])).or_null(),
    optional("inference_geo", ValueKind::Text).or_null(),
    optional("stop_sequences", ValueKind::List(&ValueKind::Text)),
    optional("stream", ValueKind::Bool).when(FieldGate::Answers),
    optional("temperature", ValueKind::Number).when(FieldGate::OldVersion),
    optional("top_p", ValueKind::Number).when(FieldGate::OldVersion),
    optional("top_k", ValueKind::Integer(0)).when(FieldGate::OldVersion),
    optional("compaction", ValueKind::Tagged(&COMPACTION))
        .or_null()
        .when(FieldGate::Betas(&[Beta::Compaction])),
    optional("context_management", ValueKind::Object(&CONTEXT_MANAGEMENT))
        .or_null()
        .when(FieldGate::Betas(&[Beta::ContextManagement, Beta::ThresholdCompaction])),
    optional("thread", ValueKind::Tagged(&THREAD)).when(FieldGate::Betas(&[Beta::Threads])),
    optional("mcp_servers", ValueKind::List(&ValueKind::Tagged(&MCP_SERVER)))
        .when(FieldGate::Betas(&[Beta::McpClient, Beta::McpListing])),
    optional(
        "fallbacks",
        ValueKind::Either(&[ValueKind::OneOf(&["default"]), ValueKind::List(&ValueKind::Dictionary)]),
    )
    .when(FieldGate::Betas(&[Beta::Fallbacks])),
    optional("fallback_credit_token", ValueKind::FilledText).when(FieldGate::Betas(&[Beta::FallbackCredit])),
];

static MESSAGE: ObjectShape = ObjectShape::plain(&[
    required("role", ValueKind::OneOf(&["user", "assistant", "system"])),
    required("content", ValueKind::Either(&[ValueKind::Text, ValueKind::List(&ValueKind::Tagged(&BLOCKS))])),
    optional("clear_at", ValueKind::OneOf(&["next_user_message"])).when(FieldGate::Betas(&[Beta::ClearAt])),
    optional("output_config", ValueKind::Object(&MESSAGE_OUTPUT_CONFIG))
        .when(FieldGate::Betas(&[Beta::MessageOutputConfig])),
]);

const EFFORT: ValueKind = ValueKind::OneOf(&["low", "medium", "high", "xhigh", "max"]);
static MESSAGE_OUTPUT_CONFIG: ObjectShape = ObjectShape::plain(&[required("effort", EFFORT)]);

static OUTPUT_CONFIG: ObjectShape = ObjectShape::plain(&[
    optional("effort", EFFORT).or_null(),
    optional("format", ValueKind::Tagged(&OUTPUT_FORMAT)).or_null(),
    optional("task_budget", ValueKind::Tagged(&TASK_BUDGET))
        .or_null()
        .when(FieldGate::Betas(&[Beta::TaskBudgets])),
]);
static OUTPUT_FORMAT: TaggedUnion = TaggedUnion {
    shapes: &[&ObjectShape::tagged("json_schema", &[required("schema", ValueKind::Dictionary)])],
    default: None,
    accepts_cache_control: false,
};
static TASK_BUDGET: TaggedUnion = TaggedUnion {
    shapes: &[&ObjectShape::tagged(
        "tokens",
        &[required("total", ValueKind::Integer(1)), optional("remaining", ValueKind::Integer(0)).or_null()],
    )],
    default: None,
    accepts_cache_control: false,
};

const PARALLEL: FieldRule = optional("disable_parallel_tool_use", ValueKind::Bool);
static TOOL_CHOICE: TaggedUnion = TaggedUnion {
    shapes: &[
        &ObjectShape::tagged("auto", &[PARALLEL]),
        &ObjectShape::tagged("any", &[PARALLEL]),
        &ObjectShape::tagged("tool", &[required("name", ValueKind::FilledText), PARALLEL]),
        &ObjectShape::tagged("none", &[]),
    ],
    default: None,
    accepts_cache_control: false,
};

const DISPLAY: FieldRule =
    optional("display", ValueKind::OneOf(&["summarized", "omitted", "updates"])).or_null();
static BLOCK_BINDING: ObjectShape =
    ObjectShape::plain(&[optional("prefix_mismatch_behavior", ValueKind::FilledText)]);
static THINKING: TaggedUnion = TaggedUnion {
    shapes: &[
        &ObjectShape::tagged(
            "adaptive",
            &[
                DISPLAY,
                optional("block_binding", ValueKind::Object(&BLOCK_BINDING))
                    .or_null()
                    .when(FieldGate::Betas(&[Beta::BlockBinding])),
            ],
        ),
        &ObjectShape::tagged("enabled", &[required("budget_tokens", ValueKind::Integer(1024)), DISPLAY]),
        &ObjectShape::tagged("disabled", &[]),
        &ObjectShape::tagged("between_tools", &[]),
    ],
    default: None,
    accepts_cache_control: false,
};

static DIAGNOSTICS: ObjectShape =
    ObjectShape::plain(&[required("previous_message_id", ValueKind::FilledText).or_null()]);
static METADATA: ObjectShape = ObjectShape::plain(&[optional("user_id", ValueKind::Text).or_null()]);
static CONTAINER: ObjectShape = ObjectShape::plain(&[
    optional("id", ValueKind::Text).or_null(),
    optional("skills", ValueKind::List(&ValueKind::Tagged(&SKILL))).or_null(),
]);
const SKILL_FIELDS: &[FieldRule] =
    &[required("skill_id", ValueKind::FilledText), optional("version", ValueKind::FilledText)];
static SKILL: TaggedUnion = TaggedUnion {
    shapes: &[&ObjectShape::tagged("anthropic", SKILL_FIELDS), &ObjectShape::tagged("custom", SKILL_FIELDS)],
    default: None,
    accepts_cache_control: false,
};

static COMPACTION: TaggedUnion = TaggedUnion {
    shapes: &[&ObjectShape::tagged(
        "summarize",
        &[optional("instructions", ValueKind::ShortText(16_384)).or_null()],
    )],
    default: None,
    accepts_cache_control: false,
};

static CONTEXT_MANAGEMENT: ObjectShape =
    ObjectShape::plain(&[optional("edits", ValueKind::List(&ValueKind::Tagged(&EDIT)))]);
static EDIT: TaggedUnion = TaggedUnion {
    shapes: &[&CLEAR_TOOL_USES, &CLEAR_THINKING, &COMPACT],
    default: None,
    accepts_cache_control: false,
};

const VALUE: &[FieldRule] = &[required("value", ValueKind::Integer(0))];
static INPUT_TOKENS: ObjectShape = ObjectShape::tagged("input_tokens", VALUE);
static TOOL_USES: ObjectShape = ObjectShape::tagged("tool_uses", VALUE);
static TOKENS_OR_USES: TaggedUnion =
    TaggedUnion { shapes: &[&INPUT_TOKENS, &TOOL_USES], default: None, accepts_cache_control: false };
static TOKENS: TaggedUnion =
    TaggedUnion { shapes: &[&INPUT_TOKENS], default: None, accepts_cache_control: false };
static USES: TaggedUnion = TaggedUnion { shapes: &[&TOOL_USES], default: None, accepts_cache_control: false };
static THINKING_TURNS: TaggedUnion = TaggedUnion {
    shapes: &[
        &ObjectShape::tagged("thinking_turns", &[required("value", ValueKind::Integer(1))]),
        &ObjectShape::tagged("all", &[]),
    ],
    default: None,
    accepts_cache_control: false,
};
static COMPACT_TRIGGER: TaggedUnion = TaggedUnion {
    shapes: &[&ObjectShape::tagged("input_tokens", &[required("value", ValueKind::Integer(50_000))])],
    default: None,
    accepts_cache_control: false,
};

static CLEAR_TOOL_USES: ObjectShape = ObjectShape::tagged(
    "clear_tool_uses_20250919",
    &[
        optional("trigger", ValueKind::Tagged(&TOKENS_OR_USES)),
        optional("keep", ValueKind::Tagged(&USES)),
        optional("clear_at_least", ValueKind::Tagged(&TOKENS)).or_null(),
        optional("exclude_tools", ValueKind::List(&ValueKind::Text)).or_null(),
        optional(
            "clear_tool_inputs",
            ValueKind::Either(&[ValueKind::List(&ValueKind::Text), ValueKind::Bool]),
        )
        .or_null(),
    ],
)
.beta(&[Beta::ContextManagement]);
static CLEAR_THINKING: ObjectShape = ObjectShape::tagged(
    "clear_thinking_20251015",
    &[optional("keep", ValueKind::Either(&[ValueKind::OneOf(&["all"]), ValueKind::Tagged(&THINKING_TURNS)]))],
)
.beta(&[Beta::ContextManagement]);
static COMPACT: ObjectShape = ObjectShape::tagged(
    "compact_20260112",
    &[
        optional("trigger", ValueKind::Tagged(&COMPACT_TRIGGER)).or_null(),
        optional("pause_after_compaction", ValueKind::Bool),
        optional("instructions", ValueKind::Text).or_null(),
    ],
)
.beta(&[Beta::ThresholdCompaction]);

static THREAD: TaggedUnion = TaggedUnion {
    shapes: &[
        &ObjectShape::tagged("create", &[]),
        &ObjectShape::tagged("continue", &[required("previous_message_id", ValueKind::FilledText)]),
    ],
    default: None,
    accepts_cache_control: false,
};
static MCP_SERVER: TaggedUnion = TaggedUnion {
    shapes: &[&ObjectShape::tagged(
        "url",
        &[
            required("url", ValueKind::FilledText),
            required("name", ValueKind::FilledText),
            optional("authorization_token", ValueKind::Text).or_null(),
            optional("tool_configuration", ValueKind::Dictionary).or_null(),
        ],
    )],
    default: None,
    accepts_cache_control: false,
};
