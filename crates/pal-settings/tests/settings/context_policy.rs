//! The context policy follows the settings.

use pal_context::ContextPolicy;
use pal_context::cost_aware::CostAwareSettings;
use pal_settings::{SETTING_KEYS, SettingKey};

use crate::World;

/// Tables whose settings are figures of the context policy.
const TABLES: [&str; 6] = ["compaction.", "condense.", "spill.", "snip.", "microcompact.", "fold."];

/// Settings of those tables.
pub(crate) fn context_keys() -> impl Iterator<Item = &'static SettingKey> {
    SETTING_KEYS.iter().filter(|key| TABLES.iter().any(|table| key.name.starts_with(table)))
}

fn policy(text: &str) -> ContextPolicy {
    World::new().user(text).settings().context_policy()
}

#[test]
fn defaults_are_the_standard_policies() {
    assert_eq!(policy("policy = \"threshold\""), ContextPolicy::threshold());
    assert_eq!(
        policy(""),
        ContextPolicy::cost_aware(CostAwareSettings::STANDARD),
        "cold_keep stays at its own default"
    );
}

#[test]
fn every_setting_of_a_layer_changes_the_policy() {
    assert!(context_keys().count() > TABLES.len());
    for key in context_keys() {
        let value = match key.default {
            "false" => "true",
            "true" => "false",
            "\"always\"" | "\"pressure\"" => "\"never\"",
            "\"main\"" => "\"small\"",
            "null" if key.name == "compaction.model" => "\"claude-haiku-4-5\"",
            "4000" => "5000",
            "{}" => "{ Bash = 96 }",
            // Below the default, so that no other figure limits it.
            "90" => "80",
            _ => "96",
        };
        let text = format!("{} = {value}", key.name);
        assert_ne!(policy(&text), policy(""), "{text}");
    }
}

#[test]
fn folding_is_urgent_no_earlier_than_it_starts() {
    let policy = policy("fold.from_percent = 97\nfold.urgent_percent = 40\n");
    assert_eq!((policy.fold_from_percent, policy.fold_drain_percent), (97, 97));
    let error = World::new().user("fold.from_percent = 101").error();
    assert!(error.contains("an integer from 1 to 100"), "{error}");
}
