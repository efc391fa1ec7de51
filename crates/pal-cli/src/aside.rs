//! What people are told beside the output of a command: on standard error, unless whoever runs the command shows it otherwise.

use std::cell::RefCell;
use std::fmt::Display;

thread_local! {
    /// What was said while somebody kept it; none where nobody does.
    static KEPT: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Tells something in the program's name.
pub(crate) fn tell(line: impl Display) {
    if let Some(line) = untaken(line) {
        eprintln!("pal: {line}");
    }
}

/// Says something that speaks for itself.
pub(crate) fn say(line: impl Display) {
    if let Some(line) = untaken(line) {
        eprintln!("{line}");
    }
}

/// Whether standard error is ours to write to.
pub(crate) fn is_open() -> bool {
    KEPT.with_borrow(Option::is_none)
}

/// Does something on this thread, and keeps what it tells.
pub(crate) fn kept<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let before = KEPT.replace(Some(Vec::new()));
    let done = work();
    (done, KEPT.replace(before).unwrap_or_default())
}

/// The line, if nobody keeps it.
fn untaken(line: impl Display) -> Option<String> {
    let line = line.to_string();
    KEPT.with_borrow_mut(|kept| match kept {
        Some(lines) => {
            lines.push(line);
            None
        }
        None => Some(line),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_goes_to_whoever_keeps_it_and_to_nobody_else() {
        let (done, lines) = kept(|| {
            tell("one");
            let (_, inner) = kept(|| tell(2));
            assert_eq!((inner, is_open()), (vec![String::from("2")], false));
            say("three");
            "done"
        });
        assert_eq!((done, lines), ("done", vec![String::from("one"), String::from("three")]));
        assert!(is_open());
    }
}
