//! Exported names in one place, because the GenAI conventions still change. `docs/telemetry.md` lists them.

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const AGENT: &str = "gen_ai.agent.name";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(super) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(super) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(super) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(super) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(super) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(super) const TOOL: &str = "gen_ai.tool.name";
pub(super) const TOOL_CALL: &str = "gen_ai.tool.call.id";
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(super) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const TOKEN_TYPE: &str = "gen_ai.token.type";
pub(super) const ERROR_TYPE: &str = "error.type";

pub(super) const SOURCE: &str = "pal.source";
pub(super) const KIND: &str = "pal.token.kind";
pub(super) const COST: &str = "pal.cost.usd";
pub(super) const TURNS: &str = "pal.turns";
pub(super) const DENIALS: &str = "pal.denials";
pub(super) const END: &str = "pal.end";
pub(super) const FIRST: &str = "pal.time_to_start_s";
pub(super) const RESULT_BYTES: &str = "pal.tool.result_bytes";
pub(super) const OUTCOME: &str = "pal.outcome";
pub(super) const CAUSE: &str = "pal.cause";
pub(super) const TOKENS: &str = "pal.tokens";
pub(super) const TOKENS_BEFORE: &str = "pal.tokens_before";
pub(super) const TOKENS_AFTER: &str = "pal.tokens_after";
pub(super) const HOW: &str = "pal.how";
pub(super) const TRIGGER: &str = "pal.trigger";
pub(super) const RESUMED: &str = "pal.resumed";

pub(super) const CHAT: &str = "chat";
pub(super) const INVOKE_AGENT: &str = "invoke_agent";
pub(super) const EXECUTE_TOOL: &str = "execute_tool";
pub(super) const EVENT_COMPACTION: &str = "pal.compaction";
pub(super) const EVENT_CACHE_BREAK: &str = "pal.cache.break";

/// Aggregation of an instrument.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum MetricShape {
    /// They are counted.
    Count,
    /// They are added up.
    Total,
    /// They are spread over buckets with these upper bounds.
    Spread(&'static [f64]),
}

/// Something that is measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct MetricInstrument {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) about: &'static str,
    pub(super) shape: MetricShape,
}

const TOKEN_BOUNDS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

const SECOND_BOUNDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

const RATIO_BOUNDS: &[f64] = &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99];

const fn instrument(
    name: &'static str,
    unit: &'static str,
    shape: MetricShape,
    about: &'static str,
) -> MetricInstrument {
    MetricInstrument { name, unit, about, shape }
}

pub(super) const TOKEN_USAGE: MetricInstrument = instrument(
    "gen_ai.client.token.usage",
    "{token}",
    MetricShape::Spread(TOKEN_BOUNDS),
    "Tokens of one request; input includes what was read from and written to the cache",
);
pub(super) const DURATION: MetricInstrument = instrument(
    "gen_ai.client.operation.duration",
    "s",
    MetricShape::Spread(SECOND_BOUNDS),
    "Time of one request or tool call",
);
pub(super) const TOKENS_BY_KIND: MetricInstrument =
    instrument("pal.tokens", "{token}", MetricShape::Count, "Tokens by kind; each counts once");
pub(super) const COST_USD: MetricInstrument =
    instrument("pal.cost.usd", "USD", MetricShape::Total, "What requests cost, where prices are known");
pub(super) const HIT_RATIO: MetricInstrument = instrument(
    "pal.cache.hit_ratio",
    "1",
    MetricShape::Spread(RATIO_BOUNDS),
    "Share of a request's prompt that was read from the cache",
);
pub(super) const BREAKS: MetricInstrument =
    instrument("pal.cache.breaks", "{break}", MetricShape::Count, "Reads from the cache that fell, by cause");
pub(super) const COMPACTIONS: MetricInstrument = instrument(
    "pal.compactions",
    "{compaction}",
    MetricShape::Count,
    "Compactions, by how and what set them off",
);
pub(super) const TOOL_CALLS: MetricInstrument =
    instrument("pal.tool.calls", "{call}", MetricShape::Count, "Calls of tools, by outcome");
pub(super) const TOOL_DENIALS: MetricInstrument =
    instrument("pal.tool.denials", "{call}", MetricShape::Count, "Calls of tools that were refused");
pub(super) const SESSIONS: MetricInstrument =
    instrument("pal.sessions", "{session}", MetricShape::Count, "Sessions that were opened");

/// All instruments, in the order in which they are sent.
pub(super) const INSTRUMENTS: [MetricInstrument; 10] = [
    TOKEN_USAGE,
    DURATION,
    TOKENS_BY_KIND,
    COST_USD,
    HIT_RATIO,
    BREAKS,
    COMPACTIONS,
    TOOL_CALLS,
    TOOL_DENIALS,
    SESSIONS,
];
