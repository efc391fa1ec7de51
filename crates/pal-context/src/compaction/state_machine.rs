//! The compaction state machine: tries the summary methods in order.
//!
//! Contract: call [`Compaction::next`]; on [`CompactionStep::Ask`] send the request and call [`Compaction::receive_reply`], on
//! [`CompactionStep::ReadFiles`] read them and call [`Compaction::receive_files`]; then `next` again, until `Done` or `Failed`. The
//! view must be the same at every call.

use std::collections::VecDeque;

use pal_model::text::group_digits;
use pal_model::{Boundary, ContentBlock, ContextOverflow, EntryBody, ModelCard};
use pal_view::{ContextSize, Lens, RenderOptions, Request, View, VisibleEntry, WindowLimits};

use super::boundary_builder::{BoundaryInputs, SummarySource, can_keep, compose};
use super::compaction_request::{
    CompactionRange, CompactionRequest, CompactionTrigger, FileRequest, RestoredFile, SummaryMethod,
};
use super::conversation_cut::{ConversationCut, CutPart, CuttableConversation};
use super::restoration::RestoredFiles;
use super::summary_budgets::OUTPUT;
use super::waiting_messages::waiting_room;
use super::{notes_summary, plain_request, restoration, summary_parser, summary_prompt};
use crate::{ContextPolicy, SessionPaths, WindowBudgets};

/// Bounds for the tokens of messages that a compaction by notes keeps.
const KEPT_MIN: u64 = 10_000;
const KEPT_MAX: u64 = 40_000;
/// Circuit breaker: consecutive failed model summaries after which compaction stops asking a model.
const FAILURES_MAX: u64 = 3;
/// Notice for the user in that case.
const GAVE_UP: &str = "no model is asked for summaries after three failures in a row; a successful manual compaction \
                       resets this";
/// Maximum characters of instructions for the provider's own compaction.
const PROVIDER_INSTRUCTIONS_MAX: usize = 16_384;
/// Notice for the user about a range that cannot be kept.
const BOTH_SIDES: &str = "messages on both sides of an earlier compaction cannot be kept together: compact up to a \
                          message, or everything";
/// Maximum number of times a summary request is shortened.
const TRUNCATIONS_MAX: usize = 3;
/// Error margin of estimates that the provider has not counted yet, in percent.
const SLACK_PERCENT: f64 = 8.0;

/// Next step of a compaction, or its end.
#[derive(Clone, Debug)]
pub enum CompactionStep {
    /// Send this request for a summary.
    Ask(Box<SummaryQuestion>),
    /// Read these files.
    ReadFiles(Vec<FileRequest>),
    /// Append this boundary.
    Done(Box<CompactionOutcome>),
    /// No compaction; the log stays unchanged.
    Failed {
        /// Reason, for the user.
        message: String,
        /// True if a model was asked and gave no usable summary.
        counts_as_failure: bool,
    },
}

/// A request for a summary.
#[derive(Clone, Debug)]
pub struct SummaryQuestion {
    /// Method of the summary.
    pub method: SummaryMethod,
    /// Card of the model to ask; `None` for that of the conversation.
    pub card: Option<Box<ModelCard>>,
    /// The request.
    pub request: Request,
}

/// Result of a summary request; see [`SummaryReply::of_answer`] for a complete response.
#[derive(Clone, Debug)]
pub enum SummaryReply {
    /// The model's response.
    Response(Vec<ContentBlock>),
    /// The provider found the request too long.
    TooLong(ContextOverflow),
    /// No response; the reason.
    Failed(String),
}

impl SummaryReply {
    /// Classifies a complete response by its stop reason: an empty one cut off by a full window was too long,
    /// and a refusal is a failure.
    pub fn of_answer(blocks: Vec<ContentBlock>, stop_reason: Option<&str>) -> SummaryReply {
        match stop_reason {
            Some("refusal") => SummaryReply::Failed(String::from("the model refused to write it")),
            Some("model_context_window_exceeded") if blocks.is_empty() => {
                SummaryReply::TooLong(ContextOverflow::UNKNOWN)
            }
            Some(reason) if blocks.is_empty() => {
                SummaryReply::Failed(format!("the answer is empty and stopped with `{reason}`"))
            }
            _ => SummaryReply::Response(blocks),
        }
    }
}

