//! The machine: which way to a summary is tried next, and what comes of it.
//!
//! Contract: call [`Compaction::next`]; on [`Step::Ask`] send the request and call [`Compaction::answered`], on
//! [`Step::ReadFiles`] read them and call [`Compaction::files_read`]; then `next` again, until `Done` or `Failed`. The
//! view must be the same at every call.

use std::collections::VecDeque;

use pal_model::{Block, Body, Boundary};
use pal_view::{Limits, RenderOptions, Request, Shown, View};

use super::compose::{Material, Summary, can_keep, compose};
use super::cut::{Conversation, Cut, Part};
use super::order::{FileRead, FileWanted, How, Order, Reach, Trigger};
use super::{notes, parse, plain, prompt, restore};
use crate::{Budgets, Place, Policy};

/// Tokens that a summary may have.
const OUTPUT: u64 = 20_000;
/// Tokens of messages that are kept: at least by notes, and at most.
const KEPT_LEAST: u64 = 10_000;
const KEPT_MOST: u64 = 40_000;
/// Failures of models in a row after which no model is asked any more.
const FAILURES_MAX: u64 = 3;
/// What the user is told then.
const GAVE_UP: &str = "no model is asked any more, because three summaries in a row failed; a compaction by hand that \
                       works changes that";
/// Characters of instructions that the provider takes for its own compaction.
const PROVIDER_INSTRUCTIONS_MAX: usize = 16_384;
/// What the user is told about a part that cannot be kept.
const BOTH_SIDES: &str = "messages on both sides of what an earlier compaction hid cannot be kept together: compact up to \
                          a message, or everything";
/// How often a request for a summary is shortened.
const TRUNCATIONS_MAX: usize = 3;
/// By how much an estimate may be wrong where the provider has not counted yet.
const SLACK_PERCENT: f64 = 8.0;

/// What the machine needs next, or how it ended.
#[derive(Clone, Debug)]
pub enum Step {
    /// An answer of a model.
    Ask(Box<Question>),
    /// The text of files as they are now.
    ReadFiles(Vec<FileWanted>),
    /// A boundary to be appended.
    Done(Box<Compacted>),
    /// Nothing changes; why.
    Failed {
        /// Why, for the user.
        message: String,
        /// Whether a model was asked and gave no summary, or one that was no use.
        counts_as_failure: bool,
    },
}

/// A request for a summary.
#[derive(Clone, Debug)]
pub struct Question {
    /// Which way this is.
    pub how: How,
    /// The request.
    pub request: Request,
}

/// What came of a question. The reply of a whole answer is [`Reply::of_answer`].
#[derive(Clone, Debug)]
pub enum Reply {
    /// The model said something.
    Said(Vec<Block>),
    /// The request was too long.
    TooLong {
        /// Its tokens, where the provider said so.
        have: Option<u64>,
        /// The limit, where the provider said so.
        limit: Option<u64>,
    },
    /// There was no answer.
    Failed(String),
}

impl Reply {
    /// The reply that a whole answer is, by why it stopped: what was cut off by a full window was asked of too long a
    /// conversation, and a refusal says nothing of it.
    pub fn of_answer(blocks: Vec<Block>, stop_reason: Option<&str>) -> Reply {
        match stop_reason {
            Some("refusal") => Reply::Failed(String::from("the model refused to write it")),
            Some("model_context_window_exceeded") if blocks.is_empty() => {
                Reply::TooLong { have: None, limit: None }
            }
            Some(reason) if blocks.is_empty() => {
                Reply::Failed(format!("the answer is empty and stopped with `{reason}`"))
            }
            _ => Reply::Said(blocks),
        }
    }
}

/// A compaction that came about.
#[derive(Clone, Debug)]
pub struct Compacted {
    /// The boundary. Offsets into the log are for the driver to fill in.
    pub boundary: Boundary,
    /// What was tried before and did not work.
    pub attempts: Vec<String>,
}

/// A compaction on its way.
#[derive(Clone, Debug)]
pub struct Compaction {
    order: Order,
    limits: Limits,
    place: Place,
    ways: VecDeque<How>,
    cut: Option<Cut>,
    asked: Option<How>,
    /// Whether models have failed so often that none is asked.
    gave_up: bool,
    model_failed: bool,
    attempts: Vec<String>,
    dropped: usize,
    truncations: usize,
    summary: Option<(How, Summary)>,
    files: Option<Vec<FileRead>>,
}

