//! What the agent's session has done for it by the provider: answers of the conversation, summaries.

use std::time::Duration;

use pal_context::{FileRead, FileWanted, Order, Question, Reply};
use pal_engine::{AfterCompaction, Answered, Asked, BeforeCompaction, Broke, Errands, Outcome, Outgoing};
use pal_model::{Block, BlockType, Boundary, Source, Timestamp, Usage};
use pal_settings::Switch;
use pal_view::{Request, View};
use pal_wire::{Delta, Event as Heard, Failure, FailureKind};
use smol_str::SmolStr;

use crate::desk::Desk;
use crate::event::Event;
use crate::line::{Exchange, ExchangeEnd, Step};
use crate::timing::Timed;
use crate::words::way_on;

/// Characters that are kept of an answer that is too large.
const KEPT_CHARS: usize = 4_000;

/// How often whoever waits for a summary is told that it is being written (§4.17).
const TOLD_EVERY: Duration = Duration::from_secs(15);

impl Errands for Desk<'_> {
    fn send(&mut self, outgoing: &Outgoing<'_>) -> Outcome {
        let exchange = if self.switched.is_off(Switch::BreakDetector) {
            self.exchange(outgoing.request, outgoing.betas)
        } else {
            self.exchange(&self.voice.asking_why(outgoing.request, outgoing.previous), outgoing.betas)
        };
        self.outcome(exchange)
    }

    fn ask(&mut self, question: &Question, betas: &[SmolStr], _now: Timestamp) -> Asked {
        let call = self.voice.call(&question.request, betas);
        let mut told = Duration::ZERO;
        let how = question.how.name();
        let (cancel, sink) = (self.handle.cancel(), &mut self.sink);
        sink(Event::Notice(format!("{} writes a summary ({how})", self.card.model)));
        let dialect = self.line.endpoint().dialect();
        let max_tokens = question.request.max_tokens();
        let mut timed = Timed::begin(Source::named("compact"), &self.card, dialect, max_tokens);
        let within = timed.span().entered();
        let exchange = self.line.exchange(call, &cancel, &mut |step| {
            timed.hear(&step);
            if let Step::Tick(passed) = step
                && passed >= told + TOLD_EVERY
            {
                told = passed;
                sink(Event::Notice(format!("the summary is being written, for {} s now", passed.as_secs())));
            }
        });
        drop(within);
        self.tell_exchange(timed, &exchange);
        self.asked(exchange)
    }

    fn read_file(&mut self, wanted: &FileWanted) -> FileRead {
        self.read_again(wanted)
    }

    fn notice(&mut self, line: &str) {
        (self.sink)(Event::Notice(line.to_owned()));
    }

    fn is_cancelled(&self) -> bool {
        self.handle.cancel().is_cancelled()
    }

    fn void(&mut self) {
        let why = String::from("the window was full before it ended; the conversation is compacted first");
        (self.sink)(Event::Void { why });
    }

    fn now(&mut self, _earlier: Timestamp) -> Timestamp {
        self.clock.now()
    }

    fn before_compaction(&mut self, order: &Order, view: &View) -> BeforeCompaction {
        self.prepare_compaction(order, view)
    }

    fn after_compaction(&mut self, boundary: &Boundary, view: &View) -> AfterCompaction {
        self.follow_compaction(boundary, view)
    }
}

