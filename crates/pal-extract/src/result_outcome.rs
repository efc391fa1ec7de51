//! Judgement of tool results: the outcome of the call, and the error lines of its output.

use crate::excerpts::{lines_with, truncate};

/// Words that mark an error line.
const ERROR_WORDS: [&str; 15] = [
    "error:",
    "error[",
    "error -",
    "failed",
    "failure",
    "panicked",
    "exception",
    "traceback",
    "fatal:",
    "no such file",
    "not found",
    "cannot ",
    "permission denied",
    "--- fail",
    "npm err!",
];
/// Phrases that mark a line as no error.
const HARMLESS: [&str; 6] = ["0 failed", "0 errors", "no errors", "0 failures", "no error", "errors: 0"];

/// Results that only state that the call was not made.
const NOT_MADE: [&str; 3] =
    ["doesn't want to proceed with this tool use", "interrupted by user", "sibling tool call errored"];
/// Beginnings of results of calls that were refused before they began, in lower case.
const REFUSED: [&str; 5] = [
    "not carried out:",
    "[not carried out:",
    "[interrupted by the user before",
    "exec command rejected by user",
    "patch rejected by user",
];
/// Beginnings of failed results of programs that do not mark them as errors, in lower case.
const UNMARKED_FAILURES: [&str; 3] =
    ["apply_patch verification failed", "exec command rejected by user", "patch rejected by user"];
/// Commands that print stored text: errors in it did not happen.
const PRINTING: [&str; 18] = [
    "cat", "cd", "grep", "rg", "sed", "awk", "head", "tail", "less", "find", "ls", "jq", "sort", "wc",
    "echo", "git diff", "git log", "git show",
];

/// Outcome of a tool call, as its result states it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CallOutcome {
    /// The call did what it was made for.
    Done,
    /// The call was made and failed: what it did before is unknown.
    Failed,
    /// The call was never made.
    Refused,
}

impl CallOutcome {
    /// Reads the outcome from a result.
    pub(crate) fn of(text: &str, is_error: bool) -> CallOutcome {
        const LOOKED_AT: usize = 400;
        let head = text.get(..text.floor_char_boundary(LOOKED_AT)).unwrap_or_default().trim_start();
        let head = head.to_ascii_lowercase();
        let starts_with = |starts: &[&str]| starts.iter().any(|start| head.starts_with(start));
        let exit_code = head.strip_prefix("exit code: ").and_then(|rest| rest.lines().next());
        let has_failed = starts_with(&UNMARKED_FAILURES) || exit_code.is_some_and(|code| code.trim() != "0");
        match is_error || has_failed {
            true if starts_with(&REFUSED) || NOT_MADE.iter().any(|words| head.contains(words)) => {
                CallOutcome::Refused
            }
            true => CallOutcome::Failed,
            false => CallOutcome::Done,
        }
    }
}

/// Error lines of a result; its first lines if the whole result is an error.
pub(crate) fn error_lines(text: &str, is_error: bool) -> Vec<String> {
    // Only the beginning and the end of a long result are searched.
    const LOOKED_AT: usize = 20_000;
    let head = text.get(..text.floor_char_boundary(LOOKED_AT)).unwrap_or_default();
    let tail_from = text.ceil_char_boundary(text.len().saturating_sub(LOOKED_AT).max(head.len()));
    let tail = text.get(tail_from..).unwrap_or_default();
    let is_harmful = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        !HARMLESS.iter().any(|word| lower.contains(word))
    };
    let clean = |line: &str| truncate(line.trim(), 240);
    let speaking = [head, tail].into_iter().flat_map(|part| lines_with(part, &ERROR_WORDS));
    if is_error && !lines_with(head, &NOT_MADE).is_empty() {
        return Vec::new();
    }
    let mut found: Vec<String> = speaking.filter(is_harmful).take(3).map(clean).collect();
    if found.is_empty() && is_error {
        let lines = head.lines().filter(|line| !line.trim().is_empty());
        found = lines.take(2).map(clean).collect();
    }
    found
}

/// Returns true if every part of a command only prints stored text.
pub(crate) fn prints_only(command: &str) -> bool {
    let mut parts = command.split(['|', ';', '\n']).flat_map(|part| part.split("&&"));
    parts.all(|part| {
        let part = part.trim();
        part.is_empty()
            || PRINTING.iter().any(|name| {
                part.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_state_the_outcome_of_their_call() {
        use CallOutcome::{Done, Failed, Refused};
        for (text, is_error, outcome) in [
            ("Wrote 3 lines.", false, Done),
            ("Not carried out: the words of a file", false, Done),
            ("no such file", true, Failed),
            ("Not carried out: the user did not want it.", true, Refused),
            ("[Not carried out: the run was stopped.]", true, Refused),
            ("<tool_use_error>Sibling tool call errored</tool_use_error>", true, Refused),
            ("The user doesn't want to proceed with this tool use.", true, Refused),
            ("apply_patch verification failed: no such lines", false, Failed),
            ("patch rejected by user", false, Refused),
            ("Exit code: 0\nOutput:\nSuccess.", false, Done),
            ("Exit code: 1\nOutput:\nno", false, Failed),
        ] {
            assert_eq!(CallOutcome::of(text, is_error), outcome, "{text}");
        }
    }
}
