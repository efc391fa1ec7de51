//! Permission rules and the permission mode, from settings and the command line.

use pal_model::closest_word;
use pal_permissions::{PermissionMode, PermissionRule, RuleSet, SourcedRule};
use pal_prompt::built_in_tools;
use pal_settings::ResolvedSetting;

use crate::arguments::AgentArgs;
use crate::failure::Failure;
use crate::settings::Settings;

/// Parses the permission mode of the settings; an empty one is the default mode.
pub(crate) fn permission_mode(settings: &Settings) -> Result<PermissionMode, Failure> {
    let name = settings.permissions.mode.as_str();
    let name = if name.is_empty() { PermissionMode::Default.name() } else { name };
    let mode = name.parse().map_err(|error: pal_permissions::UnknownPermissionMode| {
        Failure::with_hint(error.to_string(), "correct `permissions.mode` in the settings")
    })?;
    match &settings.permissions.bypass_forbidden_by {
        Some(source) if mode == PermissionMode::Bypass => Err(Failure::usage_error(
            format!("the mode bypass is not allowed: {source} forbids it"),
            "choose another --permission-mode, or allow what you need with --allowed-tools",
        )),
        _ => Ok(mode),
    }
}

/// Permission rules of the settings and of the command line.
pub(crate) fn all_rules(args: &AgentArgs, settings: &Settings) -> Result<RuleSet, Failure> {
    let typed = |rules: Vec<String>| -> Result<Vec<SourcedRule>, Failure> {
        let rules: Result<Vec<SourcedRule>, Failure> =
            rules.iter().map(|rule| parse_rule(rule, "command line")).collect();
        rules?.into_iter().map(|rule| check_tool(&rule).map(|()| rule)).collect()
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

/// Rejects a rule whose tool is nearly the name of one: it would have no effect.
fn check_tool(rule: &SourcedRule) -> Result<(), Failure> {
    match nearest_tool(rule.rule.tool()) {
        Some(near) => Err(Failure::usage_error(
            format!("the rule `{}` names no tool; did you mean `{near}`?", rule.rule),
            "`pal help permissions` lists the forms of rules",
        )),
        None => Ok(()),
    }
}

/// The tool that a mistyped name means; none if the name is that of a tool, or near none.
fn nearest_tool(tool: &str) -> Option<String> {
    let tools = built_in_tools();
    let mut known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    known.extend([
        "MultiEdit",
        "NotebookRead",
        "LS",
        "Task",
        "TodoWrite",
        "KillShell",
        "TaskOutput",
        "SlashCommand",
    ]);
    if known.contains(&tool) || tool.starts_with("mcp__") {
        return None;
    }
    closest_word(tool, &known).map(str::to_owned)
}

fn parse_rule(rule: &str, origin: &str) -> Result<SourcedRule, Failure> {
    let parsed: Result<PermissionRule, _> = rule.parse();
    let parsed = parsed.map_err(|error| {
        // A mistyped tool takes no pattern, but that is not what is wrong.
        let near = rule.split_once('(').and_then(|(tool, _)| nearest_tool(tool.trim()));
        let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        Failure::usage_error(
            format!("{origin}: {error}{near}"),
            "correct the rule; `pal help permissions` lists the forms",
        )
    })?;
    Ok(SourcedRule { rule: parsed, origin: origin.to_owned() })
}
