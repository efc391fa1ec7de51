//! What is wrong with a rule.

/// What is wrong with a rule, with an example of how it is meant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the rule `{rule}` {wrong}; for example `{example}`")]
pub struct RuleError {
    rule: String,
    wrong: String,
    example: &'static str,
}

impl RuleError {
    fn new(rule: &str, wrong: &str, example: &'static str) -> RuleError {
        RuleError { rule: String::from(rule), wrong: String::from(wrong), example }
    }

    pub(super) fn open(rule: &str) -> RuleError {
        RuleError::new(rule, "has a `(` and does not end with `)`", "Bash(git status:*)")
    }

    pub(super) fn name(rule: &str) -> RuleError {
        RuleError::new(rule, "does not begin with the name of a tool", "Edit(src/**)")
    }

    pub(super) fn empty(rule: &str) -> RuleError {
        RuleError::new(rule, "has nothing between its parentheses: leave them out to mean everything", "Bash")
    }

    pub(super) fn takes_none(rule: &str, tool: &str) -> RuleError {
        let wrong = format!("has a pattern, and the tool `{tool}` takes none");
        RuleError::new(rule, &wrong, "mcp__server__tool")
    }

    pub(super) fn domain(rule: &str) -> RuleError {
        RuleError::new(rule, "does not name the host of a page", "WebFetch(domain:example.com)")
    }

    pub(super) fn command(rule: &str) -> RuleError {
        RuleError::new(rule, "names no command before its star", "Bash(cargo test:*)")
    }

    pub(super) fn parent(rule: &str) -> RuleError {
        RuleError::new(rule, "leads up with `..`: write where that is instead", "Read(/srv/shared/**)")
    }

    pub(super) fn glob(rule: &str, why: &str) -> RuleError {
        RuleError::new(rule, &format!("has a pattern that cannot be read ({why})"), "Read(docs/**/*.md)")
    }
}
