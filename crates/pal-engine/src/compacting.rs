//! Compactions, carried through; and taken back.

use pal_context::{Compaction, How, Order, Question, Reply, Standing, Step, Trigger, World, cache};
use pal_model::{
    Body, Boundary, Decision, DecisionKind, Draft, Entry, EntryId, Prefix, ResponseGot, Source, Timestamp,
};
use pal_view::View;

use crate::preparing::automatic;
use crate::watching::Seen;
use crate::{AfterCompaction, Engine, EngineError, Errands, Session};

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
    /// Nothing changed, because a hook forbids it: which.
    Blocked(String),
}

/// Sizes and ways only: reasons may quote what was said.
fn log(compacted: &Compacted) {
    match compacted {
        Compacted::Done { boundary, attempts } => tracing::info!(
            how = boundary.how.as_str(),
            tokens_before = boundary.tokens_before,
            tokens_after = boundary.tokens_after,
            attempts_failed = attempts.len(),
            "compacted"
        ),
        Compacted::Refused(_) | Compacted::Blocked(_) => tracing::info!("not compacted"),
    }
}

impl Session {
    /// Compacts because somebody wants it now; what the summary is to dwell on, if something.
    pub fn compact_by_hand(
        &mut self,
        instructions: Option<String>,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<Compacted, EngineError> {
        let order = Order { instructions, ..automatic(Trigger::Manual, engine) };
        self.compact(order, engine, now, errands)
    }

    /// What a compaction by hand would come to, made without a model: nobody is asked and nothing is written.
    pub fn preview(
        &mut self,
        world: World,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<Compacted, EngineError> {
        let order = Order { world, only: Some(vec![How::Extractive]), ..automatic(Trigger::Manual, engine) };
        self.compaction(order, engine, now, errands)
    }

    /// Compacts the conversation.
    pub fn compact(
        &mut self,
        order: Order,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<Compacted, EngineError> {
        let before = errands.before_compaction(&order, &self.view);
        if let Some(hook) = before.blocked_by {
            errands.notice(&format!("not compacted: the hook `{hook}` forbids it"));
            return Ok(Compacted::Blocked(hook));
        }
        let order = Order {
            hook_instructions: before.instructions.or(order.hook_instructions),
            world: before.world,
            notes: before.notes.or(order.notes),
            ..order
        };
        let span = tracing::info_span!("compact", trigger = order.trigger.name());
        let within = span.entered();
        let compacted = self.compaction(order, engine, now, errands)?;
        log(&compacted);
        drop(within);
        if let Compacted::Done { boundary, attempts } = &compacted {
            let now = errands.now(now);
            self.append_boundary(boundary, now)?;
            let after = errands.after_compaction(boundary, &self.view);
            self.append_after(&after, now)?;
            for attempt in attempts {
                errands.notice(&format!("compaction: {attempt}"));
            }
        }
        Ok(compacted)
    }

    fn append_after(&mut self, after: &AfterCompaction, now: Timestamp) -> Result<(), EngineError> {
        if let Some(prefix) = &after.prefix {
            self.append(Draft::prefix(prefix), now)?;
        }
        for (what, text) in &after.notes {
            self.attach(what, text, now)?;
        }
        if let Some(announced) = &after.announcement {
            self.announce(announced, now)?;
        }
        Ok(())
    }

    /// Appends a boundary that was made, or previewed and perhaps edited.
    pub fn append_boundary(&mut self, boundary: &Boundary, now: Timestamp) -> Result<EntryId, EngineError> {
        let draft = self.placed(boundary);
        let entry = self.append(draft, now)?;
        self.sync()?;
        Ok(entry.id)
    }

    /// Appends a boundary of another log. What it knows of its log is told anew: places and totals are others here.
    pub fn copy_boundary(
        &mut self,
        id: EntryId,
        boundary: &Boundary,
        at: Timestamp,
    ) -> Result<(), EngineError> {
        let boundary = Boundary { snapshot: self.view.state().clone(), ..boundary.clone() };
        let draft = self.placed(&boundary).with_id(id);
        self.append(draft, at).map(|_| ())
    }

    /// A boundary that knows where its entries stand in this log.
    fn placed(&self, boundary: &Boundary) -> Draft {
        let mut boundary = boundary.clone();
        if let Some(preserved) = &mut boundary.preserved {
            preserved.offset = self.log.offset(preserved.head);
        }
        if let Some(prefix) = &mut boundary.snapshot.prefix {
            prefix.offset = self.log.offset(prefix.id).or(prefix.offset);
        }
        Draft::boundary(&boundary)
    }

    /// Carries a compaction through, up to but without its boundary: what it asks a model is booked all the same.
    pub fn compaction(
        &mut self,
        order: Order,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<Compacted, EngineError> {
        if engine.inputs.compaction_off {
            let message = String::from("compaction is switched off");
            errands.notice(&format!("not compacted: {message}"));
            return Ok(Compacted::Refused(message));
        }
        // Requests for summaries go into the log; the conversation that they are about stays as it is.
        let view = self.view.clone();
        let standing = self.fork_standing(engine, now);
        let order = Order { standing: standing.clone(), ..order };
        let mut compaction = Compaction::new(&view, order, &engine.limits, &engine.policy, &engine.place);
        loop {
            match compaction.next(&view) {
                Step::Ask(question) => {
                    let reply = self.ask(&question, &standing, engine, now, errands)?;
                    // Who wants everything to stop does not want a summary by another way.
                    if errands.is_cancelled() {
                        return Ok(Compacted::Refused(String::from("interrupted")));
                    }
                    compaction.answered(&view, reply);
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

    /// Asks a model for a summary and books what it took.
    pub(crate) fn ask(
        &mut self,
        question: &Question,
        standing: &Standing,
        engine: &Engine,
        now: Timestamp,
        errands: &mut dyn Errands,
    ) -> Result<Reply, EngineError> {
        let source = Source::named("compact");
        // Only what leaves fixes what later requests carry.
        self.latch(engine, now)?;
        let betas = self.betas(engine);
        let entry = self.append_request(&source, &question.request, standing, &betas, Vec::new(), now)?;
        let asked = errands.ask(question, &betas, now);
        if let Some((response, usage, cost)) = asked.answered {
            // Only what repeats the conversation can be compared with it.
            let cache_break = if matches!(question.how, How::Fork | How::Provider) {
                let asked = cache::Asked { request: question.request.clone(), betas };
                self.watch(Seen {
                    entry,
                    source: &source,
                    asked,
                    lifetime: standing.lifetime,
                    started: now,
                    response: &response,
                    usage: &usage,
                    cleared_tokens: 0,
                    provider: None,
                })
            } else {
                None
            };
            let model = self.view.lens().card.model.clone();
            let got = ResponseGot { response, source, model, usage, stop_reason: None, cost, cache_break };
            self.append(Draft::response(&got), now)?;
        }
        if let Reply::Failed(message) = &asked.reply {
            errands.notice(&format!("no summary by {}: {message}", question.how.name()));
        }
        Ok(asked.reply)
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
        // What stood before the messages then stands there again, if the compaction had it put together anew.
        if let Some(prefix) = prefix_before(whole.branch(), target) {
            self.append(Draft::prefix(prefix), now)?;
        }
        let undo = self.decide(&decision, now)?;
        self.sync()?;
        // A session that was resumed has not read what the boundary hid.
        self.read_back_from(undo.id)?;
        Ok(target)
    }
}

/// The prefix that was in force before an entry, if another one came behind it.
fn prefix_before(branch: &[Entry], target: EntryId) -> Option<&Prefix> {
    let at = branch.iter().position(|entry| entry.id == target)?;
    let newest = |entries: &'_ [Entry]| -> Option<usize> {
        entries.iter().rposition(|entry| matches!(entry.body, Body::Prefix(_)))
    };
    newest(&branch[at..])?;
    match &branch[newest(&branch[..at])?].body {
        Body::Prefix(prefix) => Some(prefix),
        _ => None,
    }
}
