//! Any bytes as another agent's session: never a panic, little memory, one source one log, and what comes out can
//! be read, looked at and sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pal_fuzz::{Meter, accepted, lens, peak_of};
use pal_import::{ImportOptions, import};
use pal_model::{EntryBody, LogEntry, SharedText, TokenEstimator};
use pal_view::{View, ViewScope};

#[global_allocator]
static METER: Meter = Meter;

/// Most bytes that import may hold: some anyway, some for each byte of the source, and some for each place where a
/// record may begin, since a record of three bytes is an entry of its own.
fn bytes_max(source: &[u8]) -> usize {
    let places = source.iter().filter(|byte| matches!(byte, b'{' | b'\n')).count();
    (64 << 10) + 16 * source.len() + 1024 * places
}

/// Three bytes a token.
struct Thirds;

impl TokenEstimator for Thirds {
    fn text(&self, _model: &str, text: &str) -> f64 {
        text.len() as f64 / 3.0
    }

    fn json(&self, _model: &str, json: &str) -> f64 {
        json.len() as f64 / 3.0
    }
}

fuzz_target!(|source: &[u8]| {
    let options = |strict| ImportOptions { measure: &Thirds, strict };
    let (imported, peak) = peak_of(|| import(source, &options(false)));
    assert!(peak <= bytes_max(source), "{peak} bytes held for a source of {}", source.len());
    let strict = import(source, &options(true));
    let Ok(imported) = imported else {
        assert!(strict.is_err(), "strict takes less, not more");
        return;
    };
    assert_eq!(import(source, &options(false)).unwrap().log, imported.log, "the same source, another log");
    if let Ok(strict) = strict {
        assert_eq!(strict.log, imported.log, "strict refuses or makes no difference");
    }
    let read =
        |line| LogEntry::parse(SharedText::from(line)).unwrap_or_else(|error| panic!("{error}: {line:.400}"));
    let entries: Vec<LogEntry> = imported.log.lines().map(read).collect();
    for entry in &entries {
        assert!(!matches!(entry.body, EntryBody::Unknown), "unknown body: {:.400}", entry.line);
    }
    for scope in [ViewScope::Current, ViewScope::Whole] {
        accepted(&View::from_branch(lens(scope), entries.iter().cloned()));
    }
});
