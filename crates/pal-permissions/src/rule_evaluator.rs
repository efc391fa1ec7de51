//! Evaluation of a tool call against rules and mode.

mod command_access;
mod file_access;
mod restrictions;

use crate::{
    PermissionContext, PermissionMode, PermissionRule, RuleSet, SandboxState, SourcedRule, ToolAccess,
    Verdict,
};

/// Tool call to be checked.
#[derive(Clone, Copy, Debug)]
pub struct PermissionRequest<'a> {
    /// Name of the called tool.
    pub tool: &'a str,
    /// Accesses that the call needs.
    pub needs: &'a [ToolAccess],
    /// Permission mode of the session.
    pub mode: PermissionMode,
}

/// Checks a tool call. The strictest verdict on any access that it needs is the verdict on the call.
pub fn authorize(
    request: &PermissionRequest<'_>,
    rules: &RuleSet,
    context: &PermissionContext<'_>,
) -> Verdict {
    let evaluator = RuleEvaluator::new(request, rules, context);
    let mut verdict = evaluator.tool();
    for need in request.needs {
        if matches!(verdict, Verdict::Deny { .. }) {
            break;
        }
        verdict = stricter(verdict, evaluator.need(need));
    }
    verdict
}

/// Returns whether a rule may match a call: if it denied, the call would not simply go ahead. For conditions
/// of hooks, which run rather than not when in doubt.
pub fn may_match(
    rule: &PermissionRule,
    tool: &str,
    needs: &[ToolAccess],
    context: &PermissionContext<'_>,
) -> bool {
    let mut rules = RuleSet::default();
    rules.deny.push(SourcedRule { rule: rule.clone(), origin: String::from("condition") });
    authorize(&PermissionRequest { tool, needs, mode: PermissionMode::Bypass }, &rules, &context.unconfined())
        != Verdict::Allow
}

/// Returns the stricter of two verdicts; the first if they are equally strict.
fn stricter(one: Verdict, other: Verdict) -> Verdict {
    match (&one, &other) {
        (Verdict::Deny { .. }, _) | (_, Verdict::Allow) => one,
        (_, Verdict::Deny { .. }) | (Verdict::Allow, _) => other,
        _ => one,
    }
}

/// Inputs of a verdict.
pub(crate) struct RuleEvaluator<'a> {
    tool: &'a str,
    mode: PermissionMode,
    rules: &'a RuleSet,
    pub(crate) context: &'a PermissionContext<'a>,
}

impl<'a> RuleEvaluator<'a> {
    pub(crate) fn new(
        request: &PermissionRequest<'a>,
        rules: &'a RuleSet,
        context: &'a PermissionContext<'a>,
    ) -> RuleEvaluator<'a> {
        RuleEvaluator { tool: request.tool, mode: request.mode, rules, context }
    }

    /// Returns whether an access is allowed without asking.
    pub(crate) fn is_allowed(&self, need: &ToolAccess) -> bool {
        self.need(need) == Verdict::Allow
    }

    /// Returns whether bypass mode is limited by the sandbox, which only the user can switch off.
    fn is_bypass_confined(&self) -> bool {
        self.mode == PermissionMode::Bypass && self.context.sandbox.state != SandboxState::Off
    }

    /// Returns whether only deny and ask rules limit the session.
    fn is_unconfined(&self) -> bool {
        self.mode == PermissionMode::Bypass && self.context.sandbox.state == SandboxState::Off
    }
}

