//! Announcements: nothing counts as told that the model was not told, whenever the process is killed.

use std::collections::{BTreeMap, BTreeSet};

use pal_context::{CompactionRange, SummaryMethod};
use pal_engine::{CompactionResult, PendingAnnouncement};
use pal_model::Timestamp;
use pal_prompt::{Capability, CapabilityOffer, announce};
use pal_view::View;
use smol_str::SmolStr;

use crate::played_session::{OPTIONS, PlayedSession, by_hand, card, prose};

fn offer() -> CapabilityOffer {
    let offered = |name: &str| Capability { name: name.into(), about: String::from("Of use.") };
    CapabilityOffer {
        tools: vec![offered("mcp__mail__send"), offered("mcp__web__fetch")],
        agents: vec![offered("reviewer")],
        skills: vec![offered("release")],
        ..CapabilityOffer::default()
    }
}

/// Announcement that is due, given what is announced.
fn due(known: &BTreeMap<SmolStr, BTreeSet<SmolStr>>, offer: &CapabilityOffer) -> Option<PendingAnnouncement> {
    let announcement = announce(known, offer)?;
    let pal_prompt::Announcement { text, descriptions, decisions, .. } = announcement;
    Some(PendingAnnouncement { text, descriptions, decisions })
}

fn told(played: &mut PlayedSession, offer: &CapabilityOffer) -> bool {
    let Some(announced) = due(&played.view().state().announced, offer) else { return false };
    played.session().announce(&announced, Timestamp::from_milliseconds(1_800_000_000_000)).unwrap();
    true
}

/// Everything marked as announced is visible to the model.
fn is_honest(view: &View) {
    let body = view.render(OPTIONS).body();
    for name in view.state().announced.values().flatten() {
        assert!(body.contains(&format!("- {name}")), "{name} is marked as told\n{body}");
    }
}

#[test]
fn a_kill_leaves_nothing_untold_that_is_marked_as_told() {
    let mut played = PlayedSession::new(card(200_000));
    played.say("Go on.");
    let mut offer = offer();
    assert!(told(&mut played, &offer) && !told(&mut played, &offer));
    let announced = played.view().state().announced.clone();
    assert!(played.body().contains("- mcp__web__fetch: Of use."));
    played.turn().unwrap();
    offer.tools.remove(0);
    assert!(told(&mut played, &offer));
    let body = played.body();
    played.restart();
    assert_eq!(played.body(), body);
    assert!(!told(&mut played, &offer), "resumed, it is known what was told");
    assert!(announced["tools"].contains("mcp__mail__send"));
    assert!(!played.view().state().announced["tools"].contains("mcp__mail__send"));
    let entries = played.entries();
    for end in 0..=entries.len() {
        let killed = View::from_branch(played.view().lens().clone(), entries[..end].iter().cloned());
        is_honest(&killed);
    }
    let empty = PendingAnnouncement { text: String::from(" "), descriptions: None, decisions: Vec::new() };
    assert!(played.session().announce(&empty, Timestamp::default()).is_err());
}

#[test]
fn behind_a_compaction_everything_but_skills_is_told_again() {
    for by_engine in [false, true] {
        let mut played = PlayedSession::new(card(200_000));
        let mut offer = offer();
        played.say("Begin.");
        told(&mut played, &offer);
        for number in 0..6 {
            played.turn().unwrap();
            played.tool(&format!("t{number}"), "Edit", &prose(6_000));
        }
        played.say("And now?");
        offer.agents.clear();
        if by_engine {
            let known = played.view().state().announced.iter().filter(|(what, _)| *what == "skills");
            let known = known.map(|(what, names)| (what.clone(), names.clone())).collect();
            played.host.announcement = due(&known, &offer);
        }
        let compacted = played.compact(by_hand(CompactionRange::Whole, Some(SummaryMethod::Extractive)));
        assert!(matches!(compacted, CompactionResult::Done { .. }), "{compacted:?}");
        if !by_engine {
            assert!(!played.body().contains("- mcp__web__fetch: Of use."), "the summary does not tell it");
        }
        assert_eq!(told(&mut played, &offer), !by_engine);
        let body = played.body();
        assert!(body.contains("- mcp__web__fetch: Of use."), "{body}");
        let state = &played.view().state().announced;
        assert!(state["skills"].contains("release") && !body.contains("- release: Of use."));
        assert!(!state.contains_key("agents"), "what is gone is not spoken of");
        played.restart();
        assert_eq!(played.body(), body);
        assert!(!told(&mut played, &offer));
    }
}
