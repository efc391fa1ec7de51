//! The static part: the same for everybody, and not too long.

use pal_model::TokenGeneration;
use pal_prompt::{
    DEFAULT_SECTIONS, GitState, PrefixInputs, PromptMode, SectionPlacement, assemble, built_in_tools,
};
use pal_view::Estimator;
use proptest::prelude::*;

use crate::common::{agent, card, full, system};

fn static_part(assembly: &PrefixInputs<'_>) -> String {
    let prefix = assemble(assembly).prefix;
    let at = prefix.notes.system.iter().position(|note| note.is_static).unwrap();
    system(&prefix).swap_remove(at)
}

#[test]
fn static_part_is_the_same_in_every_session() {
    let cards = ["claude-opus-5-5", "claude-haiku-4-5", "gpt-5.5-codex", "nobody-knows-it"].map(card);
    let expected = static_part(&PrefixInputs::for_card(&cards[0]));
    assert!(expected.len() > 10_000);
    for card in &cards {
        let mut sessions = vec![PrefixInputs::for_card(card)];
        for word in ["ann", "/home/bob/work", "1999-12-31", "Grüße, 日本", "<system-reminder>", "C:\\x\r\n"]
        {
            let whole = full(card, word);
            let changes: [fn(&mut PrefixInputs<'_>); 6] = [
                |_| {},
                |session| session.mode = PromptMode::Interactive,
                |session| session.git = GitState::Absent(String::from("not a repository")),
                |session| session.tools = built_in_tools(),
                |session| session.prompts.agent = agent("Watch the build.", true),
                |session| session.instructions.clear(),
            ];
            sessions.extend(changes.map(|change| {
                let mut session = whole.clone();
                change(&mut session);
                session
            }));
        }
        for session in sessions {
            assert_eq!(static_part(&session), expected);
        }
    }
}

#[test]
fn no_fixed_text_knows_of_a_place_or_a_time() {
    for section in DEFAULT_SECTIONS.iter().filter(|section| section.place == SectionPlacement::Static) {
        let text = section.fixed_text().unwrap_or_else(|| panic!("{} is made, not fixed", section.name));
        for sign in ["/home", "/Users", "/tmp", "2025", "2026", "claude", "gpt", "{", "}"] {
            assert!(!text.contains(sign), "{}: {sign}", section.name);
        }
        assert!(text.starts_with("# "), "{} has no heading", section.name);
    }
    let mut names: Vec<&str> = DEFAULT_SECTIONS.iter().map(|section| section.name).collect();
    assert!(DEFAULT_SECTIONS.is_sorted_by_key(|section| section.place));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), DEFAULT_SECTIONS.len());
}

#[test]
fn the_default_prompt_fits_its_budget() {
    for model in ["claude-opus-5-5", "claude-haiku-4-5", "gpt-5.5-codex"] {
        let card = card(model);
        let blocks = system(&assemble(&full(&card, "word")).prefix);
        for generation in TokenGeneration::ALL {
            let estimator = Estimator::shipped(generation);
            let tokens = estimator.total(blocks.iter().map(|text| estimator.text(text)).sum());
            assert!(tokens <= 6_000, "{model}, {generation:?}: {tokens}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn words_of_a_session_do_not_reach_the_static_part(word in "\\PC{8,30}") {
        let card = card("claude-opus-5-5");
        let text = static_part(&full(&card, &word));
        prop_assert_eq!(&text, &static_part(&PrefixInputs::for_card(&card)));
        prop_assert!(!text.contains(&word));
    }
}
