//! Errors in the text of a rule.

/// Error in the text of a rule, with a correct example.
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
        RuleError::new(rule, "has a `(` but does not end with `)`", "Bash(git status:*)")
    }

    pub(super) fn name(rule: &str) -> RuleError {
        RuleError::new(rule, "does not begin with the name of a tool", "Edit(src/**)")
    }

    pub(super) fn empty(rule: &str) -> RuleError {
        RuleError::new(rule, "has nothing between its parentheses: omit them to match everything", "Bash")
    }

    pub(super) fn takes_none(rule: &str, tool: &str) -> RuleError {
        let wrong = format!("has a pattern, but the tool `{tool}` takes none");
        RuleError::new(rule, &wrong, "mcp__server__tool")
    }

    pub(super) fn domain(rule: &str) -> RuleError {
        RuleError::new(rule, "does not name the host of a page", "WebFetch(domain:example.com)")
    }

    pub(super) fn command(rule: &str) -> RuleError {
        RuleError::new(rule, "names no command before its star", "Bash(cargo test:*)")
    }

    pub(super) fn parent(rule: &str) -> RuleError {
        RuleError::new(rule, "contains `..`: write the resolved path instead", "Read(/srv/shared/**)")
    }

    pub(super) fn glob(rule: &str, why: &str) -> RuleError {
        RuleError::new(rule, &format!("has an invalid pattern ({why})"), "Read(docs/**/*.md)")
    }
}
