//! The agent through its public API, against the simulated provider in the same process: real tools on real files, a home
//! and a project folder of its own for each test.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod background_work;
mod compactions;
mod context_layers;
mod conversations;
mod hooks_and_servers;
mod idle_sessions;
mod instructions;
mod limits;
mod pause_history;
mod permissions;
mod prompt_sections;
mod provider_errors;
mod small_windows;
mod subagents;
mod user_input;

use pal_agent_testkit::{ProviderSetup, calls, is_summary, says};
use pal_sim::{ExtractiveModel, ModelPrompt, SimulatedModel};
use serde_json::{Value, json};

/// Settings of an agent that may do everything.
const BYPASS: &str = "permissions.mode = \"bypass\"\n";

/// A model that makes one call per answer and then says `Done.`; a request that comes again gets the same answer.
/// Summaries are extracted from the request.
fn caller(steps: Vec<(&'static str, Value)>) -> ProviderSetup {
    let (mut at, mut previous) = (0, String::new());
    ProviderSetup::answers(move |_, ask| {
        if is_summary(ask) {
            return ExtractiveModel.answer(ask);
        }
        let text: String = ask.messages.iter().map(|message| message.blocks.concat()).collect();
        if text != previous {
            (at, previous) = (at + 1, text);
        }
        match steps.get(at - 1) {
            Some(step) => calls("On.", std::slice::from_ref(step)),
            None => says("Done."),
        }
    })
}

/// A model that answers with its number and some words; summaries are extracted from the request.
fn talker(words: usize) -> ProviderSetup {
    let mut at = 0;
    ProviderSetup::answers(move |_, ask| {
        if is_summary(ask) {
            return ExtractiveModel.answer(ask);
        }
        at += 1;
        says(&format!("Answer {at}.{}", " It is a long one.".repeat(words)))
    })
}

/// A call of the shell.
fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": command}))
}

/// Text of the newest message of a request.
fn last_message(ask: &ModelPrompt<'_>) -> String {
    ask.messages.last().map(|message| message.blocks.concat()).unwrap_or_default()
}
