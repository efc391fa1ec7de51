//! Retrieval, measured: does the first prompt of a session find what earlier sessions of its repository knew about the files that
//! the session then touched?
//!
//! The recorded sessions of each repository are taken in the order of time. Every turn of a session that touched files becomes a
//! memory, drawn from it word for word and without a model: the prompt, the files, what was run, how the answer ended. Each
//! later session then asks with its first prompt, and knows only what was there by then. A file counts as found if one of the
//! first five memories is about it; files that no earlier session touched cannot be found and do not count. A memory counts as
//! used when a session touches one of its files.
//!
//! `cargo test -p pal-memory --test retrieval -- --nocapture` prints the table of docs/benchmarks.md; with `--features embeddings`
//! and `PAL_EMBEDDINGS` naming the folder of a model, the rows for that, too.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used)]

mod asking;
mod figures;
mod recorded;

use std::sync::Arc;

use pal_memory::Embeddings;

use asking::Ways;
use figures::Figures;

#[test]
fn memories_of_earlier_sessions_are_found_by_the_first_prompt() {
    let repositories = recorded::repositories();
    if repositories.is_empty() {
        return;
    }
    let embeddings = embeddings();
    let ways = Ways::ask(&repositories, embeddings.as_ref());
    println!(
        "{} questions in {} repositories, {} memories",
        ways.questions(),
        ways.repositories(),
        ways.memories()
    );
    println!("{:<44} {:<22} {:<22} over BM25 alone", "ranking", "recall@5 (95 %)", "MRR (95 %)");
    let baseline = Figures::of(ways.asked(asking::BASELINE));
    for (name, asked) in ways.all() {
        let figures = Figures::of(asked);
        let gain = figures.gain_over(&baseline);
        println!(
            "{name:<44} {:<22} {:<22} {gain}",
            figures.recall.to_string(),
            figures.reciprocal.to_string()
        );
    }
    let shipped = Figures::of(ways.asked(asking::SHIPPED));
    for (what, ours, theirs) in [
        ("recall@5", shipped.recall.mean, baseline.recall.mean),
        ("MRR", shipped.reciprocal.mean, baseline.reciprocal.mean),
    ] {
        assert!(ours >= 1.1 * theirs, "{what}: {ours:.3} against {theirs:.3} of BM25 alone");
    }
}

/// The model that is measured besides; none where nobody names one, or the crate was built without.
fn embeddings() -> Option<Arc<Embeddings>> {
    let Some(folder) = std::env::var_os("PAL_EMBEDDINGS") else {
        println!("SKIPPED: rows with embeddings; PAL_EMBEDDINGS does not name the folder of a model");
        return None;
    };
    match Embeddings::open(folder.as_ref()) {
        Ok(embeddings) => Some(embeddings),
        // A program that has it and cannot use it has failed.
        Err(error) if cfg!(feature = "embeddings") => panic!("{error}"),
        Err(error) => {
            println!("SKIPPED: rows with embeddings; {error}");
            None
        }
    }
}
