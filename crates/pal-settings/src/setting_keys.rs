//! The table of all settings.

use serde_json::Value;

use crate::setting_kind::SettingKind;
use crate::trust::TrustRequirement;

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct SettingKey {
    /// Name in files; a dot separates a table from the name in it.
    pub name: &'static str,
    /// Type and range of its value.
    pub kind: SettingKind,
    /// Default as JSON; `null` for none.
    pub default: &'static str,
    /// Environment variables that set it; the first one that is set counts.
    pub variables: &'static [&'static str],
    /// Condition under which a file in a repository may set it.
    pub trust: TrustRequirement,
    /// True if the values of all sources are combined; otherwise the nearest source wins.
    pub accumulates: bool,
    /// One line for users.
    pub description: &'static str,
    /// Names of the last release, which still work and bring a warning.
    pub former: FormerNames,
}

/// Names that a setting had in the last release.
#[derive(Clone, Copy, Debug, Default)]
pub struct FormerNames {
    /// Name in files.
    pub name: Option<&'static str>,
    /// Environment variables.
    pub variables: &'static [&'static str],
    /// Old values, each with its replacement.
    pub values: &'static [(&'static str, &'static str)],
}

impl SettingKey {
    /// The setting with this name.
    pub fn find(name: &str) -> Option<&'static SettingKey> {
        SETTING_KEYS.iter().find(|key| key.name == name)
    }

    /// The setting that had this name in the last release.
    pub(crate) fn find_former(name: &str) -> Option<&'static SettingKey> {
        SETTING_KEYS.iter().find(|key| key.former.name == Some(name))
    }

    /// Default value.
    pub fn default_value(&self) -> Value {
        serde_json::from_str(self.default).unwrap_or(Value::Null)
    }

    /// The value that replaces one of the last release.
    pub(crate) fn current_value(&self, value: &Value) -> Option<&'static str> {
        let former = self.former.values.iter().find(|(former, _)| value.as_str() == Some(former));
        former.map(|(_, current)| *current)
    }

    const fn with_variables(self, variables: &'static [&'static str]) -> SettingKey {
        SettingKey { variables, ..self }
    }

    const fn accumulating(self) -> SettingKey {
        SettingKey { accumulates: true, ..self }
    }

    const fn formerly(self, name: &'static str, variables: &'static [&'static str]) -> SettingKey {
        SettingKey { former: FormerNames { name: Some(name), variables, values: self.former.values }, ..self }
    }

    const fn with_former_values(self, values: &'static [(&'static str, &'static str)]) -> SettingKey {
        SettingKey { former: FormerNames { values, ..self.former }, ..self }
    }
}

const fn key(
    name: &'static str,
    kind: SettingKind,
    default: &'static str,
    trust: TrustRequirement,
    description: &'static str,
) -> SettingKey {
    let former = FormerNames { name: None, variables: &[], values: &[] };
    SettingKey { name, kind, default, variables: &[], trust, accumulates: false, description, former }
}

/// Model for the conversation if the setting `model` is not set.
pub const DEFAULT_MODEL: &str = "claude-opus-5-5";

// Strict to permissive, cheap to expensive: a project may only move towards the start of these lists.
const MODES: &[&str] = &["plan", "default", "accept-edits", "bypass"];
const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh", "max"];
// Agents whose settings files can be read.
const AGENTS: &[&str] = &["claude-code", "codex", "gemini", "opencode"];
const PROVIDERS: &[&str] = &["anthropic", "bedrock", "vertex", "openai", "chat", "sim"];
const CACHE_TTLS: &[&str] = &["5m", "1h"];
const THEMES: &[&str] = &["terminal", "dark", "light", "dark-daltonized", "light-daltonized"];
const EDITOR_MODES: &[&str] = &["normal", "vim"];
// Conditions for condensing a format.
const CONDENSE_MODES: &[&str] = &["always", "pressure", "never"];