impl Compaction {
    /// A compaction by an order; nothing happens yet.
    pub fn new(view: &View, order: Order, limits: &Limits, policy: &Policy, place: &Place) -> Compaction {
        let gave_up = view.state().summary_failures >= FAILURES_MAX && order.trigger != Trigger::Manual;
        let ways = ways(view, &order, policy, gave_up);
        Compaction {
            order,
            limits: *limits,
            place: place.clone(),
            ways,
            cut: None,
            asked: None,
            gave_up,
            model_failed: false,
            attempts: Vec::new(),
            dropped: 0,
            truncations: 0,
            summary: None,
            files: None,
        }
    }

    /// What is needed next.
    pub fn next(&mut self, view: &View) -> Step {
        let conversation = Conversation::of(view);
        loop {
            if let Some((how, summary)) = self.summary.take() {
                match self.finish(view, &conversation, how, summary) {
                    Some(step) => return step,
                    None => continue,
                }
            }
            let Some(how) = self.ways.pop_front() else {
                let message = match self.attempts.as_slice() {
                    [] if self.order.reach != Reach::Whole => {
                        String::from("what stands before that message cannot be parted from it")
                    }
                    [] if view.boundary().is_some() => {
                        String::from("nothing was said since the last compaction")
                    }
                    [] => String::from("nothing was said yet"),
                    attempts => attempts.join("; "),
                };
                return Step::Failed { message, counts_as_failure: self.model_failed };
            };
            if let Some(step) = self.try_way(view, &conversation, how) {
                return step;
            }
        }
    }

    /// Tells what came of the question.
    pub fn answered(&mut self, view: &View, reply: Reply) {
        let Some(how) = self.asked.take() else { return };
        match reply {
            Reply::Said(blocks) if how == How::Provider => match parse::provider_block(&blocks) {
                Ok(block) => self.summary = Some((how, Summary::Provider(block))),
                Err(failure) => self.failed(how, &failure.to_string()),
            },
            Reply::Said(blocks) => match parse::summary(&blocks) {
                Ok(text) => self.summary = Some((how, Summary::Text(text))),
                Err(failure) => self.failed(how, &failure.to_string()),
            },
            Reply::Failed(message) => self.failed(how, &message),
            Reply::TooLong { have, limit } => {
                self.failed(how, "the provider found it too long");
                self.shorten(view, have, limit);
            }
        }
    }

    /// Gives the files that were asked for.
    pub fn files_read(&mut self, files: Vec<FileRead>) {
        self.files = Some(files);
    }

    fn failed(&mut self, how: How, why: &str) {
        self.model_failed |= how.asks_a_model();
        self.attempts.push(format!("{}: {why}", how.name()));
    }

    fn budgets(&self) -> Budgets {
        Budgets::new(&self.limits)
    }

    /// Most tokens of messages that are kept: what is said now may take more room than what tools said.
    fn kept_most(&self) -> f64 {
        let threshold = self.limits.auto_compact.unwrap_or(self.limits.effective);
        self.budgets().of(KEPT_MOST).min(threshold / 3) as f64
    }

    /// The cut of the order.
    fn cut(&mut self, conversation: &Conversation<'_>) -> Option<Cut> {
        let cut = match self.cut {
            Some(cut) => Some(cut),
            None => conversation.by_reach(self.order.reach, self.kept_most()),
        };
        let says_something = |shown: &Shown<'_>| !matches!(shown.entry.body, Body::Boundary(_));
        self.cut = cut.filter(|cut| conversation.parts(*cut).0.iter().any(says_something));
        self.cut
    }

    /// Starts on a way; the step that it needs, or none if the next turn of the loop decides.
    fn try_way(&mut self, view: &View, conversation: &Conversation<'_>, how: How) -> Option<Step> {
        if how == How::Notes {
            self.try_notes(view, conversation);
            return None;
        }
        let Some(cut) = self.cut(conversation) else {
            self.ways.clear();
            return None;
        };
        if cut.summarises == Part::Later && !can_keep(view, conversation, cut) {
            self.attempts.push(String::from(BOTH_SIDES));
            self.ways.clear();
            return None;
        }
        let summarised = conversation.parts(cut).0;
        match how {
            How::Extractive => {
                let room = self.budgets().of(OUTPUT) as usize * 2;
                self.summary = Some((how, Summary::Extracted { room }));
                None
            }
            How::Fork | How::Provider => self.ask_fork(view, cut, conversation, how),
            How::Plain => self.ask_plain(view, summarised, 0, how),
            // The whole was asked for already.
            How::Truncated if self.dropped == 0 => None,
            How::Truncated => self.ask_plain(view, summarised, self.dropped, how),
            How::Notes => None,
        }
    }

