//! Which prompt applies.

use pal_prompt::{PrefixInputs, PromptOverrides, assemble};

use crate::common::{agent, card, full, system};

/// The names of the sections, block by block, without those of the default's static block.
fn shape(prompts: PromptOverrides) -> String {
    let card = card("claude-opus-5-5");
    let assembled = assemble(&PrefixInputs { prompts, ..full(&card, "word") });
    let notes = &assembled.prefix.notes.system;
    let blocks = notes.iter().map(|note| match note.is_static {
        true => String::from("static"),
        false => note.sections.iter().map(|section| section.name.as_str()).collect::<Vec<_>>().join("+"),
    });
    let blocks = blocks.collect::<Vec<_>>().join(" | ");
    let unused: Vec<&str> = assembled.left_out.iter().map(|left| left.what.as_str()).collect();
    format!("{blocks} ({})", unused.join(", "))
}

const OPENING: &str = "attribution+mode | static | cache breaker+session guidance+environment+memory place+language+output \
                       style+scratchpad+MCP instructions+clearing+token budget";

#[test]
fn the_first_that_applies_is_taken() {
    let given = |text: &str| Some(text.to_owned());
    let all = PromptOverrides {
        override_all: given("O"),
        coordinator: given("C"),
        agent: agent("A", false),
        custom: given("U"),
        appended: given("P"),
    };
    let none = PromptOverrides::default();
    for (prompts, expected) in [
        (
            all.clone(),
            "override (coordinator prompt, agent prompt, custom prompt, appended prompt)".to_owned(),
        ),
        (
            PromptOverrides { override_all: None, ..all.clone() },
            "coordinator+reminders+environment+memory place+appended+git (agent prompt, custom prompt)"
                .to_owned(),
        ),
        (
            PromptOverrides { override_all: None, coordinator: None, ..all },
            "agent+reminders+environment+memory place+appended+git (custom prompt)".to_owned(),
        ),
        (
            PromptOverrides { agent: agent("A", true), custom: given("U"), ..none.clone() },
            format!("{OPENING}+agent+git (custom prompt)"),
        ),
        (
            PromptOverrides { custom: given("U"), ..none.clone() },
            "custom+reminders+environment+memory place+git ()".to_owned(),
        ),
        (PromptOverrides { appended: given("P"), ..none.clone() }, format!("{OPENING}+appended+git ()")),
        (
            PromptOverrides { agent: agent("A", true), appended: given("P"), ..none.clone() },
            format!("{OPENING}+agent+appended+git ()"),
        ),
        (none, format!("{OPENING}+git ()")),
    ] {
        assert_eq!(shape(prompts.clone()), expected, "{prompts:?}");
    }
}

#[test]
fn an_override_stands_alone() {
    let card = card("claude-opus-5-5");
    let prompts = PromptOverrides { override_all: Some("Only this.".into()), ..full(&card, "word").prompts };
    let prefix = assemble(&PrefixInputs { prompts, ..full(&card, "word") }).prefix;
    assert_eq!(system(&prefix), ["Only this."]);
    assert!(prefix.notes.system[0].markable && !prefix.notes.system[0].is_static);
}

#[test]
fn the_opening_is_never_marked() {
    let card = card("claude-opus-5-5");
    let notes = assemble(&full(&card, "word")).prefix.notes.system;
    let flags: Vec<(bool, bool)> = notes.iter().map(|note| (note.is_static, note.markable)).collect();
    assert_eq!(flags, [(false, false), (true, true), (false, true)]);
}