/// All settings, in the order in which users read them.
#[rustfmt::skip]
pub const SETTING_KEYS: &[SettingKey] = &[
    key("model", SettingKind::Text, "null", TrustRequirement::Needed, "Model for the conversation, or opus, sonnet, haiku or best for the newest of a family; unset: the built-in default").with_variables(&["PAL_MODEL", "ANTHROPIC_MODEL"]),
    key("provider", SettingKind::OneOf(PROVIDERS), "null", TrustRequirement::Needed, "Provider of the model; unset: the one that offers it").with_variables(&["PAL_PROVIDER"]),
    key("effort", SettingKind::OneOf(EFFORTS), "null", TrustRequirement::UnlessStricter(EFFORTS), "Reasoning effort; unset: the model's own default").with_variables(&["PAL_EFFORT"]),
    key("small_model", SettingKind::Text, "null", TrustRequirement::Needed, "Model for small background questions; unset: the provider's cheapest").with_variables(&["PAL_SMALL_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL"]),
    key("max_output_tokens", SettingKind::Integer { from: 1 }, "8000", TrustRequirement::UnlessLower, "Maximum tokens of one response").with_variables(&["PAL_MAX_OUTPUT_TOKENS"]),
    key("max_retries", SettingKind::Integer { from: 0 }, "8", TrustRequirement::UnlessLower, "Maximum retries of a request that failed before its response began").with_variables(&["PAL_MAX_RETRIES"]),
    key("task_budget_tokens", SettingKind::Integer { from: 1 }, "null", TrustRequirement::UnlessLower, "Token budget of a session that the model sees counting down, where the provider supports it; unset: none").with_variables(&["PAL_TASK_BUDGET_TOKENS"]),
    key("cache_ttl", SettingKind::OneOf(CACHE_TTLS), "null", TrustRequirement::UnlessStricter(CACHE_TTLS), "TTL of the provider's prompt cache; unset: chosen by price in the cost-aware policy, 5m in `threshold`").with_variables(&["PAL_CACHE_TTL"]).formerly("cache_lifetime", &["PAL_CACHE_LIFETIME"]),
    key("account_in_overage", SettingKind::Bool, "false", TrustRequirement::Needed, "The account is billed beyond its prepaid quota: cache breakpoints keep the TTL of five minutes").with_variables(&["PAL_ACCOUNT_IN_OVERAGE"]),
    key("cold_turn_warning_usd", SettingKind::DollarsOrZero, "0.5", TrustRequirement::Needed, "Price of a prompt into an expired cache from which on the terminal asks before it is sent, in US dollars; 0 never asks").with_variables(&["PAL_COLD_TURN_WARNING_USD"]),
    key("cache_break_alarm_usd", SettingKind::DollarsOrZero, "1.0", TrustRequirement::Needed, "Price of an unexpected cache break from which on it raises an alarm (bell, notification), in US dollars; 0 never does").with_variables(&["PAL_CACHE_BREAK_ALARM_USD"]),
    key("anthropic.api_key", SettingKind::Secret, "null", TrustRequirement::Needed, "API key for Claude; environment only").with_variables(&["ANTHROPIC_API_KEY"]),
    key("anthropic.auth_token", SettingKind::Secret, "null", TrustRequirement::Needed, "Bearer token instead of the API key; environment only").with_variables(&["ANTHROPIC_AUTH_TOKEN"]),
    key("anthropic.base_url", SettingKind::Url, "null", TrustRequirement::Needed, "Base URL for Claude; unset: the provider's own").with_variables(&["ANTHROPIC_BASE_URL"]),
    key("api_key_helper", SettingKind::Text, "null", TrustRequirement::Needed, "Shell command that prints the API key for Claude; used if neither a variable nor `pal login` gives one"),
    key("openai.api_key", SettingKind::Secret, "null", TrustRequirement::Needed, "API key for GPT; environment only").with_variables(&["OPENAI_API_KEY"]),
    key("openai.base_url", SettingKind::Url, "null", TrustRequirement::Needed, "Base URL for GPT or a compatible server; unset: the provider's own").with_variables(&["OPENAI_BASE_URL"]),
    key("openai.key_variable", SettingKind::Text, "null", TrustRequirement::Needed, "Environment variable with the key for `openai.base_url`, instead of OPENAI_API_KEY"),
    key("bedrock.region", SettingKind::Text, "null", TrustRequirement::Needed, "AWS region of Amazon Bedrock, for --provider bedrock").with_variables(&["AWS_REGION", "AWS_DEFAULT_REGION"]),
    key("bedrock.profile", SettingKind::Text, "\"default\"", TrustRequirement::Needed, "Profile in ~/.aws/credentials, used if AWS_ACCESS_KEY_ID is not set").with_variables(&["AWS_PROFILE"]),
    key("bedrock.base_url", SettingKind::Url, "null", TrustRequirement::Needed, "Base URL of Bedrock; unset: that of the region").with_variables(&["ANTHROPIC_BEDROCK_BASE_URL"]),
    key("bedrock.models", SettingKind::Texts, "[]", TrustRequirement::Needed, "Ids of models on Bedrock, each as NAME=ID; a model without one is requested by its name"),
    key("bedrock.access_key_id", SettingKind::Secret, "null", TrustRequirement::Needed, "AWS access key id; environment only").with_variables(&["AWS_ACCESS_KEY_ID"]),
    key("bedrock.secret_access_key", SettingKind::Secret, "null", TrustRequirement::Needed, "AWS secret access key; environment only").with_variables(&["AWS_SECRET_ACCESS_KEY"]),
    key("bedrock.session_token", SettingKind::Secret, "null", TrustRequirement::Needed, "AWS session token of temporary credentials; environment only").with_variables(&["AWS_SESSION_TOKEN"]),
    key("vertex.project", SettingKind::Text, "null", TrustRequirement::Needed, "Google Cloud project of Vertex AI, for --provider vertex").with_variables(&["ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"]),
    key("vertex.region", SettingKind::Text, "\"global\"", TrustRequirement::Needed, "Region of Vertex AI, or global").with_variables(&["CLOUD_ML_REGION"]),
    key("vertex.base_url", SettingKind::Url, "null", TrustRequirement::Needed, "Base URL of Vertex AI; unset: that of the region").with_variables(&["ANTHROPIC_VERTEX_BASE_URL"]),
    key("vertex.models", SettingKind::Texts, "[]", TrustRequirement::Needed, "Ids of models on Vertex AI, each as NAME=ID; a model without one is requested by its name"),
    key("vertex.credentials", SettingKind::Path, "null", TrustRequirement::Needed, "Google credentials file; unset: that of `gcloud auth application-default login`").with_variables(&["GOOGLE_APPLICATION_CREDENTIALS"]),
    key("vertex.access_token", SettingKind::Secret, "null", TrustRequirement::Needed, "Access token instead of a credentials file; environment only").with_variables(&["CLOUDSDK_AUTH_ACCESS_TOKEN"]),
    key("allow_plain_http", SettingKind::Bool, "false", TrustRequirement::UnlessOff, "Allow unencrypted HTTP to other machines").with_variables(&["PAL_ALLOW_PLAIN_HTTP"]),
    key("refresh_models", SettingKind::Bool, "true", TrustRequirement::UnlessOff, "Ask the provider about a model without a card when a session starts, for at most 2 seconds and once a day").with_variables(&["PAL_REFRESH_MODELS"]),

    key("language", SettingKind::Text, "null", TrustRequirement::Needed, "Language that the agent writes to you in; unset: the language of your prompts").with_variables(&["PAL_LANGUAGE"]),
    key("output_style", SettingKind::Text, "null", TrustRequirement::Needed, "Output style: the name of a file in an `output-styles` directory (docs/agents.md)").with_variables(&["PAL_OUTPUT_STYLE"]),
    key("scratchpad", SettingKind::Bool, "false", TrustRequirement::UnlessOff, "Give each session a directory for temporary files that it may write without asking").with_variables(&["PAL_SCRATCHPAD"]),
    key("coordinator", SettingKind::Bool, "false", TrustRequirement::Needed, "Direct subagents instead of working: the session has no tools that change anything").with_variables(&["PAL_COORDINATOR"]),
    key("proactive", SettingKind::Bool, "false", TrustRequirement::Needed, "Work on without asking: the agent decides open questions itself and reports what it assumed").with_variables(&["PAL_PROACTIVE"]),
    key("prompt_suggestions", SettingKind::Bool, "false", TrustRequirement::UnlessOff, "Suggest the next prompt after each turn in the terminal; a request that reads the conversation from the cache").with_variables(&["PAL_PROMPT_SUGGESTIONS"]),

    key("theme", SettingKind::OneOf(THEMES), "\"terminal\"", TrustRequirement::Free, "Colors of the terminal: those of your terminal's palette, or fixed ones for a dark or light background").with_variables(&["PAL_THEME"]),
    key("editor_mode", SettingKind::OneOf(EDITOR_MODES), "\"normal\"", TrustRequirement::Needed, "Keys of the prompt editor: normal, or those of vi").with_variables(&["PAL_EDITOR_MODE"]),
    key("status_line", SettingKind::Text, "null", TrustRequirement::Needed, "Command whose output is shown above the status line; it reads a JSON object (docs/terminal.md)").with_variables(&["PAL_STATUS_LINE"]),

    key("permissions.mode", SettingKind::OneOf(MODES), "\"default\"", TrustRequirement::UnlessStricter(MODES), "Permission mode: which tool calls run without asking").with_variables(&["PAL_PERMISSION_MODE"]),
    key("permissions.allow", SettingKind::Rules, "[]", TrustRequirement::Needed, "Tool calls that run without asking").accumulating(),
    key("permissions.ask", SettingKind::Rules, "[]", TrustRequirement::Free, "Tool calls that ask in every mode").accumulating(),
    key("permissions.deny", SettingKind::Rules, "[]", TrustRequirement::Free, "Tool calls that are refused").accumulating(),
    key("permissions.directories", SettingKind::Paths, "[]", TrustRequirement::Needed, "Directories outside the project that sessions may work in").accumulating(),
    key("permissions.allow_bypass", SettingKind::Bool, "true", TrustRequirement::UnlessOff, "Allow the mode bypass"),
    key("trusted", SettingKind::Paths, "[]", TrustRequirement::Needed, "Projects whose own settings may run commands and grant permissions"),
    key("sandbox", SettingKind::OneOf(&["auto", "on", "off"]), "\"auto\"", TrustRequirement::UnlessOneOf(&["on"]), "Sandbox for shell commands. auto: read-only for commands that no rule and no user allowed, and for all commands in bypass mode; on: allowed commands too; off: never, and read-only commands ask").with_variables(&["PAL_SANDBOX"]),
    key("sandbox_network", SettingKind::Bool, "false", TrustRequirement::UnlessOff, "Allow network access in the sandbox of bypass mode and of `sandbox = \"on\"`, web pages included").with_variables(&["PAL_SANDBOX_NETWORK"]),
    key("sandbox_writable", SettingKind::Paths, "[]", TrustRequirement::Needed, "Directories the sandbox may write to besides the project and temporary files"),
    key("web_private_addresses", SettingKind::Bool, "false", TrustRequirement::UnlessOff, "Allow fetching pages from this machine and its local network").with_variables(&["PAL_WEB_PRIVATE_ADDRESSES"]),
    key("deferred_tools", SettingKind::Texts, "[]", TrustRequirement::Free, "Tools that the model finds by search instead of having them in its list"),
    key("secret_variables", SettingKind::Texts, "[]", TrustRequirement::Needed, "Environment variables hidden from commands, besides those that look like secrets; `!NAME` shows one"),
    key("env", SettingKind::Variables, "{}", TrustRequirement::Needed, "Environment variables for pal itself and everything that it starts").accumulating(),
    key("hooks", SettingKind::Hooks, "{}", TrustRequirement::Needed, "Commands that run at session events (docs/hooks.md)").accumulating(),
    key("mcp_servers", SettingKind::Servers, "{}", TrustRequirement::Needed, "MCP servers by name, besides those of .mcp.json (docs/mcp.md)").accumulating(),
    key("mcp_disabled", SettingKind::Texts, "[]", TrustRequirement::Free, "MCP servers that are not started, by name").accumulating(),
    key("mcp_start_timeout_s", SettingKind::Integer { from: 1 }, "30", TrustRequirement::UnlessLower, "Timeout for the start of an MCP server, in seconds").formerly("mcp_start_limit_s", &[]),
    key("mcp_call_timeout_s", SettingKind::Integer { from: 1 }, "60", TrustRequirement::UnlessLower, "Timeout for a call of an MCP tool, in seconds").formerly("mcp_call_limit_s", &[]),

    key("max_memory_bytes", SettingKind::Integer { from: 0 }, "60000", TrustRequirement::UnlessLower, "Maximum bytes of memories added to the context until a compaction").with_variables(&["PAL_MAX_MEMORY_BYTES"]).formerly("memory_bytes_max", &["PAL_MEMORY_BYTES_MAX"]),
    key("embeddings", SettingKind::Path, "null", TrustRequirement::Needed, "Directory of a sentence-embedding model for semantic memory search; unset: search by words (docs/memory.md)").with_variables(&["PAL_EMBEDDINGS"]),
    key("notes", SettingKind::OneOf(&["off", "fork", "main"]), "\"off\"", TrustRequirement::UnlessOneOf(&["off"]), "Writer of the session notes that a compaction uses as its summary: none, a fork of the conversation, or the agent itself").with_variables(&["PAL_NOTES"]),
    key("notes_min_tokens", SettingKind::Integer { from: 0 }, "10000", TrustRequirement::Needed, "Size of the conversation at which notes are first written, in tokens").formerly("notes_first_tokens", &[]),
    key("notes_growth_tokens", SettingKind::Integer { from: 1 }, "5000", TrustRequirement::Needed, "Minimum growth before notes are rewritten, in tokens"),
    key("notes_growth_share", SettingKind::Integer { from: 1 }, "5", TrustRequirement::Needed, "Minimum growth before notes are rewritten, as 1/N of the visible context"),
    key("notes_min_calls", SettingKind::Integer { from: 0 }, "3", TrustRequirement::Needed, "Minimum tool calls before notes are rewritten, unless the last response made none").formerly("notes_calls", &[]),
    key("background_tokens_daily", SettingKind::Integer { from: 0 }, "2000000", TrustRequirement::UnlessLower, "Daily token budget (UTC) of all background work, cache reads counted as a tenth; 0: no background work").with_variables(&["PAL_BACKGROUND_TOKENS_DAILY"]),
    key("extraction", SettingKind::Bool, "true", TrustRequirement::UnlessOff, "Write memories from a conversation when it comes to rest").with_variables(&["PAL_EXTRACTION"]),
    key("extraction_tokens", SettingKind::Integer { from: 0 }, "2000", TrustRequirement::Needed, "Minimum new tokens before an extraction, and at least 1/16 of the visible context; 0: always").with_variables(&["PAL_EXTRACTION_TOKENS"]),
    key("extraction_wait_s", SettingKind::Integer { from: 0 }, "20", TrustRequirement::UnlessLower, "Maximum time `pal -p` waits for an extraction before it exits, in seconds"),
    key("dreaming", SettingKind::Bool, "true", TrustRequirement::UnlessOff, "Consolidate memories in the background").with_variables(&["PAL_DREAMING"]),
    key("dream_hours", SettingKind::Integer { from: 1 }, "24", TrustRequirement::Needed, "Minimum hours between two consolidations"),
    key("dream_sessions", SettingKind::Integer { from: 0 }, "5", TrustRequirement::Needed, "Minimum other sessions between two consolidations"),
    key("progress_interval_s", SettingKind::Integer { from: 1 }, "30", TrustRequirement::Needed, "Interval between progress lines about subagents, in seconds").formerly("progress_s", &[]),
    key("max_turns", SettingKind::Integer { from: 1 }, "null", TrustRequirement::UnlessLower, "Maximum responses of the model to one prompt").with_variables(&["PAL_MAX_TURNS"]),
    key("max_stalled_turns", SettingKind::Integer { from: 1 }, "8", TrustRequirement::UnlessLower, "Maximum consecutive responses without a new call, result or text").with_variables(&["PAL_MAX_STALLED_TURNS"]),
    key("max_fruitless_turns", SettingKind::Integer { from: 1 }, "50", TrustRequirement::UnlessLower, "Maximum consecutive responses without a tool call that returns something new").with_variables(&["PAL_MAX_FRUITLESS_TURNS"]),
    key("max_tokens_total", SettingKind::Integer { from: 1 }, "null", TrustRequirement::UnlessLower, "Maximum tokens of a session").with_variables(&["PAL_MAX_TOKENS_TOTAL"]),
    key("max_cost_usd", SettingKind::Dollars, "null", TrustRequirement::UnlessLower, "Maximum cost of a session in US dollars").with_variables(&["PAL_MAX_COST_USD"]),
    key("max_subagent_cost_usd", SettingKind::Dollars, "null", TrustRequirement::UnlessLower, "Maximum cost of one subagent in US dollars; it then reports what it has").with_variables(&["PAL_MAX_SUBAGENT_COST_USD"]),
    key("max_daily_cost_usd", SettingKind::Dollars, "null", TrustRequirement::UnlessLower, "Maximum cost of all sessions of a day (UTC) in US dollars; the terminal then asks, and `pal -p` stops with exit code 3").with_variables(&["PAL_MAX_DAILY_COST_USD"]),

    key("estimator", SettingKind::OneOf(&["calibrated", "classic"]), "\"calibrated\"", TrustRequirement::Needed, "Token estimator: fitted per model generation, or 4 bytes a token").with_variables(&["PAL_ESTIMATOR"]),
    key("policy", SettingKind::OneOf(&["threshold", "cost-aware"]), "\"cost-aware\"", TrustRequirement::Needed, "Context policy: fixed thresholds, or the cheapest expected cost (docs/policy.md)").with_variables(&["PAL_POLICY"]).with_former_values(&[("classic", "threshold"), ("thrifty", "cost-aware")]),
    key("loss_weight", SettingKind::Fraction, "0.5", TrustRequirement::Needed, "Weight of re-reading dropped content in the cost-aware policy; 0.5 is its measured cost").with_variables(&["PAL_LOSS_WEIGHT"]).formerly("fidelity", &["PAL_FIDELITY"]),
    key("cache_keepalive", SettingKind::Bool, "false", TrustRequirement::UnlessOff, "Let the cost-aware policy keep the prompt cache alive during pauses with one-token requests (docs/policy.md)").with_variables(&["PAL_CACHE_KEEPALIVE"]).formerly("pings", &["PAL_PINGS"]),
    key("auto_compact", SettingKind::Bool, "true", TrustRequirement::Needed, "Compact sessions automatically"),
    key("threshold", SettingKind::Threshold, "null", TrustRequirement::Needed, "Auto-compact threshold: { used = N }, { left = N } or { percent = P }; the variable takes a percentage").with_variables(&["PAL_AUTOCOMPACT_PCT"]),
    key("thresholds", SettingKind::Thresholds, "{}", TrustRequirement::Needed, "Auto-compact thresholds by model; a `threshold` from a nearer source wins"),
    key("max_context_tokens", SettingKind::Integer { from: 1 }, "null", TrustRequirement::Needed, "Maximum context window in tokens").with_variables(&["PAL_MAX_CONTEXT_TOKENS"]),
    key("compaction.reactive_only", SettingKind::Bool, "false", TrustRequirement::Needed, "Compact automatically only after the provider refused a request as too long, not at the threshold"),
    key("compaction.reactive_model", SettingKind::OneOf(&["main", "small"]), "\"main\"", TrustRequirement::Needed, "Model that summarizes after the provider refused a request as too long; small: `small_model`, if its window holds the conversation"),
    key("compaction.model", SettingKind::Text, "null", TrustRequirement::Needed, "Model that writes the summaries of compactions, of the same provider, if its window holds the conversation; unset: the conversation's own, which reads its cache").with_variables(&["PAL_COMPACTION_MODEL"]),
    key("idle_compaction", SettingKind::Bool, "null", TrustRequirement::Needed, "Compact in a pause, shortly before the cache expires, where the next prompt is expected to cost less by it; in the terminal and in editors. Unset: on in the cost-aware policy").with_variables(&["PAL_IDLE_COMPACTION"]),
    key("compaction.restored_files", SettingKind::Integer { from: 0 }, "null", TrustRequirement::Needed, "Files read or changed last that a compaction restores; unset: 5, or 25 in the cost-aware policy"),
    key("compaction.restored_tokens", SettingKind::Integer { from: 0 }, "null", TrustRequirement::Needed, "Tokens of all restored files together, at most 5,000 for each, or 1,500 in the cost-aware policy; unset: 50,000, or 12,000 in the cost-aware policy"),
    key("compaction.restored_line_tokens", SettingKind::Integer { from: 0 }, "1000", TrustRequirement::Needed, "Tokens of verbatim lines that a compaction restores because the agent was working with the names in them; 0: none"),
    key("compaction.provider", SettingKind::Bool, "false", TrustRequirement::Needed, "Let the provider write the summary of a compaction, if the model card supports it"),
    key("spill.result_characters", SettingKind::Integer { from: 1 }, "50000", TrustRequirement::Needed, "Maximum size of a tool result before it goes to disk and a preview remains, in characters; a token counts as at least two"),
    key("spill.tool_characters", SettingKind::Integers, "{}", TrustRequirement::Needed, "Maximum sizes of results by tool, such as { Bash = 20000 }, instead of `spill.result_characters`"),
    key("spill.message_characters", SettingKind::Integer { from: 1 }, "200000", TrustRequirement::Needed, "Maximum size of all tool results of one message together, in characters; the largest go to disk first"),
    key("spill.prompt_characters", SettingKind::Integer { from: 1 }, "200000", TrustRequirement::Needed, "Maximum size of a prompt before it goes to disk and a preview remains, in characters"),
    key("condense.build_logs", SettingKind::OneOf(CONDENSE_MODES), "\"always\"", TrustRequirement::Needed, "Condense logs of builds and installations before they are first sent; pressure: only where the whole has no room (behaviour.md §10.6)"),
    key("condense.test_runs", SettingKind::OneOf(CONDENSE_MODES), "\"always\"", TrustRequirement::Needed, "Condense logs of test runs"),
    key("condense.progress", SettingKind::OneOf(CONDENSE_MODES), "\"always\"", TrustRequirement::Needed, "Condense progress and terminal redraws"),
    key("condense.listings", SettingKind::OneOf(CONDENSE_MODES), "\"pressure\"", TrustRequirement::Needed, "Condense lists of files, directories and search hits"),
    key("condense.json", SettingKind::OneOf(CONDENSE_MODES), "\"pressure\"", TrustRequirement::Needed, "Condense JSON"),
    key("condense.diffs", SettingKind::OneOf(CONDENSE_MODES), "\"pressure\"", TrustRequirement::Needed, "Condense diffs"),
    key("condense.tables", SettingKind::OneOf(CONDENSE_MODES), "\"pressure\"", TrustRequirement::Needed, "Condense tables"),
    key("condense.other", SettingKind::OneOf(CONDENSE_MODES), "\"pressure\"", TrustRequirement::Needed, "Condense any other long output of a command"),
    key("condense.target_characters", SettingKind::Integer { from: 500 }, "4000", TrustRequirement::Needed, "Target length of a condensed result in characters; a listing gets twice as many"),
    key("snip.enabled", SettingKind::Bool, "false", TrustRequirement::Needed, "Hide redundant tool calls (superseded reads, repeated calls, retried failures) when the cache has expired or the context is past its warning"),
    key("snip.keep_messages", SettingKind::Integer { from: 0 }, "20", TrustRequirement::Needed, "Newest messages that are never snipped"),
    key("microcompact.cold_minutes", SettingKind::Integer { from: 1 }, "60", TrustRequirement::Needed, "Minutes without a request after which the cache counts as expired and old tool results are cleared; the cost-aware policy goes by the TTL"),
    key("microcompact.cold_keep", SettingKind::Integer { from: 1 }, "null", TrustRequirement::Needed, "Newest tool results that stay when the cache has expired; unset: 5, or 3 in the cost-aware policy"),
    key("microcompact.pressure_keep", SettingKind::Integer { from: 0 }, "3", TrustRequirement::Needed, "Newest tool results that stay when the context is nearly full, nothing compacts it, and the provider cannot clear"),
    key("microcompact.early", SettingKind::Bool, "false", TrustRequirement::Needed, "Clear old tool results while the cache is warm and the window not yet full; off: only where the request would not fit otherwise"),
    key("microcompact.cache_edit_from", SettingKind::Integer { from: 1 }, "12", TrustRequirement::Needed, "Tool results in the cache at which the oldest are deleted from it, if the model card has cache edits"),
    key("microcompact.cache_edit_keep", SettingKind::Integer { from: 0 }, "5", TrustRequirement::Needed, "Newest tool results that a cache edit leaves in the cache"),
    key("fold.enabled", SettingKind::Bool, "false", TrustRequirement::Needed, "Fold the oldest stretch of a full context into a summary that can be undone; auto-compact waits while folding frees enough"),
    key("fold.from_percent", SettingKind::Percent, "90", TrustRequirement::Needed, "Percentage of the effective window at which folding starts"),
    key("fold.urgent_percent", SettingKind::Percent, "95", TrustRequirement::Needed, "Percentage of the effective window at which folding no longer asks a model, and auto-compact takes over if that is not enough"),

    key("instructions", SettingKind::Bool, "true", TrustRequirement::Needed, "Read instruction files (CLAUDE.md, AGENTS.md, rules)").with_variables(&["PAL_INSTRUCTIONS"]),
    key("instruction_files", SettingKind::Texts, "[]", TrustRequirement::Free, "More instruction files: paths and globs; relative ones start in the project").accumulating(),
    key("max_instruction_tokens", SettingKind::Integer { from: 0 }, "40000", TrustRequirement::Needed, "Size of all instruction files that brings a warning, in tokens").formerly("instruction_tokens_max", &[]),
    key("drop_large_instructions", SettingKind::Bool, "false", TrustRequirement::Needed, "Leave out the largest instruction files beyond `max_instruction_tokens`").formerly("instruction_tokens_drop", &[]),
    key("allow_includes", SettingKind::Paths, "[]", TrustRequirement::Needed, "Files and directories outside projects that instruction files may include"),
    key("git", SettingKind::Bool, "true", TrustRequirement::UnlessOff, "Query git at session start").with_variables(&["PAL_GIT"]),
    key("git_timeout_ms", SettingKind::Integer { from: 0 }, "300", TrustRequirement::UnlessLower, "Timeout for git queries at session start, in milliseconds").formerly("git_limit_ms", &[]),

    key("connect_timeout_s", SettingKind::Integer { from: 1 }, "10", TrustRequirement::Needed, "Timeout for connecting to the provider (DNS, TCP, TLS), in seconds").with_variables(&["PAL_CONNECT_TIMEOUT_S"]).formerly("connect_limit_s", &["PAL_CONNECT_LIMIT_S"]),
    key("send_timeout_s", SettingKind::Integer { from: 1 }, "30", TrustRequirement::Needed, "Timeout for the provider to accept the next 64 KB of a request, in seconds").with_variables(&["PAL_SEND_TIMEOUT_S"]).formerly("send_limit_s", &["PAL_SEND_LIMIT_S"]),
    key("header_timeout_s", SettingKind::Integer { from: 1 }, "null", TrustRequirement::Needed, "Timeout from the end of a request to the response headers, in seconds; unset: 180, or 1200 for a model on the local network").with_variables(&["PAL_HEADER_TIMEOUT_S"]).formerly("header_limit_s", &["PAL_HEADER_LIMIT_S"]),
    key("first_event_timeout_s", SettingKind::Integer { from: 1 }, "1200", TrustRequirement::Needed, "Timeout from the headers to the first content of a response, in seconds; keep-alive events do not count").with_variables(&["PAL_FIRST_EVENT_TIMEOUT_S"]).formerly("first_event_limit_s", &["PAL_FIRST_EVENT_LIMIT_S"]),
    key("idle_timeout_s", SettingKind::Integer { from: 1 }, "90", TrustRequirement::Needed, "Timeout without a byte once a response has begun, in seconds").with_variables(&["PAL_IDLE_TIMEOUT_S"]).formerly("silence_limit_s", &["PAL_SILENCE_LIMIT_S"]),
    key("content_gap_timeout_s", SettingKind::Integer { from: 1 }, "1200", TrustRequirement::Needed, "Timeout between two pieces of content of a response, in seconds; keep-alive events do not count").with_variables(&["PAL_CONTENT_GAP_TIMEOUT_S"]).formerly("content_gap_limit_s", &["PAL_CONTENT_GAP_LIMIT_S"]),
    key("response_timeout_s", SettingKind::Integer { from: 1 }, "3600", TrustRequirement::Needed, "Timeout for a whole response, in seconds").with_variables(&["PAL_RESPONSE_TIMEOUT_S"]).formerly("answer_limit_s", &["PAL_ANSWER_LIMIT_S"]),
    key("max_response_mb", SettingKind::Integer { from: 1 }, "32", TrustRequirement::Needed, "Maximum size of a response in megabytes; three times that on the wire").with_variables(&["PAL_MAX_RESPONSE_MB"]).formerly("max_answer_mb", &["PAL_MAX_ANSWER_MB"]),
    key("max_command_output_mb", SettingKind::Integer { from: 1 }, "256", TrustRequirement::UnlessLower, "Maximum output of one command on disk, in megabytes; a background command that prints more is ended").with_variables(&["PAL_MAX_COMMAND_OUTPUT_MB"]),
    key("max_outputs_mb", SettingKind::Integer { from: 1 }, "2048", TrustRequirement::UnlessLower, "Maximum size of all spilled results and command outputs, in megabytes; the oldest are removed (`pal gc`)").with_variables(&["PAL_MAX_OUTPUTS_MB"]),
    key("keep_sessions_days", SettingKind::Integer { from: 0 }, "0", TrustRequirement::Needed, "Days without activity after which `pal gc` moves a session to the trash; 0 keeps all").with_variables(&["PAL_KEEP_SESSIONS_DAYS"]),
    key("keep_trash_days", SettingKind::Integer { from: 0 }, "30", TrustRequirement::Needed, "Days after which `pal gc` deletes a session in the trash for good").with_variables(&["PAL_KEEP_TRASH_DAYS"]),
    key("editor", SettingKind::Text, "null", TrustRequirement::Needed, "Editor for summaries, memories and prompts").with_variables(&["VISUAL", "EDITOR"]),
    key("telemetry.enabled", SettingKind::Bool, "false", TrustRequirement::UnlessOff, "Export OpenTelemetry spans and metrics").with_variables(&["PAL_TELEMETRY"]),
    key("telemetry.endpoint", SettingKind::Url, "null", TrustRequirement::Needed, "OTLP/HTTP endpoint; unset: OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318").with_variables(&["PAL_TELEMETRY_ENDPOINT"]),
    key("telemetry.service_name", SettingKind::Text, "\"palimpsest\"", TrustRequirement::Free, "Service name in exported telemetry").with_variables(&["OTEL_SERVICE_NAME"]),
    key("telemetry.headers", SettingKind::Secret, "null", TrustRequirement::Needed, "HTTP headers for the collector as name=value,name=value; environment only").with_variables(&["OTEL_EXPORTER_OTLP_HEADERS"]),
    key("telemetry.content", SettingKind::Bool, "false", TrustRequirement::UnlessOff, "Include prompts, responses and tool results in telemetry").with_variables(&["PAL_TELEMETRY_CONTENT"]),
    key("log", SettingKind::Text, "null", TrustRequirement::Free, "Log level of the program: error, warn, info, debug or trace, for all modules or by module (docs/telemetry.md)").with_variables(&["PAL_LOG"]),
    key("log_file", SettingKind::Text, "null", TrustRequirement::Needed, "File that log lines are appended to; unset: standard error").with_variables(&["PAL_LOG_FILE"]),
    key("clock_offset_s", SettingKind::Integer { from: 0 }, "0", TrustRequirement::Needed, "Seconds added to the agent's clock, to try out what happens after a pause").with_variables(&["PAL_CLOCK_OFFSET_S"]).formerly("clock_ahead_s", &["PAL_CLOCK_AHEAD_S"]),
    key("import_settings", SettingKind::SomeOf(AGENTS), "null", TrustRequirement::Needed, "Other agents whose settings are used, too (docs/setup.md); unset: all of them. Not in a project").with_variables(&["PAL_IMPORT_SETTINGS"]),
    key("disabled", SettingKind::Subsystems, "[]", TrustRequirement::Needed, "Subsystems to switch off; each also has a PAL_DISABLE_NAME variable and a line in flags.toml").accumulating(),
];
