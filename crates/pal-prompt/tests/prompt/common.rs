//! What the tests share: cards, a session of which everything is known, and ways to look into a prefix.

use pal_model::{
    ModelCard, ModelCatalog, PromptPrefix, SharedText, array_items, member_string, object_fields,
};
use pal_prompt::{
    AgentPrompt, GitSnapshot, GitState, HostEnvironment, InstructionFile, InstructionScope, McpInstructions,
    MemoryIndex, OutputStyle, PrefixInputs, PromptMode, PromptOverrides, SessionFacts, ToolOrigin, ToolSpec,
    built_in_tools,
};

pub(crate) fn card(model: &str) -> ModelCard {
    ModelCatalog::built_in().find(model).card
}

/// A session of which everything is known; `word` stands in every value.
pub(crate) fn full<'a>(card: &'a ModelCard, word: &str) -> PrefixInputs<'a> {
    let said = |what: &str| format!("{what} {word}");
    let instruction = |scope, included_by: Option<&str>| InstructionFile {
        path: said("/home/CLAUDE.md"),
        scope,
        included_by: included_by.map(said),
        reason: said("found"),
        text: said("Use tabs."),
    };
    let mut tools = built_in_tools();
    tools.push(mcp(word, "create", true));
    tools.push(mcp("files", word, false));
    PrefixInputs {
        card,
        attribution: said("Palimpsest"),
        mode: PromptMode::Headless,
        prompts: PromptOverrides {
            appended: Some(String::from("One more thing.")),
            ..PromptOverrides::default()
        },
        environment: HostEnvironment {
            directory: said("/home"),
            added: vec![said("/srv")],
            is_repository: true,
            platform: said("linux"),
            platform_version: Some(said("6.8")),
            shell: Some(said("zsh")),
        },
        facts: SessionFacts {
            guidance: vec![String::from("Edits need no permission.")],
            language: Some(said("Danish")),
            output_style: Some(OutputStyle { name: said("terse"), text: said("Be brief.") }),
            memory: Some(said("/remembered")),
            scratchpad: Some(said("/scratch")),
            mcp_instructions: vec![McpInstructions { server: said("files"), text: said("Ask first.") }],
            mcp_as_deltas: false,
            is_clearing: true,
            token_budget: Some(123_456),
            cache_breaker: Some(said("break")),
        },
        git: GitState::Snapshot(GitSnapshot {
            branch: said("main"),
            default_branch: Some(said("trunk")),
            user: Some(said("Ann")),
            status: format!(" M {word}\n?? b"),
            status_was_cut: false,
            commits: vec![said("abc1234 Mend")],
        }),
        instructions: vec![
            instruction(InstructionScope::Project, Some("AGENTS.md")),
            instruction(InstructionScope::Local, None),
        ],
        memory: vec![MemoryIndex {
            path: said("MEMORY.md"),
            text: said("- [tabs](tabs.md)"),
            left_out: String::new(),
        }],
        date: Some(said("2026-11-16")),
        tools,
        servers: vec![said("tracker").into()],
        window: card.window,
    }
}

pub(crate) fn mcp(server: &str, name: &str, is_deferred: bool) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: format!("Makes a {name} with {server}."),
        schema: SharedText::from(r#"{"type": "object", "properties": {}}"#),
        origin: ToolOrigin::Mcp { server: server.into() },
        is_deferred,
    }
}

pub(crate) fn agent(text: &str, is_proactive: bool) -> Option<AgentPrompt> {
    Some(AgentPrompt { text: text.into(), is_proactive })
}

/// The texts of the system blocks.
pub(crate) fn system(prefix: &PromptPrefix) -> Vec<String> {
    let text = |raw: &str| member_string(&object_fields(raw).unwrap(), "text").unwrap().into_owned();
    array_items(&prefix.system).unwrap().into_iter().map(text).collect()
}

/// The text of the context, empty if there is none.
pub(crate) fn context(prefix: &PromptPrefix) -> String {
    let texts = prefix.context.blocks().iter().map(|block| block.string("text").unwrap().into_owned());
    texts.collect()
}

/// The names of the tools that a block lists, deferred ones with a star.
pub(crate) fn names(tools: &str) -> Vec<String> {
    let name = |raw: &str| {
        let known = object_fields(raw).unwrap();
        let star = if known.iter().any(|(key, _)| key == "defer_loading") { "*" } else { "" };
        format!("{}{star}", member_string(&known, "name").unwrap())
    };
    array_items(tools).unwrap().into_iter().map(name).collect()
}
