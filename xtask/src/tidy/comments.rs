//! The language of comments.

use super::source::SourceFile;

/// Words that make a comment read like a translation.
const BANNED: [&str; 6] = ["whoever", "somebody", "nobody", "so many", "so-many", "shall"];

/// Openers that promise a question instead of stating a contract.
const OPENERS: [&str; 4] = ["What", "Who", "Whether", "How"];

/// The most doc comments that may open with one of [`OPENERS`], in percent.
const OPENERS_PERCENT_MAX: usize = 3;

/// Comments with banned words, and too many openers in a crate.
pub(crate) fn violations(files: &[SourceFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        for (line, comment) in comments(&file.text) {
            let text = comment.to_lowercase();
            let banned = BANNED.iter().filter(|word| contains_word(&text, word));
            found.extend(banned.map(|word| format!("{}:{line}: \"{word}\" in a comment", file.path)));
        }
    }
    let mut crates: Vec<&str> = files.iter().map(|file| file.crate_name.as_str()).collect();
    crates.dedup();
    for name in crates {
        let (questions, all) = count_openers(files.iter().filter(|file| file.crate_name == name));
        if questions * 100 > all * OPENERS_PERCENT_MAX {
            found.push(format!(
                "{name}: {questions} of {all} doc comments open with What, Who, Whether or How, more than {OPENERS_PERCENT_MAX}%"
            ));
        }
    }
    found
}

/// Share of doc comments that open with a question.
pub(crate) fn figures(files: &[SourceFile]) -> String {
    let (questions, all) = count_openers(files.iter());
    format!(
        "{all} doc comments, {questions} open with a question ({:.1}%)",
        questions as f64 * 100.0 / all.max(1) as f64
    )
}

/// Doc comments that open with a question, and all of them.
fn count_openers<'a>(files: impl Iterator<Item = &'a SourceFile>) -> (usize, usize) {
    let (mut questions, mut all) = (0, 0);
    for file in files {
        let mut is_inside = false;
        for line in file.text.lines() {
            let doc = line.trim_start().strip_prefix("///");
            if let Some(text) = doc.filter(|_| !is_inside) {
                all += 1;
                let first = text.trim_start().split(' ').next().unwrap_or_default();
                questions += usize::from(OPENERS.contains(&first.trim_end_matches(['.', ',', ':'])));
            }
            is_inside = doc.is_some();
        }
    }
    (questions, all)
}

/// Comments of a file by line, from 1.
fn comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter_map(|(idx, line)| {
        let trimmed = line.trim_start();
        let comment = if trimmed.starts_with("//") {
            Some(trimmed)
        } else {
            line.split_once(" // ").map(|(_, rest)| rest)
        };
        comment.map(|comment| (idx + 1, comment))
    })
}

fn contains_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_are_seen() {
        // The words themselves are put together here, so that this file keeps the rule.
        let text = format!(
            "/// Whether {} knows.\n/// Whether: the second line counts once.\nfn a() {{}}\n",
            BANNED[1]
        );
        let file = SourceFile::new("crates/pal-a/src/a.rs", text);
        let files = [file];
        assert_eq!(violations(&files).len(), 2, "{:?}", violations(&files));
        assert_eq!(figures(&files), "1 doc comments, 1 open with a question (100.0%)");
        assert!(!contains_word("marshalled", "shall") && contains_word("it shall be", "shall"));
    }
}
