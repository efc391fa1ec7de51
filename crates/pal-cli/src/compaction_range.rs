//! Part of a conversation to compact, by the numbers of `pal view`.

use pal_context::CompactionRange;
use pal_model::EntryId;
use pal_view::View;

use crate::failure::Failure;

/// Next step if there is nothing to cut.
pub(crate) const LATER: &str = "name a later message; `pal view` numbers them";

/// Returns the range from a message on or up to a message, the whole without one; an error if it contains nothing to
/// compact.
pub(crate) fn find_range(
    from: Option<&str>,
    up_to: Option<&str>,
    view: &View,
) -> Result<CompactionRange, Failure> {
    let (name, reach): (_, fn(EntryId) -> CompactionRange) = match (from, up_to) {
        (Some(_), Some(_)) => {
            return Err(Failure::with_hint(
                "--from and --up-to cannot be combined",
                "compact one part, then the other",
            ));
        }
        (Some(from), _) => (from, CompactionRange::From),
        (None, Some(up_to)) => (up_to, CompactionRange::UpTo),
        (None, None) => return Ok(CompactionRange::Whole),
    };
    let entry = entry(view, name)?;
    let shown: Vec<EntryId> = view.visible_entries().map(|shown| shown.entry.id).collect();
    let at = shown.iter().position(|id| *id == entry).unwrap_or_default();
    let boundary = view.boundary().and_then(|boundary| shown.iter().rposition(|id| *id == boundary.id));
    let what = match boundary {
        Some(last) if at <= last + 1 => {
            format!("there is nothing between the last compaction and message {}", at + 1)
        }
        None if at == 0 => String::from("there is nothing before message 1"),
        _ => return Ok(reach(entry)),
    };
    Err(Failure::with_hint(what, LATER))
}

/// Finds the entry for a message number of `pal view`, an id, or the start of an id.
fn entry(view: &View, name: &str) -> Result<EntryId, Failure> {
    let shown: Vec<EntryId> = view.visible_entries().map(|shown| shown.entry.id).collect();
    if let Ok(number) = name.parse::<usize>()
        && name.len() < 8
    {
        let found = number.checked_sub(1).and_then(|at| shown.get(at).copied());
        return found.ok_or_else(|| {
            Failure::with_hint(
                format!("there is no message {number}: the view has {}", shown.len()),
                "`pal view` numbers the messages",
            )
        });
    }
    let mut found: Vec<EntryId> =
        shown.into_iter().filter(|id| !name.is_empty() && id.to_string().starts_with(name)).collect();
    found.dedup();
    match found.as_slice() {
        [id] => Ok(*id),
        [] => Err(Failure::with_hint(
            format!("no visible entry has an id that starts with {name}"),
            "`pal view` shows message numbers, `pal view --json` shows ids",
        )),
        several => Err(Failure::with_hint(
            format!("{} entries have ids that start with {name}", several.len()),
            "give more of the id, or the number that `pal view` shows",
        )),
    }
}
