//! Real sessions of other agents.

use crate::support::{imported, sessions};

/// Imports all sessions of an agent and prints a table of what was found beside what the list says.
fn table(agent: &str) {
    println!(
        "{:60} {:>6} {:>12} {:>12} {:>12} {:>5} {:>7} {:>6}",
        agent, "lines", "calls", "typed", "tools", "bound", "unseen", "aside"
    );
    for (row, source) in sessions(agent) {
        let (imported, _) = imported(&source);
        let report = &imported.report;
        let beside = |found: u64, name: &str| format!("{found}/{}", row[name]);
        println!(
            "{:60} {:>6} {:>12} {:>12} {:>12} {:>5} {:>7} {:>6} {:?} r{} w{}",
            row["file"].as_str().unwrap().rsplit('/').next().unwrap(),
            report.lines,
            beside(report.responses, "api_calls"),
            beside(report.user_messages, "user_turns"),
            beside(report.tool_calls, "tool_calls"),
            report.boundaries,
            report.unseen_tokens,
            report.kept_aside.len(),
            report.models,
            report.rewinds,
            report.withdrawn,
        );
    }
}

#[test]
fn claude() {
    table("claude");
}

#[test]
fn codex() {
    table("codex");
}

#[test]
fn pi() {
    table("pi");
}

#[test]
fn copilot() {
    table("copilot");
}

#[test]
fn gemini() {
    table("gemini");
}

#[test]
fn mini_swe_agent() {
    table("mini-swe-agent");
}
