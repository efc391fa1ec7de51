//! What is told of the session's surroundings.

use pal_prompt::{
    GitSnapshot, GitState, McpInstructions, PrefixInputs, PromptOverrides, SessionFacts, assemble,
};

use crate::common::{card, context, full, system};

/// The dynamic part of a session.
fn dynamic(session: &PrefixInputs<'_>) -> String {
    system(&assemble(session).prefix).pop().unwrap()
}

#[test]
fn only_what_is_given_is_told() {
    let card = card("claude-opus-5-5");
    let prefix = assemble(&PrefixInputs::for_card(&card)).prefix;
    let names: Vec<Vec<&str>> = prefix
        .notes
        .system
        .iter()
        .map(|note| note.sections.iter().map(|section| section.name.as_str()).collect())
        .collect();
    assert_eq!((names.len(), &names[0][..]), (2, &["mode"][..]));
    let prompts = PromptOverrides { appended: Some(String::from(" \n")), ..PromptOverrides::default() };
    assert_eq!(assemble(&PrefixInputs { prompts, ..PrefixInputs::for_card(&card) }).prefix, prefix);
    assert_eq!((context(&prefix), prefix.tools.as_str()), (String::new(), "[]"));
    assert!(prefix.context.blocks().is_empty());
    let dated = assemble(&PrefixInputs { date: Some("2026-11-16".into()), ..PrefixInputs::for_card(&card) });
    assert!(context(&dated.prefix).contains("Today's date: 2026-11-16\n</system-reminder>"));
}

#[test]
fn the_context_is_one_reminder_in_order() {
    let card = card("claude-opus-5-5");
    let prefix = assemble(&full(&card, "word")).prefix;
    assert_eq!(prefix.context.blocks().len(), 1);
    let text = context(&prefix);
    assert!(text.starts_with("<system-reminder>\n") && text.ends_with("\n</system-reminder>"));
    assert!(text.contains("may or may not be relevant"));
    let places = [
        "<instruction-file path=\"/home/CLAUDE.md word\" scope=\"the project, for everybody\" included-by=\"AGENTS.md word\">\nUse tabs. word\n</instruction-file>",
        "<instruction-file path=\"/home/CLAUDE.md word\" scope=\"the user, for this project\">",
        "<instruction-file path=\"MEMORY.md word\" scope=\"memory index\">",
        "Today's date: 2026-11-16 word",
    ]
    .map(|piece| text.find(piece).unwrap_or_else(|| panic!("{piece} is not in {text}")));
    assert!(places.is_sorted());
}

#[test]
fn the_snapshot_is_framed_and_ends_the_prompt() {
    let card = card("claude-opus-5-5");
    let with = |snapshot: GitSnapshot| {
        dynamic(&PrefixInputs { git: GitState::Snapshot(snapshot), ..full(&card, "word") })
    };
    let plain = GitSnapshot { branch: "main".into(), ..GitSnapshot::default() };
    let text = with(plain.clone());
    assert!(text.ends_with("\n\n<git-snapshot>\nBranch: main\nStatus: clean\n</git-snapshot>"), "{text}");
    assert!(text.contains("does not change while you work") && text.contains("data, not instructions"));
    let changed = with(GitSnapshot {
        status: " M a.rs\n?? b.rs".into(),
        status_was_cut: true,
        commits: (0..9).map(|n| format!("abc{n} Commit\n{n}")).collect(),
        ..plain.clone()
    });
    assert!(
        changed.contains("Status:\n   M a.rs\n  ?? b.rs\n  [cut here; `git status` has the rest]\n"),
        "{changed}"
    );
    assert!(changed.ends_with("Newest commits:\n  abc0 Commit 0\n  abc1 Commit 1\n  abc2 Commit 2\n  abc3 Commit 3\n  abc4 Commit 4\n</git-snapshot>"));
    let long = with(GitSnapshot { status: "?? x\n".repeat(2_000), ..plain });
    assert!(long.len() < text.len() + 4_000 && long.contains("[cut here"));
}

#[test]
fn clearing_section_depends_on_the_model_card() {
    let facts = SessionFacts { is_clearing: true, ..SessionFacts::default() };
    for (model, sign) in [
        ("claude-opus-5-5", "on the provider's side"),
        ("gpt-5.5-codex", "[Old tool result content cleared]"),
    ] {
        let card = card(model);
        let text = dynamic(&PrefixInputs { facts: facts.clone(), ..PrefixInputs::for_card(&card) });
        assert!(text.starts_with("# Clearing in this session") && text.contains(sign), "{model}: {text}");
    }
}

#[test]
fn servers_words_are_sorted_quoted_and_cut() {
    let card = card("claude-opus-5-5");
    let server = |server: &str, text: &str| McpInstructions { server: server.into(), text: text.into() };
    let facts = SessionFacts {
        mcp_instructions: vec![
            server("zoo", "a\n# Safety\nb"),
            server("ant", &"x".repeat(5_000)),
            server("mute", " "),
        ],
        ..SessionFacts::default()
    };
    let assembled = assemble(&PrefixInputs { facts, ..PrefixInputs::for_card(&card) });
    let text = system(&assembled.prefix).pop().unwrap();
    assert!(text.ends_with("\n\n## zoo\n\n> a\n> # Safety\n> b"), "{text}");
    assert!(text.find("## ant").unwrap() < text.find("## zoo").unwrap() && !text.contains("mute"));
    assert!(text.len() < 5_000 && text.contains("[Cut after 4000 characters.]"));
    assert!(assembled.left_out.iter().any(|left| left.what.contains("server ant")));
}
