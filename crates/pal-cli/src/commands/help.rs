//! `pal help`: the pages of the documentation, and the help of commands.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use pal_model::did_you_mean;

use crate::arguments::{CliArgs, HelpArgs};
use crate::failure::Failure;

/// Pages by name: what they are about, and their text.
const PAGES: &[(&str, &str, &str)] = &[
    (
        "commands",
        "all commands, exit codes, keys and endpoints",
        include_str!("../../../../docs/commands.md"),
    ),
    (
        "setup",
        "bring your setup: Claude Code, Codex, Gemini CLI, opencode",
        include_str!("../../../../docs/setup.md"),
    ),
    ("settings", "all settings, their sources, and trust", include_str!("../../../../docs/settings.md")),
    (
        "permissions",
        "modes, rules, and how commands are checked",
        include_str!("../../../../docs/permissions.md"),
    ),
    (
        "terminal",
        "the agent in the terminal: keys and slash commands",
        include_str!("../../../../docs/terminal.md"),
    ),
    ("hooks", "commands that run at session events", include_str!("../../../../docs/hooks.md")),
    ("mcp", "MCP servers, and pal as one", include_str!("../../../../docs/mcp.md")),
    ("agents", "subagents, skills, output styles, messages", include_str!("../../../../docs/agents.md")),
    ("memory", "what outlives sessions", include_str!("../../../../docs/memory.md")),
    ("recall", "search over everything that was said", include_str!("../../../../docs/recall.md")),
    (
        "pipeline",
        "what happens to the context before a request",
        include_str!("../../../../docs/pipeline.md"),
    ),
    ("policy", "the cost-aware policy and the keepalive", include_str!("../../../../docs/policy.md")),
    ("cache", "the prompt cache: breakpoints and breaks", include_str!("../../../../docs/cache.md")),
    ("security", "sandbox levels, trust, secrets", include_str!("../../../../docs/security.md")),
    ("cost", "what all sessions cost, of every agent", include_str!("../../../../docs/cost.md")),
    ("stream-json", "pal -p for programs", include_str!("../../../../docs/stream-json.md")),
    ("agent-sdk", "the agent driven by Agent SDKs", include_str!("../../../../docs/agent-sdk.md")),
    ("acp", "the agent in an editor", include_str!("../../../../docs/acp.md")),
    ("telemetry", "the log, and OpenTelemetry", include_str!("../../../../docs/telemetry.md")),
    ("simulator", "a provider without a key", include_str!("../../../../docs/simulator.md")),
    ("eval", "policies compared over recorded sessions", include_str!("../../../../docs/eval.md")),
    ("proof", "what compactions keep, and how to check it", include_str!("../../../../docs/proof.md")),
    ("behaviour", "the behavior in numbered rules", include_str!("../../../../docs/behaviour.md")),
    ("glossary", "the words", include_str!("../../../../docs/glossary.md")),
];

pub(crate) fn help(arguments: &HelpArgs, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let Some(topic) = &arguments.topic else {
        writeln!(out, "`pal --help` lists all commands and flags. Pages, for `pal help TOPIC`:\n")?;
        for (name, about, _) in PAGES {
            writeln!(out, "  {name:<12} {about}")?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    // Hints name a page by its path, and slash commands by their slash.
    let name = topic.trim_start_matches('/').trim_start_matches("docs/").trim_end_matches(".md");
    let command = CliArgs::command();
    let found =
        command.get_subcommands().find(|command| command.get_name() == name && !command.is_hide_set());
    if let Some((_, _, text)) = PAGES.iter().find(|(page, ..)| *page == name) {
        write!(out, "{text}")?;
        if found.is_some() {
            writeln!(out, "\n`pal {name} --help` describes the command.")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    match found {
        Some(found) => {
            let mut found = found.clone().bin_name(format!("pal {name}"));
            write!(out, "{}", found.render_long_help())?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            let mut known: Vec<&str> = PAGES.iter().map(|(page, ..)| *page).collect();
            known.extend(command.get_subcommands().map(clap::Command::get_name));
            Err(Failure::usage_error(
                format!("there is no help about `{topic}`{}", did_you_mean(name, &known)),
                "`pal help` lists all pages, `pal --help` all commands",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(topic: &str) -> String {
        let mut out = Vec::new();
        help(&HelpArgs { topic: Some(topic.to_owned()) }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn topics_are_pages_or_commands() {
        for topic in ["settings", "docs/settings.md", "settings.md"] {
            assert!(shown(topic).starts_with("# Settings"), "{topic}");
        }
        assert!(shown("uncompact").contains("Usage: pal uncompact"));
        let error = help(&HelpArgs { topic: Some(String::from("setings")) }, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("did you mean `settings`?"), "{error}");
    }

    /// Hints name pages by their paths, and an installed user has no such files.
    #[test]
    fn every_page_of_the_documentation_can_be_shown() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        let pages = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
        let pages = pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
        let missing: Vec<String> = pages
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .filter(|name| !["benchmarks", "eval-results"].contains(&name.as_str()))
            .filter(|name| !PAGES.iter().any(|(page, ..)| page == name))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
