//! What the user may set about the layers, and the budgets that follow from the window.

use std::collections::BTreeMap;
use std::time::Duration;

use pal_view::{Limits, scale};
use smol_str::SmolStr;

use crate::thrifty::Thrift;

/// What the user may set about the layers. All fields are given at the call; [`Policy::classic`] is what holds when
/// nothing is set.
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// Large tool results and pastes go to disk.
    pub spill: bool,
    /// Verbose tool results are shortened before they are first sent.
    pub condense: bool,
    /// Redundant stretches are hidden.
    pub snip: bool,
    /// Old results are cleared when the cache is cold.
    pub cold_clear: bool,
    /// Old results are cleared by the provider, where the card can.
    pub warm_clear: bool,
    /// Old results are cleared under pressure, where the provider cannot.
    pub pressure: bool,
    /// Old stretches are folded.
    pub fold: bool,
    /// The provider makes the summaries, where the card can.
    pub provider_compaction: bool,
    /// Characters that a condensed result aims at; a listing at twice as many.
    pub condense_characters: u64,
    /// Characters of a tool result from which on it is spilled.
    pub spill_characters: u64,
    /// Exceptions by tool.
    pub spill_characters_by_tool: BTreeMap<SmolStr, u64>,
    /// Characters that all results of one message may have together.
    pub spill_characters_of_message: u64,
    /// Characters of a user's text from which on it is spilled.
    pub spill_characters_of_user: u64,
    /// Time since the last request after which the cache counts as cold.
    pub cold_after: Duration,
    /// Results that a cold clear leaves.
    pub cold_keep: usize,
    /// Live results from which on the cache is edited, and how many stay.
    pub cache_edit_from: usize,
    /// Results that an edit of the cache leaves.
    pub cache_edit_keep: usize,
    /// Results that a clear under pressure leaves.
    pub pressure_keep: usize,
    /// Messages at the end that are never snipped.
    pub snip_keep_messages: usize,
    /// Percent of the effective window from which on stretches are folded.
    pub fold_from_percent: u64,
    /// Percent of the effective window from which on a request waits for the fold.
    pub fold_drain_percent: u64,
    /// What is cleared and compacted, and when, is decided by price (§10.5); none for the thresholds alone.
    pub thrift: Option<Thrift>,
}

/// Characters that a condensed result aims at if nothing is set.
pub const CONDENSE_CHARACTERS: u64 = 4_000;

impl Policy {
    /// What holds when nothing is set.
    pub fn classic() -> Policy {
        Policy {
            spill: true,
            condense: true,
            snip: false,
            cold_clear: true,
            warm_clear: true,
            pressure: true,
            fold: false,
            provider_compaction: false,
            condense_characters: CONDENSE_CHARACTERS,
            spill_characters: 50_000,
            spill_characters_by_tool: BTreeMap::new(),
            spill_characters_of_message: 200_000,
            spill_characters_of_user: 200_000,
            cold_after: Duration::from_secs(60 * 60),
            cold_keep: 5,
            cache_edit_from: 12,
            cache_edit_keep: 5,
            pressure_keep: 3,
            snip_keep_messages: 20,
            fold_from_percent: 90,
            fold_drain_percent: 95,
            thrift: None,
        }
    }

    /// By price: what is the cheapest from here on is done, and the thresholds hold as limits.
    pub fn thrifty(thrift: Thrift) -> Policy {
        Policy { thrift: Some(thrift), cold_keep: 3, ..Policy::classic() }
    }

    /// No layer at all: everything is sent as it was said.
    pub fn none() -> Policy {
        Policy {
            spill: false,
            condense: false,
            cold_clear: false,
            warm_clear: false,
            pressure: false,
            ..Policy::classic()
        }
    }
}

/// Token budgets, scaled to the window (§0.4).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Budgets {
    scale: f64,
}

impl Budgets {
    /// The budgets of a window.
    pub fn new(limits: &Limits) -> Budgets {
        Budgets { scale: scale(limits.window) }
    }

    /// Tokens of all pins together.
    pub fn pins(&self) -> u64 {
        self.of(8_000)
    }

    /// A budget of this text, given for a window of 200 000 tokens, on this window.
    pub fn of(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.scale) as u64
    }
}
