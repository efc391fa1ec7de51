//! Permission rules and the permission mode, from settings and the command line.

use pal_permissions::{PermissionMode, PermissionRule, RuleSet, SourcedRule};
use pal_settings::ResolvedSetting;

use crate::arguments::AgentArgs;
use crate::failure::Failure;
use crate::settings::Settings;

/// Parses the permission mode of the settings; an empty one is the default mode.
pub(crate) fn permission_mode(settings: &Settings) -> Result<PermissionMode, Failure> {
    let name = settings.permissions.mode.as_str();
    let name = if name.is_empty() { PermissionMode::Default.name() } else { name };
    name.parse().map_err(|error: pal_permissions::UnknownPermissionMode| {
        Failure::with_hint(error.to_string(), "correct `permissions.mode` in the settings")
    })
}

/// Permission rules of the settings and of the command line.
pub(crate) fn all_rules(args: &AgentArgs, settings: &Settings) -> Result<RuleSet, Failure> {
    let typed = |rules: Vec<String>| -> Result<Vec<SourcedRule>, Failure> {
        rules.iter().map(|rule| parse_rule(rule, "command line")).collect()
    };
    let mut rules = settings_rules(settings)?;
    rules.allow.extend(typed(args.permissions.allowed())?);
    rules.deny.extend(typed(args.permissions.disallowed())?);
    Ok(rules)
}

/// Permission rules of the settings.
pub(crate) fn settings_rules(settings: &Settings) -> Result<RuleSet, Failure> {
    let permissions = &settings.permissions;
    let parse = |rules: &[ResolvedSetting<String>]| -> Result<Vec<SourcedRule>, Failure> {
        rules.iter().map(|rule| parse_rule(&rule.value, &rule.origin.to_string())).collect()
    };
    let mut rules = RuleSet::default();
    rules.allow = parse(&permissions.allow)?;
    rules.ask = parse(&permissions.ask)?;
    rules.deny = parse(&permissions.deny)?;
    Ok(rules)
}

fn parse_rule(rule: &str, origin: &str) -> Result<SourcedRule, Failure> {
    let parsed: Result<PermissionRule, _> = rule.parse();
    let parsed =
        parsed.map_err(|error| Failure::usage_error(format!("{origin}: {error}"), "correct the rule"))?;
    Ok(SourcedRule { rule: parsed, origin: origin.to_owned() })
}
