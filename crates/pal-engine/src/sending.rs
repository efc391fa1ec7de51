//! A request leaves; and if the provider finds it too long, the context is made smaller and it leaves again (§4.16).

use pal_context::{How, Trigger};
use pal_model::{Draft, RequestSent, Source, Timestamp};

use crate::preparing::automatic;
use crate::{Answered, Engine, EngineError, Errands, Outcome, Outgoing, Prepared, Session};

/// A request that was answered.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The answer. Its blocks and its usage are not in the log yet.
    pub answered: Answered,
    /// The request as it was answered.
    pub prepared: Prepared,
    /// How often the provider found it too long before.
    pub rejected: u64,
}

impl Session {
    /// Prepares and sends a request of the conversation.
    pub fn send(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<Sent, EngineError> {
        let mut rejected = 0;
        loop {
            let prepared = self.prepare(engine, now, errands)?;
            self.append_request(&prepared, now)?;
            let outgoing = Outgoing { request: &prepared.request, now };
            match errands.send(&outgoing) {
                Outcome::Answered(answered) => return Ok(Sent { answered, prepared, rejected }),
                Outcome::Failed(message) => return Err(EngineError::Provider(message)),
                Outcome::TooLong { message, .. } => {
                    self.make_smaller(rejected, &message, engine, now, errands)?;
                    rejected += 1;
                }
            }
        }
    }

    fn append_request(&mut self, prepared: &Prepared, now: Timestamp) -> Result<(), EngineError> {
        let request = RequestSent {
            source: Source::main(),
            last: self.view.newest(),
            model: self.view.lens().card.model.clone(),
            fingerprint: Some(prepared.request.fingerprint()),
            marks: Vec::new(),
            layers: prepared.reports.iter().filter(|report| report.acted).cloned().collect(),
        };
        self.append(Draft::request(&request), now)?;
        self.sync()
    }

    /// First a compaction by a model, then one without; then the user is told.
    fn make_smaller(
        &mut self,
        rejected: u64,
        message: &str,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<(), EngineError> {
        let mut order = automatic(Trigger::Reactive, engine);
        match rejected {
            0 => errands.notice("the provider finds the request too long: compacting"),
            1 => {
                errands.notice("still too long: compacting without a model");
                order.only = Some(vec![How::Extractive]);
            }
            _ => return Err(EngineError::TooLong { message: message.to_owned() }),
        }
        self.compact(order, engine, now, errands)?;
        Ok(())
    }
}
