//! Front matter of a rule: the files that it applies to.
//!
//! Only rules have front matter. In any other file two lines of `---` may be horizontal rules, and the text between them instructions
//! that must not be lost.

use std::path::{Component, Path};

use pal_model::split_front_matter;
use serde::Deserialize;

/// Text and front matter of a rule.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct RuleText {
    /// Text after the front matter.
    pub(crate) text: String,
    /// The patterns of `paths:`; empty if the rule is for all files.
    pub(crate) patterns: Vec<String>,
    /// Error in the front matter, if any. The rule then applies to all files: better a rule too many
    /// than one that never applies.
    pub(crate) trouble: Option<String>,
}

#[derive(Deserialize, Default)]
struct FrontMatter {
    #[serde(default)]
    paths: Option<RulePaths>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RulePaths {
    One(String),
    Many(Vec<String>),
}

/// Parts a rule's front matter from its text.
pub(crate) fn parse_rule_text(file: &str) -> RuleText {
    let Some((matter, text)) = split_front_matter(file) else {
        return RuleText { text: file.to_owned(), patterns: Vec::new(), trouble: None };
    };
    match parse(matter) {
        Ok(front_matter) => {
            RuleText { text: text.to_owned(), patterns: patterns_of(front_matter.paths), trouble: None }
        }
        Err(trouble) => RuleText { text: text.to_owned(), patterns: Vec::new(), trouble: Some(trouble) },
    }
}

/// The folder of rules that a file lies in.
pub(crate) fn rules_folder(file: &Path) -> Option<&Path> {
    file.ancestors().skip(1).find(|folder| {
        let mut names = folder.components().rev().map(Component::as_os_str);
        names.next().is_some_and(|name| name == "rules")
            && names.next().is_some_and(|name| name == ".claude" || name == ".pal")
    })
}

fn parse(matter: &str) -> Result<FrontMatter, String> {
    if matter.trim().is_empty() {
        return Ok(FrontMatter::default());
    }
    serde_saphyr::from_str(matter)
        .or_else(|err| serde_saphyr::from_str(&with_quoted_globs(matter)).map_err(|_| err))
        .map_err(|err| {
            err.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })
}

/// Front matter with quotes around values that begin like a glob: `paths: **/*.ts` is what people write, but to YAML
/// it is a reference to something that is not there.
fn with_quoted_globs(matter: &str) -> String {
    let mut quoted = String::with_capacity(matter.len() + 16);
    for line in matter.lines() {
        let value_at = match line.trim_start() {
            item if item.starts_with("- ") => line.len() - item.len() + 2,
            pair => pair.find(": ").map_or(line.len(), |colon| line.len() - pair.len() + colon + 2),
        };
        let (key, value) = line.split_at(value_at);
        let value = value.trim();
        if value.starts_with(['*', '{', '!', '@', '%', '&', '?']) && !value.contains(['"', '\\']) {
            quoted.push_str(&format!("{key}\"{value}\"\n"));
        } else {
            quoted.push_str(line);
            quoted.push('\n');
        }
    }
    quoted
}

/// The single patterns. One text may hold several, with commas between them.
fn patterns_of(paths: Option<RulePaths>) -> Vec<String> {
    let texts = match paths {
        None => Vec::new(),
        Some(RulePaths::One(text)) => vec![text],
        Some(RulePaths::Many(texts)) => texts,
    };
    texts.iter().flat_map(|text| split_at_commas(text)).filter(|pattern| !pattern.is_empty()).collect()
}

/// Splits at commas outside of braces.
fn split_at_commas(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for letter in text.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match (letter, parts.last_mut()) {
            (',', _) if depth == 0 => parts.push(String::new()),
            (_, Some(part)) => part.push(letter),
            (_, None) => {}
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, text: &str, patterns: &[&str]) {
        let rule = parse_rule_text(file);
        assert_eq!((rule.text.as_str(), rule.trouble), (text, None), "of {file:?}");
        assert_eq!(rule.patterns, patterns, "of {file:?}");
    }

    #[test]
    fn patterns_are_read_and_the_text_is_what_follows() {
        check("plain", "plain", &[]);
        check("---\npaths: src/**/*.rs\n---\ntext\n", "text\n", &["src/**/*.rs"]);
        check("---\r\npaths:\r\n  - a/*\r\n  - \"b/{x,y}\"\r\n---\r\nt", "t", &["a/*", "b/{x,y}"]);
        check("---\npaths: \"a/*.ts, {b,c}/*.ts\"\n---\n", "", &["a/*.ts", "{b,c}/*.ts"]);
        check("---\ndescription: x\n---\nt", "t", &[]);
        check("---\npaths: []\n---\nt", "t", &[]);
        check("---\n---\nt", "t", &[]);
    }

    #[test]
    fn globs_without_quotes_are_understood() {
        check("---\npaths: **/*.ts\n---\nt", "t", &["**/*.ts"]);
        check("---\npaths:\n  - **/*.ts\n  - {a,b}/**\n---\nt", "t", &["**/*.ts", "{a,b}/**"]);
        check("---\ndescription: y\npaths: *.md\n---\nt", "t", &["*.md"]);
    }

    #[test]
    fn text_without_front_matter_is_unchanged() {
        check("---\nnever ends", "---\nnever ends", &[]);
        check("\n---\na: b\n---\n", "\n---\na: b\n---\n", &[]);
    }

    #[test]
    fn broken_front_matter_is_told() {
        let rule = parse_rule_text("---\npaths: [a\n---\nt");
        assert!(rule.trouble.is_some());
        assert_eq!((rule.text.as_str(), rule.patterns.len()), ("t", 0));
    }
}
