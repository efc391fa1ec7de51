//! Every recorded session: imported, and rendered as it stood before each of its responses.

use std::collections::HashSet;

use pal_model::{BlockType, EntryBody, LogEntry, MessageOrigin, ModelCard, ModelCatalog, SharedText};
use pal_testkit::session_sample;
use pal_view::{Estimator, Lens, RenderOptions, Request, View, ViewScope};
use pal_wire::{RequestRules, check_request};

use crate::program::imported;

const OPTIONS: RenderOptions = RenderOptions { max_tokens: 8_000, stream: true, spell_out_unseen: false };

/// Counts of one session.
#[derive(Default)]
struct SessionTally {
    requests: usize,
    bytes: usize,
    user_texts: usize,
}

fn lens(card: &ModelCard, scope: ViewScope) -> Lens {
    Lens { card: card.clone(), estimator: Estimator::shipped(card.generation), scope }
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_requests_are_valid_and_complete() {
    let files = session_sample("requests");
    let middle = files.len() / 2;
    let (one, two) = files.split_at(middle);
    let tallies = std::thread::scope(|scope| {
        let halves = [one, two]
            .map(|half| scope.spawn(move || half.iter().map(|file| walk(file)).collect::<Vec<_>>()));
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect::<Vec<SessionTally>>()
    });
    let sum = |count: fn(&SessionTally) -> usize| tallies.iter().map(count).sum::<usize>();
    println!(
        "{} sessions: {} requests rendered twice and accepted, {} MB; {} texts of people, none missing",
        tallies.len(),
        sum(|tally| tally.requests),
        sum(|tally| tally.bytes) >> 20,
        sum(|tally| tally.user_texts)
    );
}

/// One session, entry by entry.
fn walk(file: &std::path::Path) -> SessionTally {
    let imported = imported(file);
    let log = SharedText::from(imported.log);
    let entries: Vec<LogEntry> =
        log.lines().map(|line| LogEntry::parse(log.slice_of(line)).unwrap()).collect();
    let cards = ModelCatalog::built_in();
    let mut tally = SessionTally::default();
    let mut said: Vec<String> = Vec::new();
    let mut card = cards.find(&imported.report.models.keys().next().cloned().unwrap_or_default()).card;
    let mut view = View::new(lens(&card, ViewScope::Current));
    let mut whole = View::new(lens(&card, ViewScope::Whole));
    for entry in &entries {
        if let EntryBody::Request(request) = &entry.body {
            if request.model != card.model {
                card = cards.find(&request.model).card;
                view = view.with_lens(lens(&card, ViewScope::Current));
                whole = whole.with_lens(lens(&card, ViewScope::Whole));
            }
            let place = format!("{} before response {}", file.display(), tally.requests + 1);
            tally.bytes += accept(&view.render(OPTIONS), &view.render(OPTIONS), &card, &place);
            all_said(&whole.render(OPTIONS), &said, &place);
            tally.requests += 1;
        }
        if let EntryBody::User(user) = &entry.body
            && user.origin == MessageOrigin::Person
        {
            let texts = user.content.blocks().iter().filter(|block| block.kind() == BlockType::Text);
            said.extend(texts.filter_map(|block| block.string("text")).map(|text| text.into_owned()));
        }
        view.push(entry.clone());
        whole.push(entry.clone());
    }
    accept(&whole.render(OPTIONS), &whole.render(OPTIONS), &card, "the whole view");
    let derived = View::from_branch(lens(&card, ViewScope::Current), entries);
    assert_eq!(derived.render(OPTIONS).body(), view.render(OPTIONS).body(), "{}", file.display());
    tally.user_texts = said.len();
    tally
}

/// The validator takes a request, and a second rendering is the same.
fn accept(request: &Request, again: &Request, card: &ModelCard, place: &str) -> usize {
    let body = request.body();
    assert!(body == again.body() && request.fingerprint() == again.fingerprint(), "{place}: rendered twice");
    if let Err(error) = check_request(body.as_bytes(), &RequestRules::from(card)) {
        panic!("{place}: {}", error.message);
    }
    body.len()
}

/// Every text that a person said so far is a block of the whole view.
fn all_said(whole: &Request, said: &[String], place: &str) {
    let blocks: HashSet<&str> = whole.pieces().map(|(_, text, _)| text.as_str()).collect();
    for text in said.iter().filter(|text| !text.trim().is_empty()) {
        let block = pal_model::ContentBlock::text(text);
        let is_there = blocks.contains(block.raw().as_str())
            || blocks.iter().any(|raw| {
                pal_model::ContentBlock::parse(SharedText::from(*raw)).string("text").as_deref() == Some(text)
            });
        assert!(is_there, "{place}: missing {text:?}");
    }
}
