//! What permissions say to a call: the whole of it, and files, pages and servers' tools.

mod files;
mod run;
mod strict;

use crate::{Ground, Mode, Need, Placed, Rule, Rules, SandboxState, Verdict};

/// A call that wants to go ahead.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The tool that is called.
    pub tool: &'a str,
    /// What the call would do.
    pub needs: &'a [Need],
    /// How much the session does without asking.
    pub mode: Mode,
}

/// What permissions say to a call. The strictest answer to anything that it needs is the answer to all.
pub fn judge(request: &Request<'_>, rules: &Rules, ground: &Ground<'_>) -> Verdict {
    let judge = Judge::new(request, rules, ground);
    let mut verdict = judge.tool();
    for need in request.needs {
        if matches!(verdict, Verdict::Deny { .. }) {
            break;
        }
        verdict = stricter(verdict, judge.need(need));
    }
    verdict
}

/// Whether a rule may be about a call, on the safe side: if it denied, the call would not simply go ahead. For conditions
/// of hooks, which rather run once too often.
pub fn may_concern(rule: &Rule, tool: &str, needs: &[Need], ground: &Ground<'_>) -> bool {
    let mut rules = Rules::default();
    rules.deny.push(Placed { rule: rule.clone(), origin: String::from("condition") });
    judge(&Request { tool, needs, mode: Mode::Bypass }, &rules, &ground.unconfined()) != Verdict::Allow
}

/// The stricter of two verdicts; the first if they are the same.
fn stricter(one: Verdict, other: Verdict) -> Verdict {
    match (&one, &other) {
        (Verdict::Deny { .. }, _) | (_, Verdict::Allow) => one,
        (_, Verdict::Deny { .. }) | (Verdict::Allow, _) => other,
        _ => one,
    }
}

/// All that a verdict is made of.
pub(crate) struct Judge<'a> {
    tool: &'a str,
    mode: Mode,
    rules: &'a Rules,
    pub(crate) ground: &'a Ground<'a>,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(request: &Request<'a>, rules: &'a Rules, ground: &'a Ground<'a>) -> Judge<'a> {
        Judge { tool: request.tool, mode: request.mode, rules, ground }
    }

    /// Whether something is allowed without asking.
    pub(crate) fn is_allowed(&self, need: &Need) -> bool {
        self.need(need) == Verdict::Allow
    }

    /// Whether bypass mode holds this session to the sandbox: only a person who switched it off lifts that.
    fn is_bypass_confined(&self) -> bool {
        self.mode == Mode::Bypass && self.ground.sandbox.state != SandboxState::Off
    }

    /// Whether nothing holds this session back but rules that deny or ask.
    fn is_unconfined(&self) -> bool {
        self.mode == Mode::Bypass && self.ground.sandbox.state == SandboxState::Off
    }
}

impl Judge<'_> {
    /// Rules about the tool as a whole.
    fn tool(&self) -> Verdict {
        let is_meant = |placed: &&Placed| placed.rule.is_about_tool(self.tool);
        if let Some(placed) = self.rules.deny.iter().find(is_meant) {
            return denied(placed);
        }
        let is_answered = self.rules.answered().any(|rule| rule.is_about_tool(self.tool));
        match self.rules.ask.iter().find(is_meant) {
            // What was asked about one call of a tool with patterns is answered for that call.
            Some(placed) if !is_answered => asked(placed, String::from(self.tool)),
            _ => Verdict::Allow,
        }
    }

    fn need(&self, need: &Need) -> Verdict {
        match need {
            Need::Read(target) => self.read(target),
            Need::Write(target) => self.write(target),
            Need::Run(command) => self.run(command),
            Need::Fetch(address) => self.fetch(address),
            Need::Use => self.use_tool(),
        }
    }

    fn use_tool(&self) -> Verdict {
        if self.mode == Mode::Bypass || self.rules.allowing().any(|rule| rule.is_about_tool(self.tool)) {
            return Verdict::Allow;
        }
        Verdict::Ask { why: format!("no rule allows the tool {}", self.tool), rule: String::from(self.tool) }
    }

    fn fetch(&self, address: &str) -> Verdict {
        let host = host(address);
        let name = host.as_deref().unwrap_or_default();
        if let Some(placed) = self.rules.deny.iter().find(|placed| placed.rule.is_about_host(name, true)) {
            return denied(placed);
        }
        let rule = match &host {
            Some(host) => format!("WebFetch(domain:{host})"),
            None => String::from("WebFetch"),
        };
        let is_answered = self.rules.answered().any(|rule| rule.is_about_host(name, false));
        let is_meant = |placed: &&Placed| placed.rule.is_about_host(name, true);
        if let Some(placed) = self.rules.ask.iter().find(is_meant).filter(|_| !is_answered) {
            return asked(placed, rule);
        }
        let has_rule = self.rules.allowing().any(|rule| rule.is_about_host(name, false));
        if self.is_unconfined() || has_rule || (self.is_bypass_confined() && self.ground.sandbox.network) {
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

fn denied(placed: &Placed) -> Verdict {
    Verdict::Deny { why: format!("the rule {placed} denies it") }
}

fn asked(placed: &Placed, rule: String) -> Verdict {
    Verdict::Ask { why: format!("the rule {placed} wants to be asked"), rule }
}

/// The host of an address, in small letters; nothing if readers of addresses may not agree on it.
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
