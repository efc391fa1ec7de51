//! The table of all settings.

use serde_json::Value;

use crate::kind::Kind;
use crate::trust::Trust;

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name; a dot stands between a table and what is in it.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// What holds when nobody sets it, as JSON; `null` for nothing.
    pub default: &'static str,
    /// Variables that set it; the first that is set counts.
    pub variables: &'static [&'static str],
    /// Whether a file that came with a repository may set it.
    pub trust: Trust,
    /// Whether what all places say holds together, instead of the nearest place alone.
    pub adds_up: bool,
    /// What it does, in one line.
    pub about: &'static str,
}

impl Key {
    /// The setting of this name.
    pub fn find(name: &str) -> Option<&'static Key> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// What holds when nobody sets it.
    pub fn default_value(&self) -> Value {
        serde_json::from_str(self.default).unwrap_or(Value::Null)
    }

    const fn by(self, variables: &'static [&'static str]) -> Key {
        Key { variables, ..self }
    }

    const fn adding_up(self) -> Key {
        Key { adds_up: true, ..self }
    }
}

const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    trust: Trust,
    about: &'static str,
) -> Key {
    Key { name, kind, default, variables: &[], trust, adds_up: false, about }
}

// Strict to lax, cheap to dear: a project may only go back in these lists.
const MODES: &[&str] = &["plan", "default", "accept-edits", "bypass"];
const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];
const LIFETIMES: &[&str] = &["5m", "1h"];