/// A finished compaction.
#[derive(Clone, Debug)]
pub struct CompactionOutcome {
    /// The boundary; the caller fills in the log offsets.
    pub boundary: Boundary,
    /// Failed attempts before it.
    pub attempts: Vec<String>,
}

/// A compaction in progress.
#[derive(Clone, Debug)]
pub struct Compaction {
    order: CompactionRequest,
    limits: WindowLimits,
    place: SessionPaths,
    ways: VecDeque<SummaryMethod>,
    cut: Option<ConversationCut>,
    asked: Option<SummaryMethod>,
    /// Set if models failed too often to ask one.
    gave_up: bool,
    model_failed: bool,
    attempts: Vec<String>,
    dropped: usize,
    truncations: usize,
    /// Model for plain requests that fit its window, instead of the conversation's.
    plain_model: Option<PlainModel>,
    summary: Option<(SummaryMethod, SummarySource)>,
    restored: RestoredFiles,
}

/// A model for plain requests besides the conversation's own.
#[derive(Clone, Debug)]
struct PlainModel {
    lens: Lens,
    /// True if it is asked before the conversation's own, by any method.
    is_first: bool,
}

/// Notice that another model than the chosen one is asked.
const OWN_MODEL: &str = "the conversation's own model is asked";

/// Reason why a reply is no summary.
fn reply_problem(reply: &SummaryReply) -> Option<String> {
    match reply {
        SummaryReply::Response(blocks) => {
            summary_parser::summary(blocks).err().map(|failure| failure.to_string())
        }
        SummaryReply::Failed(message) => Some(message.clone()),
        SummaryReply::TooLong(_) => Some(String::from("the provider found it too long")),
    }
}

