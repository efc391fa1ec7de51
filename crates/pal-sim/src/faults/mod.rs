//! Faults: what goes wrong on purpose, by seed.
//!
//! A fault either answers instead of the simulator ([`Faults::instead`]: nothing has happened on the other side, no
//! cache entry was written, no turn of a script was used), or spoils an answer on its way ([`Faults::apply`]). The
//! same seed and number of a request give the same fault, whatever happened before. The grammar is in
//! `docs/simulator.md`.

mod events;
mod flow;
mod refusal;
mod spec;

use pal_wire::Dialect;

use crate::chance::Chance;
use crate::{Ending, Reply};
pub use spec::FaultError;
use spec::{Fault, Kind};

/// A plan of what goes wrong.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    seed: u64,
    faults: Vec<Fault>,
}

impl Faults {
    /// Reads a plan, such as `429=2s@2,cut:0.1`.
    pub fn parse(spec: &str) -> Result<Faults, FaultError> {
        let mut faults = Vec::new();
        for part in spec.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            faults.push(Fault::parse(part)?);
        }
        Ok(Faults { seed: 0, faults })
    }

    /// The same plan with chance from this seed.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Faults {
        Faults { seed, ..self }
    }

    /// Whether nothing ever goes wrong.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// What is answered instead of an answer to this request, counted from 1. A status of 0 says that no answer
    /// begins at all: the connection is dropped.
    pub fn instead(&self, number: u64, dialect: Dialect) -> Option<Reply> {
        self.due(number).find_map(|(fault, _)| refusal::reply(&fault.kind, number, dialect))
    }

    /// The answer to this request as it arrives. Only what is a success is spoiled.
    pub fn apply(&self, number: u64, is_stream: bool, mut reply: Reply) -> Reply {
        if reply.status != 200 {
            return reply;
        }
        let mut due: Vec<(&Fault, Chance)> = self.due(number).collect();
        due.sort_by_key(|(fault, _)| fault.kind.phase());
        for (fault, mut chance) in due {
            if reply.status == 200 {
                reply = spoil(&fault.kind, is_stream, reply, &mut chance);
            }
        }
        reply
    }

    /// The faults that meet this request, each with its own chance.
    fn due(&self, number: u64) -> impl Iterator<Item = (&Fault, Chance)> {
        self.faults.iter().zip(0..).filter_map(move |(fault, index)| {
            let mut chance = Chance::of(&[self.seed, number, index]);
            (fault.aims_at(number) && chance.share() < fault.probability).then_some((fault, chance))
        })
    }
}

fn spoil(kind: &Kind, is_stream: bool, reply: Reply, chance: &mut Chance) -> Reply {
    let place = |reply: &Reply, place, chance: &mut Chance| events::position(reply, is_stream, place, chance);
    match kind {
        Kind::Status { .. } | Kind::SpendLimit | Kind::TooLong { .. } | Kind::Reset => reply,
        Kind::Usage(wrong) => events::wrong_usage(reply, is_stream, *wrong),
        Kind::Duplicate(event) => events::duplicated(reply, is_stream, event.as_deref(), chance),
        Kind::Unknown => events::with_unknown(reply, is_stream, chance),
        Kind::Malformed(at) => events::malformed(reply, is_stream, *at, chance),
        Kind::Error { kind, at } => events::failing(reply, is_stream, *kind, (*at, chance)),
        Kind::Crlf => flow::with_crlf(reply, is_stream),
        Kind::Cut(at) => {
            let at = place(&reply, *at, chance);
            Reply { ending: Ending::Cut, ..flow::up_to(reply, at) }
        }
        Kind::Truncate(at) => {
            let at = place(&reply, *at, chance);
            flow::up_to(reply, at)
        }
        Kind::Silence { at, length } => {
            let at = place(&reply, *at, chance);
            flow::silent(reply, at, *length)
        }
        Kind::Split(size) => flow::split(reply, *size, chance),
        Kind::Merge { all } => flow::merged(reply, *all, chance),
        Kind::Slow { gap, size } => flow::slow(reply, *gap, *size),
        Kind::ContentType(value) => flow::with_content_type(reply, value),
    }
}

#[cfg(test)]
mod tests;
