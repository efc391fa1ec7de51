//! The texts, and that a model which takes them at their word answers in form.

use std::borrow::Cow;

use pal_extract::{Facts, Heard, WORDS, heading, is_summary, section};
use pal_model::{Block, Role};
use pal_sim::{Ask, AskMessage, Extractive, Model, Said};

use super::*;
use crate::compact::parse;

const ID: EntryId = EntryId::from_bits(7);

fn asked(reach: Reach) -> Directive<'static> {
    Directive {
        reach,
        begins: None,
        has_earlier_summary: false,
        instructions: None,
        hook_instructions: None,
        pins: 0,
        is_bare: false,
    }
}

fn message(role: Role, text: &str) -> AskMessage<'static> {
    AskMessage { role, blocks: vec![Cow::Owned(Block::text(text).raw().to_string())] }
}

/// What the simulator says to a conversation that ends with a directive.
fn answer(messages: Vec<AskMessage<'static>>, directive: &str) -> Vec<Block> {
    let messages = messages.into_iter().chain([message(Role::User, directive)]).collect();
    let (model, system, tools) = ("claude-opus-5-5", vec![], vec![Cow::Borrowed(r#"{"name":"Bash"}"#)]);
    let ask = Ask { model, system, tools, messages, max_tokens: 20_000, thinks: false, compaction: None };
    let said = Extractive.answer(&ask).blocks;
    said.iter()
        .map(|said| match said {
            Said::Text(text) => Block::text(text),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn conversation() -> Vec<AskMessage<'static>> {
    vec![
        message(Role::User, "Make the title of the memory notes short,\n  and in <b>bold</b>."),
        message(Role::Assistant, "I'll use the template because it has a title."),
        message(Role::User, "yes"),
    ]
}

fn variants() -> Vec<Directive<'static>> {
    let mut all = vec![asked(Reach::Whole), asked(Reach::From(ID)), asked(Reach::UpTo(ID))];
    all.push(Directive { has_earlier_summary: true, pins: 2, ..asked(Reach::Whole) });
    all.push(Directive { begins: Some("yes"), ..asked(Reach::From(ID)) });
    all.push(Directive {
        instructions: Some("Write a short title for this session, 3-6 words."),
        hook_instructions: Some("Update the session notes file /a.md, every section."),
        ..asked(Reach::Whole)
    });
    all
}

#[test]
fn every_directive_is_answered_in_form() {
    for variant in variants() {
        let directive = directive(&variant);
        let summary = parse::summary(&answer(conversation(), &directive)).unwrap();
        assert_eq!(
            section(&summary, WORDS),
            "- Make the title of the memory notes short,\n  and in <b>bold</b>.\n- yes",
            "{directive}"
        );
        assert!((0..9).all(|index| summary.contains(&heading(index))), "{summary}");
    }
    let stretch = FoldedStretch { begins: "Make the title", ends: "yes", tokens: 800 };
    let summary = parse::summary(&answer(conversation(), &fold_directive(&stretch))).unwrap();
    assert!(summary.contains("- yes"));
    let text = fold_text(ID, ID, &summary, "/s/log.jsonl");
    assert!(text.contains(&summary) && text.contains("/s/log.jsonl") && text.contains(&ID.to_string()));
}

#[test]
fn a_directive_says_what_matters_first_and_last() {
    for variant in variants() {
        let text = directive(&variant);
        assert!(text.starts_with(TEXT_ONLY) && text.ends_with(TEXT_ONLY_AGAIN));
        assert!(!is_summary(&text), "a directive is not taken for a summary");
        let names: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
        let is_up_to = matches!(variant.reach, Reach::UpTo(_));
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
fn a_summary_is_handed_over_and_read_back() {
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
    let summary = parse::summary(&answer(conversation(), &directive(&asked(Reach::Whole)))).unwrap();
    let text = given(Some(&summary), true, true);
    for part in [summary.as_str(), "- Edited: a.rs", "never force-push", "/s/log.jsonl", GO_ON] {
        assert!(text.contains(part), "{part}");
    }
    let (recall, grep) = (text.find("the tool `Recall`").unwrap(), text.find("`grep").unwrap());
    assert!(recall < grep, "what looks everywhere is named first");
    assert!(!text.contains(GO_ON_ALONE) && !given(None, false, true).contains(GO_ON));
    assert!(given(None, false, false).ends_with(GO_ON_ALONE));
    assert!(given(Some("said freely"), true, true).contains("# Summary\n\nsaid freely"));
    // The next summary takes it for what it is, in whichever form the summary was written.
    for text in [text.as_str(), &given(Some("said freely"), true, true), &given(None, true, true)] {
        let raw = Block::text(text).raw().to_string();
        let facts = Facts::of_messages([(Role::User, [Heard::of(&raw)])]);
        assert!(facts.words.is_empty() && facts.earlier == [text]);
    }
    let mut later = vec![message(Role::User, &text)];
    later.push(message(Role::User, "now tag it"));
    let delta = Directive { has_earlier_summary: true, ..asked(Reach::Whole) };
    let second = parse::summary(&answer(later, &directive(&delta))).unwrap();
    let wanted = "- Make the title of the memory notes short,\n  and in <b>bold</b>.\n- yes\n- now tag it";
    assert_eq!(section(&second, WORDS), wanted);
}
