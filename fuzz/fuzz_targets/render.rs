//! Any entries as a branch: a view that grows equals a view that is derived, rendering is a function, and the judge
//! takes the request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pal_fuzz::{entries, growing_equals_deriving};

fuzz_target!(|text: &[u8]| {
    growing_equals_deriving(&entries(&String::from_utf8_lossy(text)));
});