impl RuleEvaluator<'_> {
    /// Applies deny and ask rules for the whole tool.
    fn tool(&self) -> Verdict {
        let is_meant = |placed: &&SourcedRule| placed.rule.is_about_tool(self.tool);
        if let Some(placed) = self.rules.deny.iter().find(is_meant) {
            return deny_by_rule(placed);
        }
        let is_answered = self.rules.session_rules().any(|rule| rule.is_about_tool(self.tool));
        match self.rules.ask.iter().find(is_meant) {
            // An answer about one call of a tool with patterns holds for that call only.
            Some(placed) if !is_answered => ask_by_rule(placed, String::from(self.tool)),
            _ => Verdict::Allow,
        }
    }

    fn need(&self, need: &ToolAccess) -> Verdict {
        match need {
            ToolAccess::Read(target) => self.read(target),
            ToolAccess::Write(target) => self.write(target),
            ToolAccess::Run(command) => self.run(command),
            ToolAccess::Fetch(address) => self.fetch(address),
            ToolAccess::Use => self.use_tool(),
            ToolAccess::Named(name) => self.use_named(name),
        }
    }

    /// Applies deny and ask rules with a name; a rule without one is about the whole tool.
    fn use_named(&self, name: &str) -> Verdict {
        let is_meant = |placed: &&SourcedRule| placed.rule.is_about_name(self.tool, name, true);
        if let Some(placed) = self.rules.deny.iter().find(is_meant) {
            return deny_by_rule(placed);
        }
        let is_answered = self.rules.session_rules().any(|rule| rule.is_about_name(self.tool, name, false));
        match self.rules.ask.iter().find(is_meant) {
            Some(placed) if !is_answered => ask_by_rule(placed, format!("{}({name})", self.tool)),
            _ => Verdict::Allow,
        }
    }

    fn use_tool(&self) -> Verdict {
        if self.mode == PermissionMode::Bypass
            || self.rules.allow_rules().any(|rule| rule.is_about_tool(self.tool))
        {
            return Verdict::Allow;
        }
        Verdict::Ask { why: format!("no rule allows the tool {}", self.tool), rule: String::from(self.tool) }
    }

    fn fetch(&self, address: &str) -> Verdict {
        let host = host(address);
        let name = host.as_deref().unwrap_or_default();
        if let Some(placed) = self.rules.deny.iter().find(|placed| placed.rule.is_about_host(name, true)) {
            return deny_by_rule(placed);
        }
        let rule = match &host {
            Some(host) => format!("WebFetch(domain:{host})"),
            None => String::from("WebFetch"),
        };
        let is_answered = self.rules.session_rules().any(|rule| rule.is_about_host(name, false));
        let is_meant = |placed: &&SourcedRule| placed.rule.is_about_host(name, true);
        if let Some(placed) = self.rules.ask.iter().find(is_meant).filter(|_| !is_answered) {
            return ask_by_rule(placed, rule);
        }
        let has_rule = self.rules.allow_rules().any(|rule| rule.is_about_host(name, false));
        if self.is_unconfined() || has_rule || (self.is_bypass_confined() && self.context.sandbox.network) {
            return Verdict::Allow;
        }
        if self.is_bypass_confined() {
            let why = format!(
                "bypass mode runs in the sandbox, which reaches no network: the rule `{rule}` or `sandbox_network = true` \
                 would allow it"
            );
            return Verdict::Deny { why };
        }
        let why = match &host {
            Some(host) => format!("no rule allows pages of {host}"),
            None => format!("the host of `{address}` cannot be told"),
        };
        Verdict::Ask { why, rule }
    }
}

fn deny_by_rule(placed: &SourcedRule) -> Verdict {
    Verdict::Deny { why: format!("the rule {placed} denies it") }
}

fn ask_by_rule(placed: &SourcedRule, rule: String) -> Verdict {
    Verdict::Ask { why: format!("the rule {placed} wants to be asked"), rule }
}

/// Host of a URL in lower case; `None` if URL parsers may disagree on it.
fn host(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    if !["http", "https"].contains(&scheme.to_lowercase().as_str()) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, ""),
    };
    let is_name = |character: char| character.is_ascii_alphanumeric() || "-.".contains(character);
    let is_address = host.starts_with('[') && host.ends_with(']');
    let is_known = is_address || (!host.is_empty() && host.chars().all(is_name));
    let is_port = port.chars().all(|character| character.is_ascii_digit());
    (is_known && is_port).then(|| host.trim_end_matches('.').to_lowercase())
}
