//! Permission rules of Claude Code, written in our form.

use std::path::{Component, Path, PathBuf};

use pal_permissions::PermissionRule;

/// Effect of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RuleEffect {
    Allow,
    Ask,
    Deny,
}

/// Directories that path patterns start at.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct RuleRoots<'a> {
    /// Root of the project, if there is one.
    pub(super) project: Option<&'a Path>,
    /// Directory of the user's settings file, where `/path` starts in that file; none for all other files.
    pub(super) settings: Option<&'a Path>,
}

/// Tools whose pattern is a path.
const PATH_TOOLS: &[&str] =
    &["Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "NotebookRead", "Grep", "Glob", "LS"];

/// Tools whose allow rules with a path have no effect in Claude Code.
const EDITORS: &[&str] = &["Write", "MultiEdit", "NotebookEdit"];

/// Tools of Claude Code that have another name here.
const RENAMED: &[(&str, &str)] = &[
    ("Task", "Agent"),
    ("TodoWrite", "Todo"),
    ("TaskOutput", "BashOutput"),
    ("KillShell", "KillBash"),
    ("TaskStop", "KillBash"),
];

/// Every tool that changes or reads something: the meaning of the rule `*`.
const ALL_TOOLS: &[&str] = &[
    "Agent",
    "Bash",
    "BashOutput",
    "Edit",
    "Glob",
    "Grep",
    "KillBash",
    "NotebookEdit",
    "Read",
    "Recall",
    "SendMessage",
    "Skill",
    "Todo",
    "WebFetch",
    "WebSearch",
    "Write",
];

/// Rules of ours with the same meaning. A deny or ask rule that is not understood covers its whole tool; an allow rule
/// that is not understood is dropped. The second part is a warning.
pub(super) fn translate_rule(
    rule: &str,
    effect: RuleEffect,
    roots: RuleRoots<'_>,
) -> (Vec<String>, Option<String>) {
    let rule = rule.trim();
    if rule == "*" {
        return match effect {
            RuleEffect::Allow => {
                (Vec::new(), Some(String::from("allow rule `*` is not used: name the tools")))
            }
            _ => (ALL_TOOLS.iter().map(|tool| (*tool).to_owned()).collect(), None),
        };
    }
    let (tool, inside) = match rule.split_once('(') {
        Some((tool, rest)) => (tool.trim(), rest.strip_suffix(')')),
        None => (rule, None),
    };
    let tool = RENAMED.iter().find(|(theirs, _)| *theirs == tool).map_or(tool, |(_, ours)| ours);
    let is_unclosed = rule.contains('(') && inside.is_none();
    let candidates: Vec<String> = match inside {
        _ if is_unclosed => vec![rule.to_owned()],
        None => vec![tool.to_owned()],
        Some("*") | Some("") | Some("**") if effect != RuleEffect::Allow => vec![tool.to_owned()],
        Some("*") => vec![tool.to_owned()],
        Some(inside) if PATH_TOOLS.contains(&tool) => path_patterns(inside, effect, roots)
            .into_iter()
            .map(|pattern| format!("{tool}({pattern})"))
            .collect(),
        Some(inside) => vec![format!("{tool}({inside})")],
    };
    if effect == RuleEffect::Allow && inside.is_some_and(|inside| inside != "*") && EDITORS.contains(&tool) {
        let why = "Claude Code compares paths only with rules for Edit";
        return (Vec::new(), Some(format!("allow rule `{rule}` is not used: {why}")));
    }
    let wrong = candidates.iter().find_map(|rule| rule.parse::<PermissionRule>().err());
    match (wrong, effect) {
        (None, _) => (candidates, None),
        (Some(error), RuleEffect::Allow) => {
            (Vec::new(), Some(format!("allow rule `{rule}` is not used: {error}")))
        }
        (Some(error), _) => broadened(rule, tool, effect, &error.to_string()),
    }
}

/// A restrictive rule that is not understood, as a rule for its whole tool.
fn broadened(rule: &str, tool: &str, effect: RuleEffect, why: &str) -> (Vec<String>, Option<String>) {
    let word = if effect == RuleEffect::Deny { "denied" } else { "asked about" };
    let is_tool = tool.parse::<PermissionRule>().is_ok();
    let rules: Vec<String> = if is_tool {
        vec![tool.to_owned()]
    } else {
        let named = ALL_TOOLS.iter().filter(|known| is_like(tool, known));
        let named: Vec<String> = named.map(|known| (*known).to_owned()).collect();
        // A name that matches no tool may mean any of them.
        if named.is_empty() && !tool.starts_with("mcp__") {
            ALL_TOOLS.iter().map(|known| (*known).to_owned()).collect()
        } else {
            named
        }
    };
    let what = if rules.is_empty() { String::from("all MCP tools") } else { rules.join(", ") };
    let warning = format!("the rule `{rule}` is not understood ({why}), so {what} is {word} as a whole");
    (rules, Some(warning))
}

/// Returns whether a name matches a pattern with `*`.
fn is_like(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|left| {
            (0..=left.len()).filter_map(|at| left.get(at..)).any(|end| is_like(rest, end))
        }),
    }
}