    fn try_notes(&mut self, view: &View, conversation: &Conversation<'_>) {
        let Some(notes) = &self.order.notes else { return };
        let budgets = self.budgets();
        let (least, most) = (budgets.of(KEPT_LEAST) as f64, budgets.of(KEPT_MOST) as f64);
        let cut = conversation.by_notes(notes, least, most);
        match (cut, notes::summary(view, notes, budgets)) {
            (Some(cut), Some(text)) => {
                self.cut = Some(cut);
                self.summary = Some((How::Notes, Summary::Text(text)));
            }
            (None, _) => self.attempts.push(String::from("notes: too much was said since they were written")),
            (_, None) => self.attempts.push(String::from("notes: they are empty")),
        }
    }

    /// The directive for the summary that the order asks for.
    fn directive(&self, view: &View, how: How) -> String {
        // Where it is cut, which may lie before the entry that was named.
        let first = match (self.order.reach, self.cut) {
            (Reach::From(_), Some(cut)) => view.shown().nth(cut.at),
            _ => None,
        };
        let first = first.and_then(|shown| shown.content()).and_then(|content| content.blocks().first());
        let begins = first.map(|block| block.string("text").unwrap_or(block.raw().as_str().into()));
        prompt::directive(&prompt::Directive {
            reach: self.order.reach,
            begins: begins.as_deref(),
            has_earlier_summary: view.boundary().is_some(),
            instructions: self.order.instructions.as_deref(),
            hook_instructions: self.order.hook_instructions.as_deref(),
            pins: view.state().pins.len(),
            // The provider takes whatever is said for the summary.
            is_bare: how == How::Provider,
        })
    }

    /// Tokens that the prompt of a request for a summary may have.
    fn prompt_room(&self, view: &View) -> u64 {
        self.limits.window.saturating_sub(self.output(view)).min(view.lens().card.prompt_limit())
    }

    fn output(&self, view: &View) -> u64 {
        self.budgets().of(OUTPUT).min(view.lens().card.max_output)
    }

