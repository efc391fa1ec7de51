//! Injected faults, chosen by seed.
//!
//! A fault either replaces the reply ([`FaultPlan::replacement_reply`]: the provider's state is untouched, no cache
//! entry is written and no script turn is used), or damages a reply ([`FaultPlan::apply`]). The same seed and
//! request number give the same fault, independent of earlier requests. The grammar is in
//! `docs/simulator.md`.

mod byte_faults;
mod error_replies;
mod event_faults;
mod fault_grammar;

use pal_wire::Dialect;

use crate::seeded_rng::SeededRng;
use crate::{HttpReply, ReplyEnding};
pub use fault_grammar::FaultError;
use fault_grammar::{Fault, FaultKind};

/// A plan of faults to inject.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    seed: u64,
    faults: Vec<Fault>,
}

impl FaultPlan {
    /// Parses a plan such as `429=2s@2,cut:0.1`.
    pub fn parse(spec: &str) -> Result<FaultPlan, FaultError> {
        let mut faults = Vec::new();
        for part in spec.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            faults.push(Fault::parse(part)?);
        }
        Ok(FaultPlan { seed: 0, faults })
    }

    /// Sets the seed of random faults.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> FaultPlan {
        FaultPlan { seed, ..self }
    }

    /// True if the plan has no fault.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// Reply that replaces the answer to this request, counted from 1; `None` if no fault does. Status 0
    /// drops the connection without a reply.
    pub fn replacement_reply(&self, number: u64, dialect: Dialect) -> Option<HttpReply> {
        self.due_faults(number)
            .find_map(|(fault, _)| error_replies::replacement_reply(&fault.kind, number, dialect))
    }

    /// Applies the due faults to a reply. Only replies with status 200 are changed.
    pub fn apply(&self, number: u64, is_stream: bool, mut reply: HttpReply) -> HttpReply {
        if reply.status != 200 {
            return reply;
        }
        let mut due: Vec<(&Fault, SeededRng)> = self.due_faults(number).collect();
        due.sort_by_key(|(fault, _)| fault.kind.phase());
        for (fault, mut chance) in due {
            if reply.status == 200 {
                reply = apply_fault(&fault.kind, is_stream, reply, &mut chance);
            }
        }
        reply
    }

    /// Faults due for this request, each with its own random generator.
    fn due_faults(&self, number: u64) -> impl Iterator<Item = (&Fault, SeededRng)> {
        self.faults.iter().zip(0..).filter_map(move |(fault, index)| {
            let mut chance = SeededRng::from_numbers(&[self.seed, number, index]);
            (fault.applies_to(number) && chance.fraction() < fault.probability).then_some((fault, chance))
        })
    }
}

fn apply_fault(kind: &FaultKind, is_stream: bool, reply: HttpReply, chance: &mut SeededRng) -> HttpReply {
    let place = |reply: &HttpReply, place, chance: &mut SeededRng| {
        event_faults::fault_offset(reply, is_stream, place, chance)
    };
    match kind {
        FaultKind::Status { .. } | FaultKind::SpendLimit | FaultKind::TooLong { .. } | FaultKind::Reset => {
            reply
        }
        FaultKind::Usage(wrong) => event_faults::falsify_usage(reply, is_stream, *wrong),
        FaultKind::Duplicate(event) => {
            event_faults::duplicate_event(reply, is_stream, event.as_deref(), chance)
        }
        FaultKind::Unknown => event_faults::add_unknown_events(reply, is_stream, chance),
        FaultKind::Malformed(at) => event_faults::truncate_event(reply, is_stream, *at, chance),
        FaultKind::Error { kind, at } => event_faults::end_with_error(reply, is_stream, *kind, (*at, chance)),
        FaultKind::Crlf => byte_faults::use_crlf(reply, is_stream),
        FaultKind::Cut(at) => {
            let at = place(&reply, *at, chance);
            HttpReply { ending: ReplyEnding::Cut, ..byte_faults::truncate_at(reply, at) }
        }
        FaultKind::Truncate(at) => {
            let at = place(&reply, *at, chance);
            byte_faults::truncate_at(reply, at)
        }
        FaultKind::Silence { at, length } => {
            let at = place(&reply, *at, chance);
            byte_faults::insert_silence(reply, at, *length)
        }
        FaultKind::Split(size) => byte_faults::split(reply, *size, chance),
        FaultKind::Merge { all } => byte_faults::merge_chunks(reply, *all, chance),
        FaultKind::Slow { gap, size } => byte_faults::slow(reply, *gap, *size),
        FaultKind::ContentType(value) => byte_faults::with_content_type(reply, value),
    }
}

#[cfg(test)]
mod tests;
