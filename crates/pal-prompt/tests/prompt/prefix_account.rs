//! The account of a prefix: notes that add up, parts in order, what was left out.

use pal_model::SystemBlockNote;
use pal_prompt::{GitState, PrefixInputs, PrefixPartKind, PromptOverrides, assemble, fingerprint_source};

use crate::common::{agent, card, context, full, system};

/// The text of each section, cut out of its block by the notes.
fn cut<'a>(note: &SystemBlockNote, mut text: &'a str) -> Vec<&'a str> {
    let mut sections = Vec::new();
    for (at, section) in note.sections.iter().enumerate() {
        if at > 0 {
            text = text.strip_prefix("\n\n").expect("two line ends between sections");
        }
        let (own, rest) = text.split_at(section.bytes as usize);
        sections.push(own);
        text = rest;
    }
    assert_eq!(text, "");
    sections
}

#[test]
fn notes_describe_every_byte_of_the_system_prompt() {
    let card = card("claude-opus-5-5");
    for word in ["word", "Grüße 日本"] {
        let whole = full(&card, word);
        let custom = PromptOverrides { agent: agent("  Be an agent.\n", false), ..whole.prompts.clone() };
        for session in
            [whole.clone(), PrefixInputs { prompts: custom, ..whole }, PrefixInputs::for_card(&card)]
        {
            let prefix = assemble(&session).prefix;
            let blocks = system(&prefix);
            assert_eq!(blocks.len(), prefix.notes.system.len());
            for (note, text) in prefix.notes.system.iter().zip(&blocks) {
                for section in cut(note, text) {
                    assert_eq!(section, section.trim());
                }
            }
        }
    }
}

#[test]
fn a_changed_section_is_found_by_name() {
    let card = card("claude-opus-5-5");
    let before = full(&card, "word");
    let mut after = before.clone();
    after.facts.language = Some(String::from("Finnish"));
    let cut_all = |session: &PrefixInputs<'_>| {
        let prefix = assemble(session).prefix;
        let mut all = Vec::new();
        for (note, text) in prefix.notes.system.iter().zip(system(&prefix)) {
            let texts = cut(note, &text).into_iter().map(str::to_owned);
            all.extend(note.sections.iter().map(|section| section.name.clone()).zip(texts));
        }
        all
    };
    let (one, other) = (cut_all(&before), cut_all(&after));
    let changed: Vec<&str> =
        one.iter().zip(&other).filter(|(one, other)| one != other).map(|(one, _)| one.0.as_str()).collect();
    assert_eq!(changed, ["language"]);
}

#[test]
fn volatile_sections_say_why() {
    let card = card("claude-opus-5-5");
    let notes = assemble(&full(&card, "word")).prefix.notes.system;
    let volatile: Vec<&str> = notes
        .iter()
        .flat_map(|note| &note.sections)
        .filter(|section| section.volatile.as_ref().is_some_and(|why| !why.is_empty()))
        .map(|section| section.name.as_str())
        .collect();
    assert_eq!(volatile, ["cache breaker", "MCP instructions"]);
}

#[test]
fn parts_stand_in_the_order_of_the_request_with_sizes_and_reasons() {
    let card = card("claude-opus-5-5");
    let assembled = assemble(&full(&card, "Grüße"));
    let mut categories: Vec<PrefixPartKind> = assembled.parts.iter().map(|part| part.category).collect();
    categories.dedup();
    use PrefixPartKind::{Date, Instruction, Memory, Section, Tool};
    assert_eq!(categories, [Tool, Section, Instruction, Memory, Date]);
    assert!(assembled.parts.iter().all(|part| !part.reason.is_empty() && part.bytes >= part.characters));
    let file = assembled.parts.iter().find(|part| part.category == Instruction).unwrap();
    assert_eq!((file.name.as_str(), file.reason.as_str()), ("/home/CLAUDE.md Grüße", "found Grüße"));
    assert_eq!((file.bytes, file.characters), (17, 15));
    let bytes = |category| {
        assembled.parts.iter().filter(move |part| part.category == category).map(|part| part.bytes)
    };
    let prefix = &assembled.prefix;
    let n_tools = bytes(Tool).count() as u64;
    assert_eq!(bytes(Tool).sum::<u64>() + n_tools - 1 + 2, prefix.tools.len() as u64);
    let n_joints: usize = prefix.notes.system.iter().map(|note| note.sections.len() - 1).sum();
    let all: usize = system(prefix).iter().map(String::len).sum();
    assert_eq!(bytes(Section).sum::<u64>(), (all - 2 * n_joints) as u64);
}

#[test]
fn missing_parts_are_reported() {
    let card = card("claude-opus-5-5");
    let mut session = full(&card, "word");
    session.git = GitState::Absent(String::from("not a repository"));
    session.instructions[0].text = String::from(" \n");
    session.facts.mcp_as_deltas = true;
    session.tools[0].schema = "{}".into();
    session.memory[0].left_out = String::from("3 memories found no room");
    let assembled = assemble(&session);
    let reports: Vec<String> =
        assembled.left_out.iter().map(|left| format!("{}: {}", left.what, left.why)).collect();
    assert_eq!(
        reports,
        [
            "tool Agent: its schema is not that of an object",
            "git: not a repository",
            "instructions of the MCP server files word: they are sent in the conversation, as they change",
            "/home/CLAUDE.md word: it is empty",
            "MEMORY.md word: 3 memories found no room",
        ]
    );
    let prefix = assembled.prefix;
    assert!(!system(&prefix).concat().contains("git-snapshot"));
    // The index of memory is no source of instructions, whose changes are told.
    assert_eq!(prefix.notes.sources.len(), 1);
    assert_eq!(prefix.notes.sources[0].fingerprint, fingerprint_source("\nUse tabs. word "));
    assert_eq!(context(&prefix).matches("<instruction-file ").count(), 2);
}
