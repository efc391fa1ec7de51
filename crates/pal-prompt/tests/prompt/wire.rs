//! An assembled prefix through the view and before the strict validator.

use pal_model::{Card, Draft, Entry, IdSource, Origin, Text, Timestamp, array_items};
use pal_prompt::{Assembly, Catalogue, Prompts, assemble};
use pal_view::{Estimator, Lens, RenderOptions, Request, Scope, View};
use pal_wire::{Rules, check_request};

use crate::common::{card, full, names, system};

const OPTIONS: RenderOptions = RenderOptions { max_tokens: 8_000, stream: true, spell_out_unseen: false };

fn rendered(session: &Assembly<'_>) -> Request {
    let card = session.card.clone();
    let prefix = assemble(session).prefix;
    let lens = Lens { estimator: Estimator::shipped(card.generation), card, scope: Scope::Current };
    let mut ids = IdSource::seeded(1);
    let at = Timestamp::from_milliseconds(1_800_000_000_000);
    let mut entries: Vec<Entry> = Vec::new();
    for draft in [Draft::prefix(&prefix), Draft::user(Origin::Person, r#""go""#)] {
        let parent = entries.last().map(|entry| entry.id);
        let line = draft.into_line(ids.next_id(at), parent, at, None);
        entries.push(Entry::parse(Text::from(line)).unwrap());
    }
    View::of(lens, entries).render(OPTIONS)
}

fn check(card: &Card, body: &str) {
    if let Err(error) = check_request(body.as_bytes(), &Rules::from(card)) {
        panic!("{}: {}", card.model, error.message);
    }
}

#[test]
fn what_is_assembled_is_what_is_sent() {
    for model in ["claude-opus-5-5", "claude-haiku-4-5", "gpt-5.5-codex"] {
        let card = card(model);
        let whole = full(&card, "wörd <\u{7}/x>");
        let custom = Prompts { custom: Some("Be kind.".into()), ..Prompts::default() };
        for session in [whole.clone(), Assembly { prompts: custom, ..whole }, Assembly::bare(&card)] {
            let request = rendered(&session);
            check(&card, &request.body());
            let prefix = assemble(&session).prefix;
            let sent: Vec<&str> = request.tools().iter().map(Text::as_str).collect();
            assert_eq!(sent, array_items(&prefix.tools).unwrap(), "{model}");
            let sent: Vec<&str> = request.system().iter().map(Text::as_str).collect();
            assert_eq!(sent, array_items(&prefix.system).unwrap(), "{model}");
        }
    }
}

#[test]
fn references_that_a_search_returns_are_accepted() {
    let card = card("claude-opus-5-5");
    let session = full(&card, "word");
    let catalogue = Catalogue::new(&session.tools);
    let hits: Vec<_> = catalogue.deferred().collect();
    let found: Vec<String> =
        catalogue.found(&card, &hits).blocks().iter().map(|block| block.raw().to_string()).collect();
    let body = format!(
        r#"{{"model":"claude-opus-5-5","max_tokens":64,"tools":{},"messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"toolu_1","name":"ToolSearch","input":{{"query":"word"}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_1","content":[{}]}}]}}]}}"#,
        catalogue.rendered(&card),
        found.join(",")
    );
    assert!(!found.is_empty());
    check(&card, &body);
}

#[test]
fn the_guidance_names_the_way_to_deferred_tools() {
    for (model, way) in [("claude-opus-5-5", "like any other tool"), ("gpt-5.5-codex", "through CallTool")] {
        let card = card(model);
        let session = full(&card, "word");
        let prefix = assemble(&session).prefix;
        let text = system(&prefix).pop().unwrap();
        assert!(
            text.contains("ToolSearch finds 1 tool beyond your list (servers: word)") && text.contains(way),
            "{text}"
        );
        assert_eq!(names(&prefix.tools).contains(&String::from("CallTool")), model.starts_with("gpt"));
    }
}
