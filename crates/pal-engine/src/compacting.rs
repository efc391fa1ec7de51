//! Compactions, carried through; and taken back.

use pal_context::{Compaction, Order, Reply, Step};
use pal_model::{
    Body, Boundary, Decision, DecisionKind, Draft, Entry, EntryId, RequestSent, ResponseGot, Source,
    Timestamp,
};
use pal_view::View;

use crate::{Engine, EngineError, Errands, Session};

/// What became of a compaction.
#[derive(Clone, Debug)]
pub enum Compacted {
    /// It came about.
    Done {
        /// The boundary, as appended or, of a preview, as it would be.
        boundary: Box<Boundary>,
        /// What was tried before and did not work.
        attempts: Vec<String>,
    },
    /// Nothing changed; why.
    Refused(String),
}

impl Session {
    /// Compacts the conversation.
    pub fn compact(
        &mut self,
        order: Order,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<Compacted, EngineError> {
        let compacted = self.compaction(order, engine, now, errands)?;
        if let Compacted::Done { boundary, attempts } = &compacted {
            self.append_boundary(boundary, now)?;
            for attempt in attempts {
                errands.notice(&format!("compaction: {attempt}"));
            }
        }
        Ok(compacted)
    }

    /// Appends a boundary that was made, or previewed and perhaps edited.
    pub fn append_boundary(&mut self, boundary: &Boundary, now: Timestamp) -> Result<EntryId, EngineError> {
        let mut boundary = boundary.clone();
        if let Some(preserved) = &mut boundary.preserved {
            preserved.offset = self.log.offset(preserved.head);
        }
        if let Some(prefix) = &mut boundary.snapshot.prefix {
            prefix.offset = prefix.offset.or(self.log.offset(prefix.id));
        }
        let entry = self.append(Draft::boundary(&boundary), now)?;
        self.sync()?;
        Ok(entry.id)
    }

    /// Carries a compaction through, up to but without its boundary: what it asks a model is booked all the same.
    pub fn compaction(
        &mut self,
        order: Order,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<Compacted, EngineError> {
        // Requests for summaries go into the log; the conversation that they are about stays as it is.
        let view = self.view.clone();
        if !view.shown().any(|shown| !matches!(shown.entry.body, Body::Boundary(_))) {
            // No model need be asked about nothing.
            let message = match view.boundary() {
                Some(_) => "nothing was said since the last compaction",
                None => "nothing was said yet",
            };
            errands.notice(&format!("not compacted: {message}"));
            return Ok(Compacted::Refused(String::from(message)));
        }
        let mut compaction = Compaction::new(&view, order, &engine.limits, &engine.policy, &engine.place);
        loop {
            match compaction.next(&view) {
                Step::Ask(question) => {
                    let source = Source::named("compact");
                    let model = view.lens().card.model.clone();
                    let request = RequestSent {
                        source: source.clone(),
                        last: view.newest(),
                        model: model.clone(),
                        fingerprint: Some(question.request.fingerprint()),
                        marks: Vec::new(),
                        layers: Vec::new(),
                    };
                    self.append(Draft::request(&request), now)?;
                    let asked = errands.ask(&question, now);
                    if let Some((response, usage, cost)) = asked.answered {
                        let got = ResponseGot { response, source, model, usage, stop_reason: None, cost };
                        self.append(Draft::response(&got), now)?;
                    }
                    if let Reply::Failed(message) = &asked.reply {
                        errands.notice(&format!("no summary by {}: {message}", question.how.name()));
                    }
                    compaction.answered(&view, asked.reply);
                }
                Step::ReadFiles(wanted) => {
                    let read = wanted.iter().map(|wanted| errands.read_file(wanted)).collect();
                    compaction.files_read(read);
                }
                Step::Done(done) => {
                    return Ok(Compacted::Done {
                        boundary: Box::new(done.boundary),
                        attempts: done.attempts,
                    });
                }
                Step::Failed { message, counts_as_failure } => {
                    if counts_as_failure {
                        self.failed("compaction", &message, now)?;
                    }
                    errands.notice(&format!("not compacted: {message}"));
                    return Ok(Compacted::Refused(message));
                }
            }
        }
    }

    /// Takes the last boundary back, if what it hid fits the window together with what was said since (§4.18).
    pub fn uncompact(
        &mut self,
        engine: &Engine,
        whole: &View,
        now: Timestamp,
    ) -> Result<EntryId, EngineError> {
        let Some(boundary) = self.view.boundary() else {
            return Err(EngineError::NotPossible(String::from(
                "this session has no compaction in force: there is nothing to take back",
            )));
        };
        let target = boundary.id;
        let was_said = |entry: &Entry| matches!(entry.body, Body::User(_) | Body::Assistant(_));
        if !whole.branch().iter().take_while(|entry| entry.id != target).any(was_said) {
            return Err(EngineError::NotPossible(String::from(
                "what was said before the compaction is not in this log: there is nothing to go back to",
            )));
        }
        let decision = Decision {
            kind: DecisionKind::Undo { target },
            reason: String::from("the compaction was taken back"),
            cost: Default::default(),
        };
        let size = whole.with(&decision).size().tokens;
        if engine.limits.fill(size).blocking {
            return Err(EngineError::NotPossible(format!(
                "without the compaction the context would have about {size} tokens, and the window of {} leaves room \
                 for {}: choose a model with a larger window, or compact a part with --from or --up-to",
                engine.limits.window, engine.limits.blocking
            )));
        }
        self.decide(&decision, now)?;
        self.sync()?;
        Ok(target)
    }
}