/// Path patterns of ours. In Claude Code `//x` is absolute, and `/x` is relative to the project or, in the user's file, to
/// the directory of that file.
fn path_patterns(inside: &str, effect: RuleEffect, roots: RuleRoots<'_>) -> Vec<String> {
    let inside = inside.trim();
    if let Some(below) = inside.strip_prefix('/').filter(|below| !below.starts_with('/')) {
        let relative = if below.is_empty() { "**" } else { below };
        let anchored = match roots.settings {
            Some(folder) => format!("/{}/{relative}", folder.display()),
            None => relative.to_owned(),
        };
        return match effect {
            RuleEffect::Allow => vec![anchored],
            // Versions differ in what it is relative to, so a restriction covers all readings.
            _ => {
                let mut patterns = vec![relative.to_owned(), inside.to_owned()];
                patterns.extend(roots.settings.map(|_| anchored));
                patterns
            }
        };
    }
    let has_parent = Path::new(inside).components().any(|part| part == Component::ParentDir);
    match roots.project {
        Some(project) if has_parent && !inside.starts_with(['/', '~']) => {
            vec![format!("/{}", without_parents(&project.join(inside)).display())]
        }
        _ => vec![inside.to_owned()],
    }
}

/// Resolves `..` in the text of a path.
fn without_parents(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(resolved.pop()),
            Component::CurDir => {}
            part => resolved.push(part),
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_keep_their_meaning_or_get_stricter() {
        use RuleEffect::{Allow, Ask, Deny};
        let cases: &[(&str, RuleEffect, &[&str])] = &[
            ("Bash(npm run test:*)", Allow, &["Bash(npm run test:*)"]),
            ("Bash(git * main)", Allow, &["Bash(git * main)"]),
            ("Bash(*)", Allow, &["Bash"]),
            ("Read(./.env)", Deny, &["Read(./.env)"]),
            ("Read(./secrets/**)", Deny, &["Read(./secrets/**)"]),
            ("Edit(/src/**)", Allow, &["Edit(src/**)"]),
            ("Edit(/src/**)", Deny, &["Edit(src/**)", "Edit(/src/**)"]),
            ("Read(//etc/passwd)", Allow, &["Read(//etc/passwd)"]),
            ("Read(~/.ssh/**)", Deny, &["Read(~/.ssh/**)"]),
            ("Read(../other/**)", Deny, &["Read(//srv/other/**)"]),
            ("WebFetch(domain:example.com)", Allow, &["WebFetch(domain:example.com)"]),
            ("mcp__github__*", Deny, &["mcp__github"]),
            ("Write(src/**)", Allow, &[]),
            ("Write(src/**)", Deny, &["Write(src/**)"]),
            ("Write", Allow, &["Write"]),
            ("Task", Deny, &["Agent"]),
            ("TodoWrite", Allow, &["Todo"]),
            ("Future(x:y)", Deny, &["Future"]),
            ("Future(x:y)", Allow, &[]),
            ("WebFetch(example.com)", Ask, &["WebFetch"]),
            ("Web*", Deny, &["WebFetch", "WebSearch"]),
            ("Bash(rm", Deny, &["Bash"]),
            ("Read()", Deny, &["Read"]),
        ];
        for (rule, effect, expected) in cases {
            let (rules, warning) = translate_rule(
                rule,
                *effect,
                RuleRoots { project: Some(Path::new("/srv/here")), settings: None },
            );
            let rules: Vec<String> =
                rules.iter().map(|rule| rule.replace("mcp__github__*", "mcp__github")).collect();
            assert_eq!(rules, *expected, "{rule} {effect:?}: {warning:?}");
        }
        assert_eq!(translate_rule("*", Deny, RuleRoots::default()).0, ALL_TOOLS);
        assert!(
            translate_rule("???", Deny, RuleRoots::default()).0.contains(&String::from("Bash")),
            "it may mean any tool"
        );
    }

    #[test]
    fn a_leading_slash_of_the_users_file_starts_at_its_directory() {
        let roots =
            RuleRoots { project: Some(Path::new("/p")), settings: Some(Path::new("/home/me/.claude")) };
        let rules = |rule: &str, effect| translate_rule(rule, effect, roots).0;
        assert_eq!(rules("Edit(/src/**)", RuleEffect::Allow), ["Edit(//home/me/.claude/src/**)"]);
        assert_eq!(
            rules("Edit(/src/**)", RuleEffect::Deny),
            ["Edit(src/**)", "Edit(/src/**)", "Edit(//home/me/.claude/src/**)"]
        );
    }
}
