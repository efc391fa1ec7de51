//! What happens when instruction files are too many or too long.

use pal_prompt::{InstructionScope, LeftOut};

use crate::search::Limit;
use crate::walk::Findings;
use crate::words::named;

/// How many of the largest files a warning names.
const NAMED_MAX: usize = 3;

/// Warns when the files are over the limit; drops the largest if the setting says so, but never the owner's.
pub(crate) fn apply_limit(limit: &Limit, findings: &mut Findings) {
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
        let why = format!("dropped: {tokens} tokens, and all files together are over {}", limit.tokens_max);
        findings.left_out.push(LeftOut { what, why });
    }
}

fn warning(limit: &Limit, findings: &Findings, sizes: &[(usize, u64)], total: u64) -> String {
    let largest: Vec<String> = sizes
        .iter()
        .take(NAMED_MAX)
        .map(|(at, tokens)| format!("{} ({tokens})", named(&findings.files[*at].path)))
        .collect();
    format!(
        "Instruction files have {total} tokens, more than {}. The largest: {}.",
        limit.tokens_max,
        largest.join(", ")
    )
}
