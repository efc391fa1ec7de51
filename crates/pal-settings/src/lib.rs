//! Settings from files, environment and flags, resolved to one value with the origin of each.
//!
//! [`SETTING_KEYS`] is the table of all settings: parsing, `pal config` and `docs/settings.md` follow it. [`Settings::read`]
//! reads only what [`SettingsInput`] names, so there is no global configuration. A file in a repository cannot grant permissions
//! or raise costs unless the user trusts the project. [`KillSwitches`] switch subsystems off, also while a session runs.
//!
//! ```
//! use pal_settings::{Settings, SettingsInput, SettingsSource};
//! let given = Some("git = false\n[permissions]\ndeny = [\"Read(.env)\"]".to_owned());
//! let settings = Settings::read(SettingsInput { given, ..SettingsInput::default() }).unwrap();
//! assert!(!settings.git.is_on);
//! assert_eq!(settings.permissions.deny[0].value, "Read(.env)");
//! assert_eq!(settings.permissions.deny[0].origin.place, SettingsSource::Given);
//! ```

mod allowed_rules;
mod context_settings;
mod endpoint_table;
mod error;
mod include_answers;
mod kill_switches;
mod learned_factors;
mod learned_windows;
mod mcp_settings;
mod other_agents;
mod refreshed_cards;
mod resolve;
mod rule_check;
mod setting_keys;
mod setting_kind;
mod setting_values;
mod settings;
mod settings_edit;
mod settings_file;
mod sources;
mod stored_keys;
mod telemetry_settings;
mod text_file;
mod trust;

pub use allowed_rules::{allow, allow_and_tell};
pub use error::SettingsError;
pub use include_answers::{AnsweredIncludes, IncludeAnswers};
pub use kill_switches::{KillSwitch, KillSwitches};
pub use learned_factors::LearnedFactors;
pub use learned_windows::{LearnedWindow, LearnedWindows};
pub use mcp_settings::{McpSettings, ProjectSettings};
pub use other_agents::ClaudePlugin;
pub use refreshed_cards::{REFRESHED_CARDS_PREFIX, RefreshedCards};
pub use resolve::SettingEntry;
pub use setting_keys::{DEFAULT_MODEL, FormerNames, SETTING_KEYS, SettingKey};
pub use setting_kind::SettingKind;
pub use settings::{
    BedrockSettings, CostAlerts, EstimatorSetting, GitSettings, ImportedSettings, InstructionSettings,
    MemorySettings, NoteSettings, NoteWriter, OutputLimits, PermissionSettings, PolicySetting,
    ProviderEndpoints, ProviderSecrets, ResponseLimits, SandboxSetting, SandboxSettings, SessionRetention,
    Settings, SpendingLimits, TerminalSettings, VertexSettings,
};
pub use settings_edit::{SettingsEdit, SettingsEditError, default_settings_text};
pub use sources::{FlagSetting, ResolvedSetting, SettingOrigin, SettingsInput, SettingsSource};
pub use stored_keys::{KEYS_FILE, StoredKey, find_stored_key, store_key};
pub use telemetry_settings::{LogSettings, TelemetrySettings};
pub use trust::{
    ProjectTrust, TRUSTED_FILES, TrustRequirement, files_to_trust, is_trust_declined, record_declined_trust,
    record_trust,
};
