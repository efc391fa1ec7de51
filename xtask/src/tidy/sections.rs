//! References to the numbered behavior: every `§` in the source is a heading of docs/behaviour.md.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use super::source::SourceFile;

/// Citations of sections that docs/behaviour.md does not have.
pub(crate) fn violations(root: &Path, files: &[SourceFile]) -> io::Result<Vec<String>> {
    let behavior = fs::read_to_string(root.join("docs/behaviour.md"))?;
    let known = sections(&behavior);
    let mut found = Vec::new();
    for file in files {
        for (idx, line) in file.text.lines().enumerate() {
            let cited = citations(line).into_iter().filter(|section| !known.contains(section));
            found
                .extend(cited.map(|section| {
                    format!("{}:{}: docs/behaviour.md has no §{section}", file.path, idx + 1)
                }));
        }
    }
    Ok(found)
}

/// Numbers of headings (`## 4 Compaction`, `### 3.1 Spill`) and of paragraphs (`**4.11** …`).
fn sections(behavior: &str) -> BTreeSet<String> {
    behavior
        .lines()
        .filter_map(|line| number(line.strip_prefix("**").unwrap_or(line.trim_start_matches(['#', ' ']))))
        .collect()
}

fn citations(line: &str) -> Vec<String> {
    line.match_indices('§').filter_map(|(at, sign)| number(line[at + sign.len()..].trim_start())).collect()
}

/// The section number that a text begins with.
fn number(text: &str) -> Option<String> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');
    (!number.is_empty()).then(|| number.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_are_compared_with_headings() {
        let known = sections("# Behavior\n\n## 4 Compaction\n\n**4.11** Summaries\ntext 5\n");
        assert_eq!(known.into_iter().collect::<Vec<_>>(), ["4", "4.11"]);
        assert_eq!(citations("/// See §4.11, and § 5."), ["4.11", "5"]);
    }
}