impl Desk<'_> {
    fn exchange(&mut self, request: &Request, betas: &[SmolStr]) -> Exchange {
        let call = self.voice.call(request, betas);
        let (cancel, sink) = (self.handle.cancel(), &mut self.sink);
        let dialect = self.line.endpoint().dialect();
        let mut timed = Timed::begin(Source::main(), &self.card, dialect, request.max_tokens());
        let within = timed.span().entered();
        let exchange = self.line.exchange(call, &cancel, &mut |step| {
            timed.hear(&step);
            match step {
                Step::Event(Heard::Grew { delta: Delta::Text(text), .. }) => sink(Event::Text(text.clone())),
                Step::Event(Heard::Grew { delta: Delta::Thinking(text), .. }) => {
                    sink(Event::Thinking(text.clone()));
                }
                Step::Waiting(wait) => sink(Event::Waiting {
                    why: wait.failure.message.clone(),
                    attempt: wait.attempt,
                    of: wait.of,
                    left: wait.left,
                }),
                Step::Event(_) | Step::Tick(_) => {}
            }
        });
        drop(within);
        self.tell_exchange(timed, &exchange);
        exchange
    }

    fn tell_exchange(&mut self, timed: Timed, exchange: &Exchange) {
        let (took, event) = timed.end(exchange, &self.card);
        self.took_provider += took;
        (self.sink)(event);
    }

    fn outcome(&mut self, exchange: Exchange) -> Outcome {
        let Exchange { started, blocks, end } = exchange;
        match end {
            ExchangeEnd::Finished(finished) => Outcome::Answered(Answered {
                blocks,
                cost: self.card.cost(&finished.usage),
                cleared_tokens: finished.cleared_tokens(),
                cache_miss: finished.cache_miss(),
                response: finished.response,
                model: finished.model,
                usage: finished.usage,
                stop_reason: finished.stop_reason,
            }),
            ExchangeEnd::Failed(failure) => match failure.kind {
                FailureKind::TooLong { have, limit } if started.is_none() => {
                    Outcome::TooLong { have, limit, message: failure.message }
                }
                FailureKind::TooLarge if started.is_none() => {
                    Outcome::TooLong { have: None, limit: None, message: failure.message }
                }
                FailureKind::Invalid if started.is_none() && is_about_media(&failure.message) => {
                    Outcome::MediaRefused(failure.message)
                }
                FailureKind::AnswerTooLarge => {
                    self.broke(started, first_words(&blocks), with_way_on(&failure), true)
                }
                kind => {
                    let is_final = kind == FailureKind::Deadline;
                    self.broke(started, blocks, with_way_on(&failure), is_final)
                }
            },
            ExchangeEnd::Cancelled => self.broke(started, blocks, String::from("interrupted"), false),
        }
    }

    /// What arrived of an answer that is not whole. What is known of its usage is what it began with.
    fn broke(
        &self,
        started: Option<pal_wire::Started>,
        blocks: Vec<Block>,
        why: String,
        is_final: bool,
    ) -> Outcome {
        let Some(started) = started else { return Outcome::Failed(why) };
        let usage: Usage = started.usage;
        let answered = Answered {
            cost: self.card.cost(&usage),
            response: started.response,
            model: started.model,
            blocks,
            usage,
            stop_reason: None,
            cleared_tokens: 0,
            cache_miss: None,
        };
        Outcome::Broke(Broke { answered, why, is_final })
    }

    fn asked(&mut self, exchange: Exchange) -> Asked {
        match exchange.end {
            ExchangeEnd::Finished(finished) => {
                let cost = self.card.cost(&finished.usage);
                let reply = Reply::of_answer(exchange.blocks, finished.stop_reason.as_deref());
                Asked { reply, answered: Some((finished.response, finished.usage, cost)) }
            }
            ExchangeEnd::Failed(failure) => {
                let reply = match failure.kind {
                    FailureKind::TooLong { have, limit } => Reply::TooLong { have, limit },
                    FailureKind::TooLarge => Reply::TooLong { have: None, limit: None },
                    _ => Reply::Failed(failure.message),
                };
                Asked { reply, answered: None }
            }
            ExchangeEnd::Cancelled => {
                Asked { reply: Reply::Failed(String::from("interrupted")), answered: None }
            }
        }
    }
}

/// The beginning of an answer that is too large to be kept whole: every later request would carry it.
fn first_words(blocks: &[Block]) -> Vec<Block> {
    let texts = blocks.iter().filter(|block| block.kind() == BlockType::Text);
    let texts: Vec<_> = texts.filter_map(|block| block.string("text")).collect();
    let beginning: String = texts.iter().flat_map(|text| text.chars()).take(KEPT_CHARS).collect();
    match beginning.trim() {
        "" => Vec::new(),
        beginning => vec![Block::text(&format!(
            "{beginning}\n[The rest of this answer was dropped: it was too large.]"
        ))],
    }
}

/// Whether a provider that refuses a request speaks of a picture or a document in it. Providers have no code for it.
fn is_about_media(message: &str) -> bool {
    let message = message.to_lowercase();
    ["image", "pdf", "document", "media"].iter().any(|word| message.contains(word))
}

fn with_way_on(failure: &Failure) -> String {
    let request = match &failure.request_id {
        Some(id) => format!(" (request {id})"),
        None => String::new(),
    };
    format!("{}{request}; {}", failure.message.trim_end_matches('.'), way_on(failure.kind))
}