/// All settings, in the order in which people read them.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key("model", Kind::Text, "null", Trust::Needed, "The model that is asked; the built-in one unless set").by(&["PAL_MODEL"]),
    key("effort", Kind::OneOf(EFFORTS), "null", Trust::UnlessStricter(EFFORTS), "How hard models think; their own measure unless set").by(&["PAL_EFFORT"]),
    key("small_model", Kind::Text, "null", Trust::Needed, "The model for small questions; the provider's cheapest unless set").by(&["PAL_SMALL_MODEL"]),
    key("max_output_tokens", Kind::Count { from: 1 }, "8000", Trust::UnlessLower, "Most tokens of one answer").by(&["PAL_MAX_OUTPUT_TOKENS"]),
    key("max_retries", Kind::Count { from: 0 }, "8", Trust::UnlessLower, "How often a request that failed before its answer began is tried again").by(&["PAL_MAX_RETRIES"]),
    key("cache_lifetime", Kind::OneOf(LIFETIMES), "\"5m\"", Trust::UnlessStricter(LIFETIMES), "For how long the provider's cache is asked to keep what is marked").by(&["PAL_CACHE_LIFETIME"]),
    key("anthropic.api_key", Kind::Secret, "null", Trust::Needed, "The key for Claude; only from the environment").by(&["ANTHROPIC_API_KEY"]),
    key("anthropic.auth_token", Kind::Secret, "null", Trust::Needed, "A bearer token in its place; only from the environment").by(&["ANTHROPIC_AUTH_TOKEN"]),
    key("anthropic.base_url", Kind::Address, "null", Trust::Needed, "Where Claude is asked; the provider's own address unless set").by(&["ANTHROPIC_BASE_URL"]),
    key("openai.api_key", Kind::Secret, "null", Trust::Needed, "The key for GPT; only from the environment").by(&["OPENAI_API_KEY"]),
    key("openai.base_url", Kind::Address, "null", Trust::Needed, "Where GPT or a compatible server is asked; the provider's own address unless set").by(&["OPENAI_BASE_URL"]),
    key("allow_plain_http", Kind::YesNo, "false", Trust::UnlessOff, "Whether other machines may be spoken to without encryption").by(&["PAL_ALLOW_PLAIN_HTTP"]),

    key("permissions.mode", Kind::OneOf(MODES), "\"default\"", Trust::UnlessStricter(MODES), "What may be done without asking").by(&["PAL_PERMISSION_MODE"]),
    key("permissions.allow", Kind::Rules, "[]", Trust::Needed, "Calls that need no asking").adding_up(),
    key("permissions.ask", Kind::Rules, "[]", Trust::Free, "Calls that are asked about in every mode").adding_up(),
    key("permissions.deny", Kind::Rules, "[]", Trust::Free, "Calls that are refused").adding_up(),
    key("permissions.directories", Kind::Paths, "[]", Trust::Needed, "Directories besides the project that sessions may work in"),
    key("trusted", Kind::Paths, "[]", Trust::Needed, "Projects whose own settings may run commands and widen rights"),
    key("sandbox", Kind::OneOf(&["auto", "on", "off"]), "\"auto\"", Trust::UnlessOneOf(&["on"]), "Sandbox for shell commands. auto: commands that no rule and no person allowed run read-only in it, and all commands of bypass mode; on: allowed commands, too; off: none, and read-only commands are asked about").by(&["PAL_SANDBOX"]),
    key("sandbox_network", Kind::YesNo, "false", Trust::UnlessOff, "Whether the sandbox of bypass mode, and of `sandbox = \"on\"`, reaches the network; web pages included").by(&["PAL_SANDBOX_NETWORK"]),
    key("sandbox_writable", Kind::Paths, "[]", Trust::Needed, "Folders that the sandbox may write to besides the project and temporary files"),
    key("web_private_addresses", Kind::YesNo, "false", Trust::UnlessOff, "Whether pages of this machine and its own network may be fetched").by(&["PAL_WEB_PRIVATE_ADDRESSES"]),
    key("deferred_tools", Kind::Texts, "[]", Trust::Free, "Tools that the model finds by searching instead of having them in its list"),
    key("secret_variables", Kind::Texts, "[]", Trust::Needed, "Variables that commands do not get to see, besides those that look like secrets; `!NAME` lets one through"),
    key("hooks", Kind::Hooks, "{}", Trust::Needed, "Commands that run at events of a session (docs/hooks.md)").adding_up(),
    key("mcp_servers", Kind::Servers, "{}", Trust::Needed, "MCP servers by name, besides those of .mcp.json (docs/mcp.md)").adding_up(),
    key("mcp_start_limit_s", Kind::Count { from: 1 }, "30", Trust::UnlessLower, "How many seconds a server may take to come up"),
    key("mcp_call_limit_s", Kind::Count { from: 1 }, "60", Trust::UnlessLower, "How many seconds a call of a server's tool may take"),

    key("memory_bytes_max", Kind::Count { from: 0 }, "60000", Trust::UnlessLower, "How many bytes of memories that fit are handed over until a compaction").by(&["PAL_MEMORY_BYTES_MAX"]),
    key("embeddings", Kind::Path, "null", Trust::Needed, "The folder of a model by which memories are found that say the same in other words; by words alone unless set (docs/memory.md)").by(&["PAL_EMBEDDINGS"]),
    key("notes", Kind::OneOf(&["off", "fork", "main"]), "\"off\"", Trust::UnlessOneOf(&["off"]), "Who keeps notes of the session, which a compaction takes for a summary: nobody, a fork of the conversation, or the agent itself in passing").by(&["PAL_NOTES"]),
    key("notes_first_tokens", Kind::Count { from: 0 }, "10000", Trust::Needed, "How many tokens of conversation come before the first notes"),
    key("notes_growth_tokens", Kind::Count { from: 1 }, "5000", Trust::Needed, "By how many tokens the conversation grows at least before they are written again"),
    key("notes_growth_share", Kind::Count { from: 1 }, "5", Trust::Needed, "And by one so-many-th of what is in sight, since a fork reads all of it"),
    key("notes_calls", Kind::Count { from: 0 }, "3", Trust::Needed, "How many calls lie in between, unless the last answer made none"),
    key("background_tokens_daily", Kind::Count { from: 0 }, "2000000", Trust::UnlessLower, "How many tokens all background work of a day (UTC) may take, those from the cache counted a tenth; 0 for no background work").by(&["PAL_BACKGROUND_TOKENS_DAILY"]),
    key("extraction", Kind::YesNo, "true", Trust::UnlessOff, "Whether memories are drawn from a conversation that has come to rest").by(&["PAL_EXTRACTION"]),
    key("extraction_tokens", Kind::Count { from: 0 }, "2000", Trust::Needed, "How many tokens of a conversation have to be new for that, and at least a sixteenth of what is in sight; 0 for any").by(&["PAL_EXTRACTION_TOKENS"]),
    key("extraction_wait_s", Kind::Count { from: 0 }, "20", Trust::UnlessLower, "How many seconds `pal -p` waits for it at its end"),
    key("dreaming", Kind::YesNo, "true", Trust::UnlessOff, "Whether memories are put in order in the background").by(&["PAL_DREAMING"]),
    key("dream_hours", Kind::Count { from: 1 }, "24", Trust::Needed, "So many hours after the last time"),
    key("dream_sessions", Kind::Count { from: 0 }, "5", Trust::Needed, "After so many other sessions since then"),
    key("progress_s", Kind::Count { from: 1 }, "30", Trust::Needed, "Every how many seconds the small model says what agents do"),
    key("max_turns", Kind::Count { from: 1 }, "null", Trust::UnlessLower, "Most answers of the model to one prompt").by(&["PAL_MAX_TURNS"]),
    key("max_stalled_turns", Kind::Count { from: 1 }, "8", Trust::UnlessLower, "Answers in a row that bring nothing new (no new call, result or text) before a run ends").by(&["PAL_MAX_STALLED_TURNS"]),
    key("max_fruitless_turns", Kind::Count { from: 1 }, "50", Trust::UnlessLower, "Answers in a row without a call that succeeds with a new result before a run ends").by(&["PAL_MAX_FRUITLESS_TURNS"]),
    key("max_tokens_total", Kind::Count { from: 1 }, "null", Trust::UnlessLower, "Most tokens that a session may take").by(&["PAL_MAX_TOKENS_TOTAL"]),
    key("max_cost_usd", Kind::Money, "null", Trust::UnlessLower, "Most US dollars that a session may cost").by(&["PAL_MAX_COST_USD"]),

    key("estimator", Kind::OneOf(&["calibrated", "classic"]), "\"calibrated\"", Trust::Needed, "How tokens are estimated").by(&["PAL_ESTIMATOR"]),
    key("policy", Kind::OneOf(&["classic", "thrifty"]), "\"classic\"", Trust::Needed, "What decides what the model sees: thresholds, or what is the cheapest from here on (docs/policy.md)").by(&["PAL_POLICY"]),
    key("fidelity", Kind::Share, "0.5", Trust::Needed, "How dear it is to the policy `thrifty` that something leaves the context and is needed again: at 0.5 what reading it again costs").by(&["PAL_FIDELITY"]),
    key("pings", Kind::YesNo, "false", Trust::UnlessOff, "Whether the policy `thrifty` may keep the provider's cache warm in a pause, by requests for one token (docs/policy.md)").by(&["PAL_PINGS"]),
    key("auto_compact", Kind::YesNo, "true", Trust::Needed, "Whether sessions are compacted by themselves"),
    key("threshold", Kind::Threshold, "null", Trust::Needed, "Where that happens: { used = N }, { left = N } or { percent = P }; the variable gives a percentage").by(&["PAL_AUTOCOMPACT_PCT"]),
    key("thresholds", Kind::Thresholds, "{}", Trust::Needed, "The same for single models, unless `threshold` comes from a nearer place"),
    key("max_context_tokens", Kind::Count { from: 1 }, "null", Trust::Needed, "An upper bound for the window").by(&["PAL_MAX_CONTEXT_TOKENS"]),

    key("instructions", Kind::YesNo, "true", Trust::Needed, "Whether instruction files are read").by(&["PAL_INSTRUCTIONS"]),
    key("instruction_tokens_max", Kind::Count { from: 0 }, "40000", Trust::Needed, "How many tokens of them are too many"),
    key("instruction_tokens_drop", Kind::YesNo, "false", Trust::Needed, "Whether the largest are left out then"),
    key("allow_includes", Kind::Paths, "[]", Trust::Needed, "Files and folders outside of projects that instruction files may include"),
    key("git", Kind::YesNo, "true", Trust::UnlessOff, "Whether git is asked when a session starts").by(&["PAL_GIT"]),
    key("git_limit_ms", Kind::Count { from: 0 }, "300", Trust::UnlessLower, "For how many milliseconds"),

    key("connect_limit_s", Kind::Count { from: 1 }, "10", Trust::Needed, "Seconds to connect to the provider: name lookup, TCP and TLS").by(&["PAL_CONNECT_LIMIT_S"]),
    key("send_limit_s", Kind::Count { from: 1 }, "30", Trust::Needed, "Seconds in which the provider has to take the next 64 KB of a request").by(&["PAL_SEND_LIMIT_S"]),
    key("header_limit_s", Kind::Count { from: 1 }, "null", Trust::Needed, "Seconds from the end of a request to the headers of its answer; unless set 180, and 1200 for a model on this machine or in its network").by(&["PAL_HEADER_LIMIT_S"]),
    key("first_event_limit_s", Kind::Count { from: 1 }, "1200", Trust::Needed, "Seconds from the headers to the first content of an answer; pings do not count").by(&["PAL_FIRST_EVENT_LIMIT_S"]),
    key("silence_limit_s", Kind::Count { from: 1 }, "90", Trust::Needed, "After how many seconds without a byte an answer that has begun is given up").by(&["PAL_SILENCE_LIMIT_S"]),
    key("content_gap_limit_s", Kind::Count { from: 1 }, "1200", Trust::Needed, "Seconds between two pieces of content of an answer; pings do not count").by(&["PAL_CONTENT_GAP_LIMIT_S"]),
    key("answer_limit_s", Kind::Count { from: 1 }, "3600", Trust::Needed, "Seconds for one whole answer").by(&["PAL_ANSWER_LIMIT_S"]),
    key("max_answer_mb", Kind::Count { from: 1 }, "32", Trust::Needed, "Maximum size of one answer in megabytes; the wire may carry three times as much").by(&["PAL_MAX_ANSWER_MB"]),
    key("max_command_output_mb", Kind::Count { from: 1 }, "256", Trust::UnlessLower, "Maximum size on disk of one command's output in megabytes; a background command that prints more is ended").by(&["PAL_MAX_COMMAND_OUTPUT_MB"]),
    key("max_outputs_mb", Kind::Count { from: 1 }, "2048", Trust::UnlessLower, "Maximum size in megabytes of all spilled results and command outputs of all sessions; the oldest are removed beyond it (`pal gc`)").by(&["PAL_MAX_OUTPUTS_MB"]),
    key("editor", Kind::Text, "null", Trust::Needed, "The program that texts are edited with").by(&["VISUAL", "EDITOR"]),
    key("telemetry.enabled", Kind::YesNo, "false", Trust::UnlessOff, "Whether figures are exported").by(&["PAL_TELEMETRY"]),
    key("telemetry.endpoint", Kind::Address, "null", Trust::Needed, "Where to, as OTLP over HTTP; what OTEL_EXPORTER_OTLP_ENDPOINT says, or http://localhost:4318, unless set").by(&["PAL_TELEMETRY_ENDPOINT"]),
    key("telemetry.service_name", Kind::Text, "\"palimpsest\"", Trust::Free, "Under which name").by(&["OTEL_SERVICE_NAME"]),
    key("telemetry.headers", Kind::Secret, "null", Trust::Needed, "Headers for the collector: name=value, with commas between; only from the environment").by(&["OTEL_EXPORTER_OTLP_HEADERS"]),
    key("telemetry.content", Kind::YesNo, "false", Trust::UnlessOff, "Whether they carry what was said").by(&["PAL_TELEMETRY_CONTENT"]),
    key("log", Kind::Text, "null", Trust::Free, "What the program tells of its own work: error, warn, info, debug or trace, for all of it or by part (docs/telemetry.md)").by(&["PAL_LOG"]),
    key("log_file", Kind::Text, "null", Trust::Needed, "The file that this is added to; standard error unless set").by(&["PAL_LOG_FILE"]),
    key("clock_ahead_s", Kind::Count { from: 0 }, "0", Trust::Needed, "Seconds that the agent's clock is ahead, to see what happens after a pause without making one").by(&["PAL_CLOCK_AHEAD_S"]),
    key("disabled", Kind::Subsystems, "[]", Trust::Needed, "Subsystems that are switched off; each also by its own variable and by flags.toml").adding_up(),
];
