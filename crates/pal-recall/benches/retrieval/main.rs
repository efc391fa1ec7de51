//! Retrieval benchmark: finds recall what was said, and how much text does it return for it? No model is involved.
//!
//! `PAL_TEST_DATA=FOLDER cargo bench -p pal-recall --bench retrieval` reads `FOLDER/retrieval/*.json`: conversations
//! with questions and the ids of the turns that hold the evidence ([`conversations`]). Each conversation becomes a
//! project of logs, each question is asked through the same path as `pal recall`, and BM25 rankings of the same turns
//! stand beside it.
//!
//! The recorded sessions in `FOLDER/sessions` are asked questions that are made from their logs ([`coding_questions`]).
//! Every second repository is held out: its scores are printed apart.

// A benchmark that panics has failed.
#![allow(clippy::unwrap_used)]

mod baselines;
mod coding_questions;
mod conversations;
mod project_logs;
mod recorded_logs;
mod scores;

use conversations::Conversation;
use project_logs::ProjectLogs;
use scores::{RankedResult, ScoreTable};

fn main() {
    let Some(folder) = pal_testkit::data_dir() else {
        println!("SKIPPED: PAL_TEST_DATA does not name a folder with data");
        return;
    };
    conversation_scores(&folder.join("retrieval"));
    coding_scores(&folder.join("sessions"));
}

/// Prints the scores over the recorded sessions, those of every second repository apart.
fn coding_scores(folder: &std::path::Path) {
    let mut tables = [ScoreTable::default(), ScoreTable::default()];
    let mut counts = [0, 0];
    for (at, logs) in recorded_logs::by_repository(folder).into_iter().enumerate() {
        let questions = coding_questions::questions_about(&logs);
        let project = ProjectLogs::of_logs(&logs);
        let mut recall = project.recall();
        let baselines = baselines::of_logs(&logs);
        counts[at % 2] += questions.len();
        for question in &questions {
            let evidence = [question.evidence.as_str()];
            let mut add = |name: &str, results: &[String]| {
                let results: Vec<RankedResult> =
                    results.iter().map(|text| RankedResult::of_text(text, &evidence)).collect();
                tables[at % 2].add(name, question.category, &results, &[0]);
            };
            add("recall", &project.ask_for_texts(&mut recall, &question.text));
            for baseline in &baselines {
                add(baseline.name, &baseline.ask_for_texts(&question.text));
            }
        }
    }
    for (name, (table, count)) in ["used for choices", "held out"].iter().zip(tables.iter().zip(counts)) {
        println!("\n{count} questions about coding sessions, repositories {name}");
        table.print();
    }
}

/// Prints the scores of every ranking over the conversations of a folder.
fn conversation_scores(folder: &std::path::Path) {
    let conversations = Conversation::read_folder(folder);
    if conversations.is_empty() {
        println!("SKIPPED: no conversation in {}", folder.display());
        return;
    }
    let mut table = ScoreTable::default();
    for conversation in &conversations {
        let logs = ProjectLogs::of_conversation(conversation);
        let mut recall = logs.recall();
        let baselines = baselines::of_conversation(conversation);
        for question in &conversation.questions {
            let mut add = |name: &str, results: &[RankedResult]| {
                table.add(name, &question.category, results, &question.evidence);
            };
            add("recall", &logs.ask(&mut recall, &question.text));
            for baseline in &baselines {
                add(baseline.name, &baseline.ask(&question.text));
            }
        }
    }
    println!("{} conversations", conversations.len());
    table.print();
}
