//! Retrieval benchmark: does the first prompt of a session find what earlier sessions of its repository knew
//! about the files that it then touched?
//!
//! The recorded sessions of each repository are taken in order of time. Every turn that touched files becomes
//! a memory, verbatim and without a model: the prompt, the files, the commands, the end of the answer. Each
//! later session asks its first prompt and sees only earlier memories. A file counts as found if one of the
//! first five memories mentions it; files that no earlier session touched do not count. A memory counts as
//! used when a session touches one of its files.
//!
//! `cargo test -p pal-memory --test retrieval -- --nocapture` prints the table of docs/benchmarks.md; with
//! `--features embeddings` and `PAL_EMBEDDINGS` set to a model directory, it adds the rows for embeddings.

// A test that panics has failed.
#![allow(clippy::unwrap_used)]

mod rankings;
mod recorded_sessions;
mod score_intervals;

use std::sync::Arc;

use pal_memory::EmbeddingModel;

use rankings::RankingResults;
use score_intervals::RankingScores;

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_sessions_find_memories_by_the_first_prompt() {
    let repositories = recorded_sessions::repositories();
    if repositories.is_empty() {
        return;
    }
    let embeddings = embeddings();
    let ways = RankingResults::ask(&repositories, embeddings.as_ref());
    println!(
        "{} questions in {} repositories, {} memories",
        ways.questions(),
        ways.repositories(),
        ways.memories()
    );
    println!("{:<44} {:<22} {:<22} over BM25 alone", "ranking", "recall@5 (95 %)", "MRR (95 %)");
    let baseline = RankingScores::of(ways.asked(rankings::BASELINE));
    for (name, asked) in ways.all() {
        let figures = RankingScores::of(asked);
        let gain = figures.gain_over(&baseline);
        println!(
            "{name:<44} {:<22} {:<22} {gain}",
            figures.recall.to_string(),
            figures.reciprocal.to_string()
        );
    }
    let shipped = RankingScores::of(ways.asked(rankings::SHIPPED));
    for (what, ours, theirs) in [
        ("recall@5", shipped.recall.mean, baseline.recall.mean),
        ("MRR", shipped.reciprocal.mean, baseline.reciprocal.mean),
    ] {
        assert!(ours >= 1.1 * theirs, "{what}: {ours:.3} against {theirs:.3} of BM25 alone");
    }
}

/// Model to measure; none if PAL_EMBEDDINGS is unset or the crate was built without it.
fn embeddings() -> Option<Arc<EmbeddingModel>> {
    let Some(folder) = std::env::var_os("PAL_EMBEDDINGS") else {
        println!("SKIPPED: rows with embeddings; PAL_EMBEDDINGS does not name the folder of a model");
        return None;
    };
    match EmbeddingModel::open(folder.as_ref()) {
        Ok(embeddings) => Some(embeddings),
        // A model that is available but unusable is a failure.
        Err(error) if cfg!(feature = "embeddings") => panic!("{error}"),
        Err(error) => {
            println!("SKIPPED: rows with embeddings; {error}");
            None
        }
    }
}
