//! The lean profile: small, complete, and the same every time.

use pal_model::{ModelCatalog, object_fields};
use pal_prompt::{InstructionFile, LEAN_SECTIONS, PrefixInputs, PrefixProfile, assemble, built_in_tools};
use pal_view::Estimator;

use crate::common::{card, full, system};

/// Tokens of the whole prefix of a model of 8,192 tokens.
fn tokens(inputs: &PrefixInputs<'_>) -> u64 {
    let estimator = Estimator::shipped(inputs.card.generation);
    let prefix = assemble(inputs).prefix;
    let parts = [prefix.system.as_str(), prefix.tools.as_str(), &prefix.context.to_json()]
        .map(|text| estimator.json(text));
    estimator.total(parts.iter().sum())
}

#[test]
fn the_lean_prefix_takes_a_quarter_of_8192_tokens() {
    let local = ModelCatalog::built_in().with_overrides("[models.local]\nwindow = 8_192\n").unwrap();
    let local = local.find("local").card;
    let lean = PrefixInputs { tools: built_in_tools(), ..PrefixInputs::for_card(&local) };
    let whole = PrefixInputs { window: 200_000, ..lean.clone() };
    let (lean, whole) = (tokens(&lean), tokens(&whole));
    assert!(lean < 2_048 && whole > 3 * lean, "{lean} of {whole}");
}

#[test]
fn core_tools_are_listed_and_all_others_deferred() {
    let card = card("gpt-5");
    let inputs = PrefixInputs { window: 16_000, tools: built_in_tools(), ..PrefixInputs::for_card(&card) };
    let assembled = assemble(&inputs);
    let names: Vec<&str> = assembled.parts.iter().take(8).map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["Bash", "CallTool", "Edit", "Glob", "Grep", "Read", "ToolSearch", "Write"]);
    assert_eq!(assembled.catalog.profile(), PrefixProfile::Lean);
    assert_eq!(assembled.catalog.tools().len(), built_in_tools().len());
    // A short schema is a part of the whole one: what it allows, the tool takes.
    for lean in assembled.catalog.tools().iter().filter(|tool| !tool.spec.is_deferred) {
        let whole = built_in_tools().into_iter().find(|tool| tool.name == lean.spec.name).unwrap();
        let properties = |schema: &str| {
            let fields = object_fields(schema).unwrap();
            let (_, value) = fields.iter().find(|(key, _)| key == "properties").unwrap();
            let names: Vec<String> =
                object_fields(value).unwrap().iter().map(|(key, _)| key.to_string()).collect();
            names
        };
        let known = properties(&whole.schema);
        assert!(properties(&lean.spec.schema).iter().all(|name| known.contains(name)), "{}", whole.name);
    }
}

#[test]
fn the_profile_is_recorded_and_depends_on_the_window_alone() {
    let card = card("claude-opus-5-5");
    let of = |window| assemble(&PrefixInputs { window, ..full(&card, "word") }).prefix;
    for (window, profile) in [(8_192, Some("lean")), (32_768, Some("lean")), (40_000, None), (200_000, None)]
    {
        let prefix = of(window);
        assert_eq!(prefix.notes.profile.as_deref(), profile, "{window}");
        assert_eq!(prefix, of(window));
        let said = system(&prefix).concat();
        // What a session needs to be safe stands in both.
        for word in ["system-reminder", "/remembered", "git-snapshot", "Danish"] {
            assert!(said.contains(word), "{window}: {word}");
        }
    }
    assert_eq!(LEAN_SECTIONS.iter().filter(|section| section.fixed_text().is_some()).count(), 1);
}

#[test]
fn large_instruction_files_are_cut_and_reported() {
    let card = card("gpt-5");
    let file = |path: &str, lines: usize| InstructionFile {
        path: path.into(),
        scope: pal_prompt::InstructionScope::Project,
        included_by: None,
        reason: "found".into(),
        text: "Use tabs everywhere.\n".repeat(lines),
    };
    let instructions = vec![file("/far/AGENTS.md", 2_000), file("/near/AGENTS.md", 10)];
    let inputs = PrefixInputs { window: 8_192, instructions, ..PrefixInputs::for_card(&card) };
    let assembled = assemble(&inputs);
    let text = assembled.prefix.context.to_json();
    assert!(text.len() < 8_000 && text.contains("Read /far/AGENTS.md for the rest"), "{}", text.len());
    let near = text.split("/near/AGENTS.md").nth(1).unwrap();
    assert_eq!(near.matches("Use tabs everywhere.").count(), 10, "the nearest file is whole");
    let cut: Vec<&str> = assembled.left_out.iter().map(|left| left.what.as_str()).collect();
    assert!(cut.contains(&"end of /far/AGENTS.md"), "{cut:?}");
    let whole = assemble(&PrefixInputs { window: 200_000, ..inputs }).prefix.context.to_json();
    assert_eq!(whole.matches("Use tabs everywhere.").count(), 2_010);
}
