//! Limits of instruction files in tokens: which files are truncated or left out.

use pal_model::text::group_digits;
use pal_prompt::{InstructionScope, PrefixOmission};

use crate::display_text::display_name;
use crate::instruction_locations::InstructionLimit;
use crate::instruction_walk::WalkFindings;

/// Number of the largest files that a warning names.
const NAMED_MAX: usize = 3;

/// Maximum rows that report omissions.
const LEFT_OUT_MAX: usize = 200;

/// Keeps a readable number of rows, with one more for the rest. `untold` is how many were left out
/// before, and is how many are now.
pub(crate) fn truncate_omissions(left_out: &mut Vec<PrefixOmission>, untold: &mut usize) {
    if *untold > 0 && left_out.len() > LEFT_OUT_MAX {
        left_out.remove(LEFT_OUT_MAX);
    }
    *untold += left_out.len().saturating_sub(LEFT_OUT_MAX);
    if *untold > 0 {
        left_out.truncate(LEFT_OUT_MAX);
        left_out.push(PrefixOmission {
            what: format!("… and {untold} more"),
            why: "too many to tell".to_owned(),
        });
    }
}

/// Warns when the files are over the limit; drops the largest if the setting says so, but never the owner's.
pub(crate) fn apply_limit(limit: &InstructionLimit, findings: &mut WalkFindings) {
    let mut sizes: Vec<(usize, u64)> =
        findings.files.iter().map(|file| (limit.measure)(&file.text)).enumerate().collect();
    let mut total: u64 = sizes.iter().map(|(_, tokens)| tokens).sum();
    if total <= limit.tokens_max {
        return;
    }
    sizes.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
    findings.warnings.push(warning(limit, findings, &sizes, total));
    if !limit.drops {
        return;
    }
    let mut dropped = Vec::new();
    for (at, tokens) in sizes {
        if total <= limit.tokens_max {
            break;
        }
        if findings.files[at].scope != InstructionScope::Managed {
            total -= tokens;
            dropped.push((at, tokens));
        }
    }
    dropped.sort_unstable_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (at, tokens) in dropped {
        let what = findings.files.remove(at).path;
        let why = format!(
            "dropped: {} tokens, and all files together are over {}",
            group_digits(tokens),
            group_digits(limit.tokens_max)
        );
        findings.left_out.push(PrefixOmission { what, why });
    }
}

fn warning(limit: &InstructionLimit, findings: &WalkFindings, sizes: &[(usize, u64)], total: u64) -> String {
    let largest: Vec<String> = sizes
        .iter()
        .take(NAMED_MAX)
        .map(|(at, tokens)| {
            format!("{} ({})", display_name(&findings.files[*at].path), group_digits(*tokens))
        })
        .collect();
    let next = if limit.drops {
        "The largest are left out"
    } else {
        "All of them are part of every request; shorten them, or set `drop_large_instructions`"
    };
    format!(
        "Instruction files have {} tokens, more than {} (`max_instruction_tokens`). The largest: {}. {next}.",
        group_digits(total),
        group_digits(limit.tokens_max),
        largest.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beyond_the_most_are_counted() {
        let row = || PrefixOmission { what: "a".into(), why: "b".into() };
        let mut rows: Vec<PrefixOmission> = (0..200).map(|_| row()).collect();
        let mut untold = 0;
        truncate_omissions(&mut rows, &mut untold);
        assert_eq!((rows.len(), untold), (200, 0));
        for more in 1..4 {
            rows.push(row());
            truncate_omissions(&mut rows, &mut untold);
            assert_eq!((rows.len(), rows[200].what.clone()), (201, format!("… and {more} more")));
        }
    }
}
