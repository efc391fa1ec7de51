//! Any bytes as another agent's session: never a panic, little memory, one source one log, and what comes out can
//! be read, looked at and sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pal_fuzz::{Meter, accepted, lens, peak_of};
use pal_import::{Measure, Options, import};
use pal_model::{Body, Entry, Text};
use pal_view::{Scope, View};

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

impl Measure for Thirds {
    fn text(&self, _model: &str, text: &str) -> f64 {
        text.len() as f64 / 3.0
    }

    fn json(&self, _model: &str, json: &str) -> f64 {
        json.len() as f64 / 3.0
    }
}

fuzz_target!(|source: &[u8]| {
    let options = |strict| Options { measure: &Thirds, strict };
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
    let read = |line| Entry::parse(Text::from(line)).unwrap_or_else(|error| panic!("{error}: {line:.400}"));
    let entries: Vec<Entry> = imported.log.lines().map(read).collect();
    for entry in &entries {
        assert!(!matches!(entry.body, Body::Unknown), "unknown body: {:.400}", entry.line);
    }
    for scope in [Scope::Current, Scope::Whole] {
        accepted(&View::of(lens(scope), entries.iter().cloned()));
    }
});