    fn ask_fork(&mut self, view: &View, cut: Cut, conversation: &Conversation<'_>, how: How) -> Option<Step> {
        let directive = self.directive(view, how);
        if how == How::Provider && directive.chars().count() > PROVIDER_INSTRUCTIONS_MAX {
            let why = format!("{}: the instructions are longer than the provider takes", how.name());
            self.attempts.push(why);
            return None;
        }
        let earlier = match self.order.reach {
            Reach::UpTo(_) => view.until(conversation.shown.get(cut.at)?.entry.id),
            Reach::Whole | Reach::From(_) => None,
        };
        let forked = earlier.as_ref().unwrap_or(view);
        let estimator = view.estimator();
        let output = self.output(view);
        let size = forked.size();
        let guessed = size.estimated + estimator.text(&directive);
        // The provider has not counted what is estimated.
        let slack = estimator.total(guessed * SLACK_PERCENT / 100.0);
        let needed = size.tokens + estimator.total(estimator.text(&directive)) + slack;
        let room = self.prompt_room(view);
        if needed > room {
            self.attempts.push(format!("{}: {needed} tokens, and {room} fit", how.name()));
            return None;
        }
        let options = RenderOptions { max_tokens: output, stream: true, spell_out_unseen: true };
        let request = if how == How::Provider {
            let mut value = String::from(r#"{"type":"summarize","instructions":"#);
            pal_model::escape_into(&mut value, &directive);
            value.push('}');
            // It cannot stand beside what else the provider is asked to do with the context.
            let mut standing = self.order.standing.clone();
            standing.members.retain(|(name, _)| name != "context_management");
            standing.members.push(("compaction".into(), pal_model::Text::from(value)));
            standing.repeated(forked, options)
        } else {
            self.order.standing.fork(forked, options, &directive)
        };
        self.asked = Some(how);
        Some(Step::Ask(Box::new(Question { how, request })))
    }

    fn ask_plain(&mut self, view: &View, summarised: &[Shown<'_>], dropped: usize, how: How) -> Option<Step> {
        let directive = self.directive(view, how);
        let output = self.output(view);
        let estimator = view.estimator();
        let room = self.prompt_room(view).saturating_sub(estimator.total(estimator.text(&directive)));
        let room = room as f64 * (1.0 - SLACK_PERCENT / 100.0);
        let mut dropped = dropped;
        let plain = loop {
            let plain = plain::plain_view(view, summarised, dropped, prompt::PLAIN_SYSTEM);
            let over = estimator.total(plain.estimate()) as f64 - room;
            if over <= 0.0 {
                break plain;
            }
            match plain::rounds_for(summarised, dropped, over / estimator.scale()) {
                Some(more) => dropped = more,
                None => {
                    self.attempts.push(format!("{}: what is left does not fit the window", how.name()));
                    return None;
                }
            }
        };
        // Dropping rounds is the next way's business.
        if how == How::Plain && dropped > 0 {
            self.attempts.push(String::from("plain: it does not fit the window"));
            self.dropped = dropped;
            return None;
        }
        self.dropped = dropped;
        let options = RenderOptions { max_tokens: output, stream: true, spell_out_unseen: false };
        self.asked = Some(how);
        Some(Step::Ask(Box::new(Question { how, request: plain.fork(options, &directive) })))
    }

    /// The provider found a request for a summary too long: the oldest rounds go, enough for the gap that it named, or a
    /// fifth (§4.8).
    fn shorten(&mut self, view: &View, have: Option<u64>, limit: Option<u64>) {
        if self.truncations == TRUNCATIONS_MAX {
            return;
        }
        self.truncations += 1;
        let conversation = Conversation::of(view);
        let Some(cut) = self.cut(&conversation) else { return };
        let summarised = conversation.parts(cut).0;
        let estimator = view.estimator();
        let gap = match (have, limit) {
            (Some(have), Some(limit)) if have > limit => (have - limit) as f64 / estimator.scale(),
            _ => summarised.iter().fold(0.0, |sum, shown| sum + shown.tokens) / 5.0,
        };
        if let Some(dropped) = plain::rounds_for(summarised, self.dropped, gap) {
            self.dropped = dropped;
            self.ways.retain(|way| !matches!(way, How::Fork | How::Provider | How::Plain | How::Truncated));
            if self.order.only.as_ref().is_none_or(|only| only.contains(&How::Truncated)) {
                self.ways.push_front(How::Truncated);
            }
        }
    }

    /// Makes a boundary of a summary; none if it is no use and the next way must be tried.
    fn finish(
        &mut self,
        view: &View,
        conversation: &Conversation<'_>,
        how: How,
        summary: Summary,
    ) -> Option<Step> {
        let cut = self.cut(conversation)?;
        if self.files.is_none() && cut.summarises == Part::Earlier {
            let (summarised, kept) = conversation.parts(cut);
            // Whoever compacts by hand soon after a compaction wants less, not the same again.
            let is_carried = self.order.trigger != Trigger::Manual;
            let wanted = restore::wanted(summarised, kept, &self.order.world, self.budgets(), is_carried);
            if !wanted.is_empty() {
                self.summary = Some((how, summary));
                return Some(Step::ReadFiles(wanted));
            }
        }
        let material = Material {
            view,
            conversation,
            order: &self.order,
            limits: &self.limits,
            place: &self.place,
            files: self.files.as_deref().unwrap_or_default(),
            model_failed: self.model_failed,
        };
        match compose(&material, cut, how, &summary) {
            Ok(boundary) => {
                let mut attempts = std::mem::take(&mut self.attempts);
                if self.gave_up {
                    attempts.insert(0, String::from(GAVE_UP));
                }
                Some(Step::Done(Box::new(Compacted { boundary, attempts })))
            }
            Err(why) => {
                self.failed(how, &why);
                // Notes have a cut of their own.
                if how == How::Notes {
                    self.cut = None;
                }
                None
            }
        }
    }
}

/// The ways to a summary, in order (§4.2).
fn ways(view: &View, order: &Order, policy: &Policy, gave_up: bool) -> VecDeque<How> {
    let can_provide = view.lens().card.can.provider_compaction && policy.provider_compaction;
    let by_model = if can_provide && order.reach == Reach::Whole { How::Provider } else { How::Fork };
    let takes_notes = order.reach == Reach::Whole
        && order.trigger != Trigger::Reactive
        && order.instructions.is_none()
        && order.notes.is_some();
    let mut ways: Vec<How> = Vec::new();
    if takes_notes {
        ways.push(How::Notes);
    }
    if !gave_up {
        // A request that was too long gets no longer by a directive.
        if order.trigger != Trigger::Reactive {
            ways.push(by_model);
        }
        ways.extend([How::Plain, How::Truncated]);
    }
    ways.push(How::Extractive);
    if let Some(only) = &order.only {
        ways.retain(|way| only.contains(way));
    }
    ways.into()
}
