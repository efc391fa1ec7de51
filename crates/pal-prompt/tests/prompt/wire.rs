//! An assembled prefix through the view and before the strict validator.

use pal_model::{
    EntryDraft, IdSource, LogEntry, MessageOrigin, ModelCard, SharedText, Timestamp, array_items,
};
use pal_prompt::{PrefixInputs, PromptOverrides, ToolCatalog, assemble};
use pal_view::{Estimator, Lens, RenderOptions, Request, View, ViewScope};
use pal_wire::{RequestRules, check_request};

use crate::common::{card, full, names, system};

const OPTIONS: RenderOptions = RenderOptions { max_tokens: 8_000, stream: true, spell_out_unseen: false };

fn rendered(session: &PrefixInputs<'_>) -> Request {
    rendered_with(session, Vec::new())
}

/// The next request of a session in which more was said.
fn rendered_with(session: &PrefixInputs<'_>, more: Vec<EntryDraft>) -> Request {
    let card = session.card.clone();
    let prefix = assemble(session).prefix;
    let lens = Lens { estimator: Estimator::shipped(card.generation), card, scope: ViewScope::Current };
    let mut ids = IdSource::seeded(1);
    let at = Timestamp::from_milliseconds(1_800_000_000_000);
    let mut entries: Vec<LogEntry> = Vec::new();
    let opening = [EntryDraft::prefix(&prefix), EntryDraft::user(MessageOrigin::Person, r#""go""#)];
    for draft in opening.into_iter().chain(more) {
        let parent = entries.last().map(|entry| entry.id);
        let line = draft.into_line(ids.next_id(at), parent, at, None);
        entries.push(LogEntry::parse(SharedText::from(line)).unwrap());
    }
    View::from_branch(lens, entries).render(OPTIONS)
}

fn check(card: &ModelCard, body: &str) {
    if let Err(error) = check_request(body.as_bytes(), &RequestRules::from(card)) {
        panic!("{}: {}", card.model, error.message);
    }
}

#[test]
fn sent_prefix_equals_the_assembled_prefix() {
    for model in ["claude-opus-5-5", "claude-haiku-4-5", "gpt-5.5-codex"] {
        let card = card(model);
        let whole = full(&card, "wörd <\u{7}/x>");
        let custom = PromptOverrides { custom: Some("Be kind.".into()), ..PromptOverrides::default() };
        for session in
            [whole.clone(), PrefixInputs { prompts: custom, ..whole }, PrefixInputs::for_card(&card)]
        {
            let request = rendered(&session);
            check(&card, &request.body());
            let prefix = assemble(&session).prefix;
            let sent: Vec<&str> = request.tools().iter().map(SharedText::as_str).collect();
            assert_eq!(sent, array_items(&prefix.tools).unwrap(), "{model}");
            let sent: Vec<&str> = request.system_blocks().iter().map(SharedText::as_str).collect();
            assert_eq!(sent, array_items(&prefix.system).unwrap(), "{model}");
        }
    }
}

#[test]
fn references_that_a_search_returns_reach_the_provider() {
    let card = card("claude-opus-5-5");
    let session = full(&card, "word");
    let catalog = ToolCatalog::new(&session.tools);
    let hits: Vec<_> = catalog.deferred().collect();
    let found = catalog.render_search_result(&card, &hits);
    let found: Vec<&str> = found.blocks().iter().map(|block| block.raw().as_str()).collect();
    let content = found.join(",");
    let call = r#"[{"type":"tool_use","id":"toolu_1","name":"ToolSearch","input":{"query":"word"}}]"#;
    let result = format!(r#"[{{"type":"tool_result","tool_use_id":"toolu_1","content":[{content}]}}]"#);
    let said = vec![
        EntryDraft::assistant(Some(&"msg_1".into()), None, call),
        EntryDraft::user(MessageOrigin::Tool, &result),
    ];
    let body = rendered_with(&session, said).body();
    assert!(!found.is_empty() && body.contains(&content), "{body}");
    check(&card, &body);
}

#[test]
fn the_guidance_names_the_way_to_deferred_tools() {
    for (model, way) in [("claude-opus-5-5", "like any other tool"), ("gpt-5.5-codex", "through CallTool")] {
        let card = card(model);
        // Servers bring the dispatcher along, whatever the provider knows.
        let session = PrefixInputs { servers: Vec::new(), ..full(&card, "word") };
        let prefix = assemble(&session).prefix;
        let text = system(&prefix).pop().unwrap();
        assert!(
            text.contains("ToolSearch finds 1 tool beyond your list (servers: word)") && text.contains(way),
            "{text}"
        );
        assert_eq!(names(&prefix.tools).contains(&String::from("CallTool")), model.starts_with("gpt"));
    }
}
