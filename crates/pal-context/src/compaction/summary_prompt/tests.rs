//! The prompt texts, and that a literal-minded model answers in the requested format.

use std::borrow::Cow;

use pal_extract::{ConversationFacts, MessageBlock, USER_MESSAGES_SECTION, heading, is_summary, section};
use pal_model::{ContentBlock, Role};
use pal_sim::{ExtractiveModel, ModelPrompt, OutputBlock, PromptMessage, SimulatedModel};

use super::*;
use crate::compaction::summary_parser;

const ID: EntryId = EntryId::from_bits(7);

fn asked(reach: CompactionRange) -> SummaryDirective<'static> {
    SummaryDirective {
        reach,
        begins: None,
        has_earlier_summary: false,
        instructions: None,
        is_own_wish: false,
        hook_instructions: None,
        pins: 0,
        is_bare: false,
    }
}

fn message(role: Role, text: &str) -> PromptMessage<'static> {
    PromptMessage { role, blocks: vec![Cow::Owned(ContentBlock::text(text).raw().to_string())] }
}

/// The simulator's response to a conversation that ends with a directive.
fn answer(messages: Vec<PromptMessage<'static>>, directive: &str) -> Vec<ContentBlock> {
    let messages = messages.into_iter().chain([message(Role::User, directive)]).collect();
    let (model, system, tools) = ("claude-opus-5-5", vec![], vec![Cow::Borrowed(r#"{"name":"Bash"}"#)]);
    let ask =
        ModelPrompt { model, system, tools, messages, max_tokens: 20_000, thinks: false, compaction: None };
    let said = ExtractiveModel.answer(&ask).blocks;
    said.iter()
        .map(|said| match said {
            OutputBlock::Text(text) => ContentBlock::text(text),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn conversation() -> Vec<PromptMessage<'static>> {
    vec![
        message(Role::User, "Make the title of the memory notes short,\n  and in <b>bold</b>."),
        message(Role::Assistant, "I'll use the template because it has a title."),
        message(Role::User, "yes"),
    ]
}

fn variants() -> Vec<SummaryDirective<'static>> {
    let mut all = vec![
        asked(CompactionRange::Whole),
        asked(CompactionRange::From(ID)),
        asked(CompactionRange::UpTo(ID)),
    ];
    all.push(SummaryDirective { has_earlier_summary: true, pins: 2, ..asked(CompactionRange::Whole) });
    all.push(SummaryDirective { begins: Some("yes"), ..asked(CompactionRange::From(ID)) });
    all.push(SummaryDirective {
        instructions: Some("Write a short title for this session, 3-6 words."),
        hook_instructions: Some("Update the session notes file /a.md, every section."),
        ..asked(CompactionRange::Whole)
    });
    all
}

#[test]
fn every_directive_yields_a_valid_summary() {
    for variant in variants() {
        let directive = directive(&variant);
        let summary = summary_parser::summary(&answer(conversation(), &directive)).unwrap();
        assert_eq!(
            section(&summary, USER_MESSAGES_SECTION),
            "- Make the title of the memory notes short,\n  and in <b>bold</b>.\n- yes",
            "{directive}"
        );
        assert!((0..9).all(|index| summary.contains(&heading(index))), "{summary}");
    }
    let stretch = FoldedStretch { begins: "Make the title", ends: "yes", tokens: 800 };
    let summary = summary_parser::summary(&answer(conversation(), &fold_directive(&stretch))).unwrap();
    assert!(summary.contains("- yes"));
    let text = fold_text(ID, ID, &summary, "/s/log.jsonl");
    assert!(text.contains(&summary) && text.contains("/s/log.jsonl") && text.contains(&ID.to_string()));
}

#[test]
fn directive_forbids_tools_first_and_last() {
    for variant in variants() {
        let text = directive(&variant);
        assert!(text.starts_with(TEXT_ONLY) && text.ends_with(TEXT_ONLY_AGAIN));
        assert!(!is_summary(&text), "a directive is not taken for a summary");
        let names: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
        let is_up_to = matches!(variant.reach, CompactionRange::UpTo(_));
        for (index, name) in names.iter().enumerate() {
            assert_eq!(
                text.contains(&format!("\n{}. {name}: ", index + 1)),
                index < 7 || !is_up_to,
                "{name}"
            );
        }
        assert_eq!(text.contains("8. Work completed: "), is_up_to);
        assert_eq!(text.contains("9. Context for continuing: "), is_up_to);
        let position = |text: &str, part: Option<&str>| part.map(|part| text.find(part).unwrap());
        assert!(position(&text, variant.instructions) <= position(&text, variant.hook_instructions));
    }
    assert!(directive(&variants()[3]).contains(DELTA) && !directive(&variants()[0]).contains(DELTA));
    assert!(
        directive(&variants()[3]).contains("pinned 2 texts")
            && directive(&variants()[4]).contains("yes\n</begins>")
    );
}

#[test]
fn wishes_of_the_model_are_not_presented_as_the_users() {
    let wished = SummaryDirective { instructions: Some("Keep the plan."), ..asked(CompactionRange::Whole) };
    assert!(directive(&wished).contains("the user instructs you as follows:\nKeep the plan."));
    let own = directive(&SummaryDirective { is_own_wish: true, ..wished });
    assert!(!own.contains("the user instructs you") && own.contains("not the user's"), "{own}");
    assert!(own.contains("Keep the plan."));
}

#[test]
fn summary_message_round_trips() {
    let pins = ["never force-push".to_owned()];
    let given = |summary, goes_on, is_attended| {
        summary_message(&SummaryMessage {
            summary,
            repairs: "## Restored by the audit\n- Edited: a.rs\n",
            pins: &pins,
            transcript: "/s/log.jsonl",
            goes_on,
            is_attended,
        })
    };
    let summary =
        summary_parser::summary(&answer(conversation(), &directive(&asked(CompactionRange::Whole)))).unwrap();
    let text = given(Some(&summary), true, true);
    for part in [summary.as_str(), "- Edited: a.rs", "never force-push", "/s/log.jsonl", GO_ON] {
        assert!(text.contains(part), "{part}");
    }
    let (recall, grep) = (text.find("the tool `Recall`").unwrap(), text.find("`grep").unwrap());
    assert!(recall < grep, "what looks everywhere is named first");
    assert!(!text.contains(GO_ON_ALONE) && !given(None, false, true).contains(GO_ON));
    assert!(given(None, false, false).ends_with(GO_ON_ALONE));
    assert!(given(Some("said freely"), true, true).contains("# Summary\n\nsaid freely"));
    // The next summary recognizes it in either format.
    for text in [text.as_str(), &given(Some("said freely"), true, true), &given(None, true, true)] {
        let raw = ContentBlock::text(text).raw().to_string();
        let facts = ConversationFacts::from_messages([(Role::User, [MessageBlock::parse(&raw)])]);
        assert!(facts.words.is_empty() && facts.earlier_summaries == [text]);
    }
    let mut later = vec![message(Role::User, &text)];
    later.push(message(Role::User, "now tag it"));
    let delta = SummaryDirective { has_earlier_summary: true, ..asked(CompactionRange::Whole) };
    let second = summary_parser::summary(&answer(later, &directive(&delta))).unwrap();
    let wanted = "- Make the title of the memory notes short,\n  and in <b>bold</b>.\n- yes\n- now tag it";
    assert_eq!(section(&second, USER_MESSAGES_SECTION), wanted);
}