impl Compaction {
    /// Prepares a compaction; nothing happens yet.
    pub fn new(
        view: &View,
        order: CompactionRequest,
        limits: &WindowLimits,
        policy: &ContextPolicy,
        place: &SessionPaths,
    ) -> Compaction {
        let gave_up =
            view.state().summary_failures >= FAILURES_MAX && order.trigger != CompactionTrigger::Manual;
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
            plain_model: None,
            restored: RestoredFiles {
                budget: policy.restoration,
                line_tokens: policy.restored_line_tokens,
                requested: Vec::new(),
                read: None,
            },
            summary: None,
        }
    }

    /// Sets the model for plain requests that fit its window, instead of the conversation's.
    pub fn with_plain_lens(self, plain_lens: Option<Lens>) -> Compaction {
        let plain_model = plain_lens.map(|lens| PlainModel { lens, is_first: false });
        Compaction { plain_model, ..self }
    }

    /// Sets a model that is asked first, by a plain request, if its window holds the conversation. If it fails, the
    /// conversation's own model is asked as usual.
    pub fn with_summary_lens(mut self, lens: Option<Lens>) -> Compaction {
        let is_allowed = self.order.trigger == CompactionTrigger::Idle
            || self.order.methods.as_ref().is_none_or(|only| only.contains(&SummaryMethod::Plain));
        if let Some(lens) = lens.filter(|_| is_allowed && !self.gave_up) {
            let at = self.ways.iter().position(|way| *way != SummaryMethod::Notes).unwrap_or(self.ways.len());
            self.ways.insert(at, SummaryMethod::Plain);
            self.plain_model = Some(PlainModel { lens, is_first: true });
        }
        self
    }

    /// Returns the next step.
    pub fn next(&mut self, view: &View) -> CompactionStep {
        let conversation = CuttableConversation::of(view);
        loop {
            if let Some((how, summary)) = self.summary.take() {
                match self.finish(view, &conversation, how, summary) {
                    Some(step) => return step,
                    None => continue,
                }
            }
            let Some(how) = self.ways.pop_front() else {
                let message = match self.attempts.as_slice() {
                    [] if self.order.range != CompactionRange::Whole => {
                        String::from("the conversation cannot be split before that message")
                    }
                    [] if view.boundary().is_some() => String::from("no messages since the last compaction"),
                    [] => String::from("no messages yet"),
                    attempts => attempts.join("; "),
                };
                return CompactionStep::Failed { message, counts_as_failure: self.model_failed };
            };
            if let Some(step) = self.try_way(view, &conversation, how) {
                return step;
            }
        }
    }

    /// Receives the result of a summary request.
    pub fn receive_reply(&mut self, view: &View, reply: SummaryReply) {
        let Some(how) = self.asked.take() else { return };
        if let Some(model) = self.plain_model.take_if(|model| model.is_first)
            && let Some(why) = reply_problem(&reply)
        {
            self.attempts.push(format!("{} wrote no summary: {why}; {OWN_MODEL}", model.lens.card.model));
            return;
        }
        match reply {
            SummaryReply::Response(blocks) if how == SummaryMethod::Provider => {
                match summary_parser::provider_block(&blocks) {
                    Ok(block) => self.summary = Some((how, SummarySource::Provider(block))),
                    Err(failure) => self.failed(how, &failure.to_string()),
                }
            }
            SummaryReply::Response(blocks) => match summary_parser::summary(&blocks) {
                Ok(text) => self.summary = Some((how, SummarySource::Text(text))),
                Err(failure) => self.failed(how, &failure.to_string()),
            },
            SummaryReply::Failed(message) => self.failed(how, &message),
            SummaryReply::TooLong(overflow) => {
                self.failed(how, "the provider found it too long");
                self.shorten(view, overflow);
            }
        }
    }

    /// Receives the requested files.
    pub fn receive_files(&mut self, files: Vec<RestoredFile>) {
        self.restored.read = Some(files);
    }

    fn failed(&mut self, how: SummaryMethod, why: &str) {
        self.model_failed |= how.uses_model();
        self.attempts.push(format!("{}: {why}", how.name()));
    }

    fn budgets(&self) -> WindowBudgets {
        WindowBudgets::new(&self.limits)
    }

    /// Cut for the requested range.
    fn cut(&mut self, view: &View, conversation: &CuttableConversation<'_>) -> Option<ConversationCut> {
        let cut = match self.cut {
            Some(cut) => Some(cut),
            None => {
                let most = waiting_room(view, &self.limits, false) / view.measured_estimator().scale();
                conversation.cut_for_range(self.order.range, most)
            }
        };
        let says_something = |shown: &VisibleEntry<'_>| !matches!(shown.entry.body, EntryBody::Boundary(_));
        // Where the provider refuses even a summary, the summary itself is shortened.
        let is_urgent = self.order.trigger == CompactionTrigger::Reactive;
        let can_shorten = |shown: &VisibleEntry<'_>| is_urgent || says_something(shown);
        self.cut = cut.filter(|cut| conversation.parts(*cut).0.iter().any(can_shorten));
        self.cut
    }

    /// Starts a method; returns the step that it needs, or `None` if the loop decides next.
    fn try_way(
        &mut self,
        view: &View,
        conversation: &CuttableConversation<'_>,
        how: SummaryMethod,
    ) -> Option<CompactionStep> {
        if how == SummaryMethod::Notes {
            self.try_notes(view, conversation);
            return None;
        }
        let Some(cut) = self.cut(view, conversation) else {
            self.ways.clear();
            return None;
        };
        if cut.summarizes == CutPart::Later && !can_keep(view, conversation, cut) {
            self.attempts.push(String::from(BOTH_SIDES));
            self.ways.clear();
            return None;
        }
        let summarised = conversation.parts(cut).0;
        match how {
            SummaryMethod::Extractive => {
                let room = self.budgets().scale(OUTPUT) as usize * 2;
                self.summary = Some((how, SummarySource::Extracted { room }));
                None
            }
            SummaryMethod::Fork | SummaryMethod::Provider => self.ask_fork(view, cut, conversation, how),
            SummaryMethod::Plain if self.plain_model.as_ref().is_some_and(|model| model.is_first) => {
                self.ask_first(view, summarised)
            }
            SummaryMethod::Plain => self.ask_plain(view, summarised, 0, how),
            // The whole was already tried.
            SummaryMethod::Truncated if self.dropped == 0 => None,
            SummaryMethod::Truncated => self.ask_plain(view, summarised, self.dropped, how),
            SummaryMethod::Notes => None,
        }
    }

    fn try_notes(&mut self, view: &View, conversation: &CuttableConversation<'_>) {
        let Some(notes) = &self.order.notes else { return };
        let budgets = self.budgets();
        let (least, most) = (budgets.scale(KEPT_MIN) as f64, budgets.scale(KEPT_MAX) as f64);
        let cut = conversation.by_notes(notes, least, most);
        match (cut, notes_summary::summary(view, notes, budgets)) {
            (Some(cut), Some(text)) => {
                self.cut = Some(cut);
                self.summary = Some((SummaryMethod::Notes, SummarySource::Text(text)));
            }
            (None, _) => self.attempts.push(String::from("notes: they end before the messages in sight")),
            (_, None) => self.attempts.push(String::from("notes: they are empty")),
        }
    }

    /// Directive for the requested summary.
    fn directive(&self, view: &View, how: SummaryMethod) -> String {
        // The actual cut, which may lie before the named entry.
        let first = match (self.order.range, self.cut) {
            (CompactionRange::From(_), Some(cut)) => view.visible_entries().nth(cut.at),
            _ => None,
        };
        let first = first.and_then(|shown| shown.content()).and_then(|content| content.blocks().first());
        let begins = first.map(|block| block.string("text").unwrap_or(block.raw().as_str().into()));
        summary_prompt::directive(&summary_prompt::SummaryDirective {
            reach: self.order.range,
            begins: begins.as_deref(),
            has_earlier_summary: view.boundary().is_some(),
            instructions: self.order.instructions.as_deref(),
            is_own_wish: self.order.trigger == CompactionTrigger::Model,
            hook_instructions: self.order.hook_instructions.as_deref(),
            pins: view.state().pins.len(),
            // The provider takes the whole response for the summary.
            is_bare: how == SummaryMethod::Provider,
        })
    }

    /// Maximum prompt tokens of a summary request.
    fn prompt_room(&self, view: &View) -> u64 {
        self.limits.window.saturating_sub(self.output(view)).min(view.lens().card.prompt_limit())
    }

    fn output(&self, view: &View) -> u64 {
        self.budgets().scale(OUTPUT).min(view.lens().card.max_output)
    }

    fn ask_fork(
        &mut self,
        view: &View,
        cut: ConversationCut,
        conversation: &CuttableConversation<'_>,
        how: SummaryMethod,
    ) -> Option<CompactionStep> {
        let directive = self.directive(view, how);
        if how == SummaryMethod::Provider && directive.chars().count() > PROVIDER_INSTRUCTIONS_MAX {
            let why = format!("{}: the instructions are longer than the provider accepts", how.name());
            self.attempts.push(why);
            return None;
        }
        // Kept messages need no summary: the fork ends where the last answered request ended, and reads its cache.
        let kept = match self.order.range {
            CompactionRange::Whole | CompactionRange::UpTo(_) => conversation.shown.get(cut.at),
            CompactionRange::From(_) => None,
        };
        let earlier = kept.and_then(|kept| view.before_entry(kept.entry.id));
        let forked = earlier.as_ref().unwrap_or(view);
        let estimator = view.estimator();
        let output = self.output(view);
        let (tokens, estimated) = match kept {
            Some(kept) => prompt_before(view, forked, kept),
            None => counted(&view.size()),
        };
        let guessed = estimated + estimator.text(&directive);
        // The provider has not counted the estimated part.
        let slack = estimator.total(guessed * SLACK_PERCENT / 100.0);
        let needed = tokens + estimator.total(estimator.text(&directive)) + slack;
        let room = self.prompt_room(view);
        if needed > room {
            self.attempts.push(format!(
                "{}: {} tokens, and {} fit",
                how.name(),
                group_digits(needed),
                group_digits(room)
            ));
            return None;
        }
        let options = RenderOptions { max_tokens: output, stream: true, spell_out_unseen: false };
        let request = if how == SummaryMethod::Provider {
            let mut value = String::from(r#"{"type":"summarize","instructions":"#);
            pal_model::escape_into(&mut value, &directive);
            value.push('}');
            // It cannot be combined with other context management.
            let mut standing = self.order.params.clone();
            standing.members.retain(|(name, _)| name != "context_management");
            standing.drop_remaining_budget();
            standing.members.push(("compaction".into(), pal_model::SharedText::from(value)));
            standing.repeated(forked, options)
        } else {
            self.order.params.fork(forked, options, &directive)
        };
        self.asked = Some(how);
        Some(CompactionStep::Ask(Box::new(SummaryQuestion { method: how, card: None, request })))
    }

    /// The plain request to the other model, if one is set and its window holds all of it.
    fn other_plain(
        &self,
        view: &View,
        summarised: &[VisibleEntry<'_>],
        directive: &str,
    ) -> Option<SummaryQuestion> {
        let lens = &self.plain_model.as_ref()?.lens;
        let plain =
            plain_request::plain_view(view, lens, summarised, self.dropped, summary_prompt::PLAIN_SYSTEM);
        let max_tokens = self.budgets().scale(OUTPUT).min(lens.card.max_output);
        let room = lens.card.window.saturating_sub(max_tokens).min(lens.card.prompt_limit()) as f64;
        let estimator = plain.estimator();
        let needed = estimator.total(plain.estimate() + estimator.text(directive)) as f64;
        if needed > room * (1.0 - SLACK_PERCENT / 100.0) {
            return None;
        }
        let options = RenderOptions { max_tokens, stream: true, spell_out_unseen: false };
        let method = if self.dropped == 0 { SummaryMethod::Plain } else { SummaryMethod::Truncated };
        let card = Some(Box::new(lens.card.clone()));
        Some(SummaryQuestion { method, card, request: plain.fork(options, directive) })
    }

    /// Asks the model that goes before the conversation's own.
    fn ask_first(&mut self, view: &View, summarised: &[VisibleEntry<'_>]) -> Option<CompactionStep> {
        let directive = self.directive(view, SummaryMethod::Plain);
        match self.other_plain(view, summarised, &directive) {
            Some(question) => {
                self.asked = Some(SummaryMethod::Plain);
                Some(CompactionStep::Ask(Box::new(question)))
            }
            None => {
                if let Some(model) = self.plain_model.take() {
                    let model = model.lens.card.model;
                    self.attempts
                        .push(format!("the conversation does not fit the window of {model}; {OWN_MODEL}"));
                }
                None
            }
        }
    }

    fn ask_plain(
        &mut self,
        view: &View,
        summarised: &[VisibleEntry<'_>],
        dropped: usize,
        how: SummaryMethod,
    ) -> Option<CompactionStep> {
        let directive = self.directive(view, how);
        if let Some(question) = self.other_plain(view, summarised, &directive) {
            self.asked = Some(how);
            return Some(CompactionStep::Ask(Box::new(question)));
        }
        let output = self.output(view);
        let estimator = view.estimator();
        let room = self.prompt_room(view).saturating_sub(estimator.total(estimator.text(&directive)));
        let room = room as f64 * (1.0 - SLACK_PERCENT / 100.0);
        let mut dropped = dropped;
        let plain = loop {
            let plain = plain_request::plain_view(
                view,
                view.lens(),
                summarised,
                dropped,
                summary_prompt::PLAIN_SYSTEM,
            );
            let over = estimator.total(plain.estimate()) as f64 - room;
            if over <= 0.0 {
                break plain;
            }
            match plain_request::rounds_for(summarised, dropped, over / estimator.scale()) {
                Some(more) => dropped = more,
                None => {
                    self.attempts.push(format!("{}: the rest does not fit the window", how.name()));
                    return None;
                }
            }
        };
        // Dropping rounds is left to the next method.
        if how == SummaryMethod::Plain && dropped > 0 {
            self.attempts.push(String::from("plain: it does not fit the window"));
            self.dropped = dropped;
            return None;
        }
        self.dropped = dropped;
        let options = RenderOptions { max_tokens: output, stream: true, spell_out_unseen: false };
        self.asked = Some(how);
        Some(CompactionStep::Ask(Box::new(SummaryQuestion {
            method: how,
            card: None,
            request: plain.fork(options, &directive),
        })))
    }

    /// Drops the oldest rounds after the provider found a summary request too long: enough for the reported
    /// gap, or a fifth (§4.8).
    fn shorten(&mut self, view: &View, overflow: ContextOverflow) {
        if self.truncations == TRUNCATIONS_MAX {
            return;
        }
        self.truncations += 1;
        let conversation = CuttableConversation::of(view);
        let Some(cut) = self.cut(view, &conversation) else { return };
        let summarised = conversation.parts(cut).0;
        let estimator = view.estimator();
        let gap = match (overflow.prompt, overflow.prompt_limit()) {
            (Some(have), Some(limit)) if have > limit => (have - limit) as f64 / estimator.scale(),
            _ => summarised.iter().fold(0.0, |sum, shown| sum + shown.tokens) / 5.0,
        };
        if let Some(dropped) = plain_request::rounds_for(summarised, self.dropped, gap) {
            self.dropped = dropped;
            self.ways.retain(|way| {
                !matches!(
                    way,
                    SummaryMethod::Fork
                        | SummaryMethod::Provider
                        | SummaryMethod::Plain
                        | SummaryMethod::Truncated
                )
            });
            if self.order.methods.as_ref().is_none_or(|only| only.contains(&SummaryMethod::Truncated)) {
                self.ways.push_front(SummaryMethod::Truncated);
            }
        }
    }

    /// Builds the boundary from a summary; `None` if it is of no use and the next method must be tried.
    fn finish(
        &mut self,
        view: &View,
        conversation: &CuttableConversation<'_>,
        how: SummaryMethod,
        summary: SummarySource,
    ) -> Option<CompactionStep> {
        let cut = self.cut(view, conversation)?;
        if self.restored.read.is_none() && cut.summarizes == CutPart::Earlier {
            let (summarised, kept) = conversation.parts(cut);
            // A manual compaction soon after another one asks for less context, not the same again.
            let is_carried = self.order.trigger != CompactionTrigger::Manual;
            let wanted = restoration::select_restored(
                summarised,
                kept,
                &self.order.sources,
                self.restored.budget,
                is_carried,
            );
            if !wanted.is_empty() {
                self.restored.requested.clone_from(&wanted);
                self.summary = Some((how, summary));
                return Some(CompactionStep::ReadFiles(wanted));
            }
        }
        let material = BoundaryInputs {
            view,
            conversation,
            order: &self.order,
            limits: &self.limits,
            place: &self.place,
            restored: &self.restored,
            model_failed: self.model_failed,
        };
        match compose(&material, cut, how, &summary) {
            Ok(boundary) => {
                let mut attempts = std::mem::take(&mut self.attempts);
                if self.gave_up {
                    attempts.insert(0, String::from(GAVE_UP));
                }
                Some(CompactionStep::Done(Box::new(CompactionOutcome { boundary, attempts })))
            }
            Err(why) => {
                self.failed(how, &why);
                // Notes have their own cut.
                if how == SummaryMethod::Notes {
                    self.cut = None;
                }
                None
            }
        }
    }
}

/// Tokens of the conversation before the kept messages, and the estimated part of them. If the messages begin with the
/// newest response, this is the prompt that it answered, as the provider counted it.
fn prompt_before(view: &View, forked: &View, kept: &VisibleEntry<'_>) -> (u64, f64) {
    let size = view.size();
    match size.anchor {
        Some(anchor) if size.freed == 0 && anchor.begins_at(kept.position) => {
            (anchor.usage.prompt_tokens(), 0.0)
        }
        _ => counted(&forked.size()),
    }
}

fn counted(size: &ContextSize) -> (u64, f64) {
    (size.tokens, size.estimated)
}

/// Summary methods to try, in order (§4.2).
fn ways(
    view: &View,
    order: &CompactionRequest,
    policy: &ContextPolicy,
    gave_up: bool,
) -> VecDeque<SummaryMethod> {
    let can_provide = view.lens().card.can.provider_compaction && policy.provider_compaction;
    let by_model = if can_provide && order.range == CompactionRange::Whole {
        SummaryMethod::Provider
    } else {
        SummaryMethod::Fork
    };
    let takes_notes = order.range == CompactionRange::Whole
        && order.trigger != CompactionTrigger::Reactive
        && order.instructions.is_none()
        && order.notes.is_some();
    let mut ways: Vec<SummaryMethod> = Vec::new();
    if takes_notes {
        ways.push(SummaryMethod::Notes);
    }
    if !gave_up {
        // A request that was too long does not get shorter by a directive.
        if order.trigger != CompactionTrigger::Reactive {
            ways.push(by_model);
        }
        ways.extend([SummaryMethod::Plain, SummaryMethod::Truncated]);
    }
    ways.push(SummaryMethod::Extractive);
    if let Some(only) = &order.methods {
        ways.retain(|way| only.contains(way));
    }
    ways.into()
}
