//! Rules that become active when a file that they apply to is touched.

use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use pal_prompt::InstructionScope;
use serde::Serialize;

use crate::display_text::{display_name, display_path};
use crate::front_matter::parse_rule_text;

/// The most patterns of one rule.
const PATTERNS_MAX: usize = 100;

/// The longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1_000;

/// A rule that waits until a file that it is for is touched.
#[derive(Clone, Debug, Serialize)]
pub struct InstructionRule {
    /// Its path.
    pub path: String,
    /// Where it comes from.
    pub scope: InstructionScope,
    /// The patterns of files that it is for, relative to the directory that holds its `.claude` or `.pal` folder; for
    /// rules of the user, to the project's top.
    pub patterns: Vec<String>,
    #[serde(skip)]
    pub(crate) file: PathBuf,
    #[serde(skip)]
    pub(crate) text: String,
    #[serde(skip)]
    pub(crate) base: PathBuf,
    #[serde(skip)]
    pub(crate) globs: Vec<Glob>,
    /// Put together when it is first asked, which for most rules of most sessions is never.
    #[serde(skip)]
    pub(crate) set: Option<GlobSet>,
}

impl InstructionRule {
    /// True if the rule applies to this file.
    pub(crate) fn applies_to(&mut self, file: &Path) -> bool {
        let Ok(relative) = file.strip_prefix(&self.base) else { return false };
        let globs = &self.globs;
        self.set.get_or_insert_with(|| set_of(globs)).is_match(relative)
    }
}

/// A rule, with a warning for whatever its front matter says that cannot be understood.
pub(crate) fn parse_rule(
    file: &Path,
    scope: InstructionScope,
    text: &str,
    base: PathBuf,
) -> (InstructionRule, Vec<String>) {
    let parsed = parse_rule_text(text);
    let path = display_path(file);
    let is_for_all = parsed.patterns.iter().any(|pattern| pattern == "**");
    let (mut globs, troubles) = parse_globs(&parsed.patterns);
    if is_for_all {
        globs.clear();
    }
    let warnings = troubles
        .into_iter()
        .chain(parsed.trouble)
        .map(|trouble| format!("{}: front matter: {}", display_name(&path), display_name(&trouble)))
        .collect();
    let (patterns, text, file) = (parsed.patterns, parsed.text, file.to_owned());
    (InstructionRule { path, scope, patterns, file, text, base, globs, set: None }, warnings)
}

/// The patterns that can be understood, and a word on each that cannot.
pub(crate) fn parse_globs(patterns: &[String]) -> (Vec<Glob>, Vec<String>) {
    let mut globs = Vec::new();
    let mut troubles = Vec::new();
    for pattern in patterns.iter().take(PATTERNS_MAX) {
        match parse_glob(pattern) {
            Ok(more) => globs.extend(more),
            Err(trouble) => troubles.push(trouble),
        }
    }
    if patterns.len() > PATTERNS_MAX {
        troubles.push(format!("more than {PATTERNS_MAX} patterns"));
    }
    (globs, troubles)
}

/// A pattern as globs: itself, and all below it if it names a folder.
fn parse_glob(pattern: &str) -> Result<Vec<Glob>, String> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!("a pattern of more than {PATTERN_BYTES_MAX} bytes"));
    }
    let trimmed = pattern.trim_start_matches("./").trim_start_matches('/').trim_end_matches('/');
    let mut globs = vec![build(trimmed)?];
    let last = trimmed.rsplit('/').next().unwrap_or_default();
    if !last.contains(['*', '?', '[', '{']) {
        globs.push(build(&format!("{trimmed}/**"))?);
    }
    Ok(globs)
}

fn build(pattern: &str) -> Result<Glob, String> {
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|err| format!("a pattern that cannot be understood ({})", err.kind()))
}

fn set_of(globs: &[Glob]) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        builder.add(glob.clone());
    }
    builder.build().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        let (globs, troubles) = parse_globs(&[pattern.to_owned()]);
        assert!(troubles.is_empty());
        let set = set_of(&globs);
        for file in matching {
            assert!(set.is_match(file), "{pattern} is for {file}");
        }
        for file in others {
            assert!(!set.is_match(file), "{pattern} is not for {file}");
        }
    }

    #[test]
    fn patterns_mean_what_people_mean() {
        check("src/**/*.rs", &["src/a.rs", "src/b/c/d.rs"], &["a.rs", "src/a.ts"]);
        check("*.md", &["README.md"], &["docs/a.md"]);
        check("**/*.{ts,tsx}", &["a.ts", "b/c.tsx"], &["a.rs"]);
        check("./src/", &["src/a", "src/b/c"], &["lib/src/a"]);
        check("src/*", &["src/a"], &["src/b/c"]);
        check("Makefile", &["Makefile"], &["a/Makefile"]);
    }

    #[test]
    fn invalid_front_matter_is_reported() {
        assert_eq!(parse_globs(&["[".to_owned(), "a".to_owned()]).1.len(), 1);
        assert_eq!(parse_globs(&["x".repeat(1_001)]).1.len(), 1);
        assert_eq!(parse_globs(&vec!["x".to_owned(); 101]).1.len(), 1);
    }
}
