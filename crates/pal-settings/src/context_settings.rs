//! The context policy that the settings describe.

use std::time::Duration;

use pal_context::cost_aware::CostAwareSettings;
use pal_context::{CondenseMode, CondenseModes, ContextPolicy, RestorationBudget};
use smol_str::SmolStr;

use crate::setting_values::SettingValues;
use crate::settings::{PolicySetting, Settings};

impl Settings {
    /// Context policy of the session's requests.
    pub fn context_policy(&self) -> ContextPolicy {
        self.context_policy_of(self.policy)
    }

    /// Like [`Settings::context_policy`], for another value of the setting `policy`.
    pub fn context_policy_of(&self, policy: PolicySetting) -> ContextPolicy {
        let values = SettingValues { entries: self.entries(), home: self.user_home.as_deref() };
        let standard = match policy {
            PolicySetting::Threshold => ContextPolicy::threshold(),
            PolicySetting::CostAware => ContextPolicy::cost_aware(CostAwareSettings {
                loss_weight: values.number("loss_weight").unwrap_or(0.5),
                cache_keepalive: values.is_on("cache_keepalive"),
                ..CostAwareSettings::STANDARD
            }),
        };
        with_layers(&values, &standard)
    }
}

fn with_layers(values: &SettingValues<'_>, standard: &ContextPolicy) -> ContextPolicy {
    let minutes = |name: &str| values.count(name).map(|minutes| Duration::from_secs(minutes * 60));
    let number = |name: &str, unset: usize| {
        values.count(name).map_or(unset, |count| usize::try_from(count).unwrap_or(usize::MAX))
    };
    let fold_from = values.count("fold.from_percent").unwrap_or(standard.fold_from_percent);
    let fold_urgent = values.count("fold.urgent_percent").unwrap_or(standard.fold_drain_percent);
    ContextPolicy {
        idle_compaction: values.value("idle_compaction").as_bool().unwrap_or(standard.idle_compaction),
        provider_compaction: values.is_on("compaction.provider"),
        reactive_only: values.is_on("compaction.reactive_only"),
        reactive_small_model: values.text("compaction.reactive_model").as_deref() == Some("small"),
        compaction_model: values.text("compaction.model").map(SmolStr::from),
        condense_modes: condense_modes(values, standard.condense_modes),
        condense_characters: values
            .count("condense.target_characters")
            .unwrap_or(standard.condense_characters),
        spill_characters: values.count("spill.result_characters").unwrap_or(standard.spill_characters),
        spill_characters_by_tool: values.counts("spill.tool_characters"),
        spill_characters_of_message: values
            .count("spill.message_characters")
            .unwrap_or(standard.spill_characters_of_message),
        spill_characters_of_user: values
            .count("spill.prompt_characters")
            .unwrap_or(standard.spill_characters_of_user),
        snip: values.is_on("snip.enabled"),
        snip_keep_messages: number("snip.keep_messages", standard.snip_keep_messages),
        cold_after: minutes("microcompact.cold_minutes").unwrap_or(standard.cold_after),
        cold_keep: number("microcompact.cold_keep", standard.cold_keep),
        pressure_keep: number("microcompact.pressure_keep", standard.pressure_keep),
        early_clear: values.is_on("microcompact.early"),
        cache_edit_from: number("microcompact.cache_edit_from", standard.cache_edit_from),
        cache_edit_keep: number("microcompact.cache_edit_keep", standard.cache_edit_keep),
        fold: values.is_on("fold.enabled"),
        fold_from_percent: fold_from,
        // Folding that never begins before it is urgent would only hold up auto-compact.
        fold_drain_percent: fold_urgent.max(fold_from),
        restoration: RestorationBudget {
            files: number("compaction.restored_files", standard.restoration.files),
            tokens: values.count("compaction.restored_tokens").unwrap_or(standard.restoration.tokens),
            ..standard.restoration
        },
        restored_line_tokens: values
            .count("compaction.restored_line_tokens")
            .unwrap_or(standard.restored_line_tokens),
        ..*standard
    }
}

fn condense_modes(values: &SettingValues<'_>, standard: CondenseModes) -> CondenseModes {
    let mode = |name: &str, unset: CondenseMode| match values.text(name).as_deref() {
        Some("always") => CondenseMode::Always,
        Some("pressure") => CondenseMode::Pressure,
        Some("never") => CondenseMode::Never,
        _ => unset,
    };
    CondenseModes {
        build_logs: mode("condense.build_logs", standard.build_logs),
        test_runs: mode("condense.test_runs", standard.test_runs),
        progress: mode("condense.progress", standard.progress),
        listings: mode("condense.listings", standard.listings),
        json: mode("condense.json", standard.json),
        diffs: mode("condense.diffs", standard.diffs),
        tables: mode("condense.tables", standard.tables),
        other: mode("condense.other", standard.other),
    }
}
