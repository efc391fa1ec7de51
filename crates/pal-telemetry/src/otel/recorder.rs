//! Converts events into spans and metrics. Conversation content is recorded only if the user opts in.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pal_events::{AgentEvent, ExchangeReport, PromptEnd, PromptResult, SessionInfo};
use pal_model::{Boundary, CacheBreak, LogEntry, ToolUseId};
use pal_secrets::mask_secrets;
use smol_str::SmolStr;
use uuid::Uuid;

use super::entry_text::{MessageParts, truncate_text};
use super::meter::{MetricLabel, MetricMeter};
use super::metric_counts::{count, count_denial, count_tool};
use super::names as n;
use super::wire::{
    AnyValue, Attributes, CLIENT, ERROR, INTERNAL, KeyValue, List, Span, SpanEvent, Status, Value, attribute,
    text, whole,
};

/// Most events that the span of one prompt has; the figures know of all of them.
const SPAN_EVENTS_MAX: usize = 128;

/// Where spans go.
pub(super) type SpanSink<'a> = &'a mut dyn FnMut(Span);

/// Converter of events, with the open spans.
#[derive(Debug)]
pub(super) struct SpanRecorder {
    with_content: bool,
    conversation: String,
    model: SmolStr,
    run: Option<PromptTrace>,
    tools: HashMap<ToolUseId, ToolCallStart>,
    /// Messages since the last response.
    heard: Vec<MessageParts>,
    /// The last answer, which waits for its words.
    chat: Option<Span>,
}

/// A prompt that is worked on.
#[derive(Debug)]
struct PromptTrace {
    trace: Vec<u8>,
    span: Vec<u8>,
    begun: SystemTime,
    events: Vec<SpanEvent>,
}

#[derive(Debug)]
struct ToolCallStart {
    begun: SystemTime,
    input: Option<String>,
}

impl SpanRecorder {
    pub(super) fn new(with_content: bool) -> SpanRecorder {
        SpanRecorder {
            with_content,
            conversation: String::new(),
            model: SmolStr::default(),
            run: None,
            tools: HashMap::new(),
            heard: Vec::new(),
            chat: None,
        }
    }

    /// Something happened.
    pub(super) fn event(&mut self, event: &AgentEvent, meter: &mut MetricMeter, send: SpanSink<'_>) {
        match event {
            AgentEvent::SessionStarted(began) => self.record_session_start(began, meter),
            AgentEvent::Message { entry, .. } => {
                self.run();
                self.message(entry);
            }
            AgentEvent::ExchangeEnded(exchanged) => self.record_exchange(exchanged, meter, send),
            AgentEvent::ToolStarted { call, input, .. } => {
                self.run();
                let input = self.with_content.then(|| truncate_text(input.clone()));
                self.tools.insert(call.clone(), ToolCallStart { begun: SystemTime::now(), input });
            }
            AgentEvent::ToolEnded { call, name, is_error, took, bytes } => {
                let mut span = self.tool_span(call, name, *took);
                span.attributes.push(whole(n::RESULT_BYTES, *bytes));
                if *is_error {
                    fail(&mut span, "tool_error");
                }
                count_tool(name, *is_error, *took, meter);
                send(span);
            }
            AgentEvent::Compacted(boundary) => self.record_compaction(boundary, meter),
            AgentEvent::CacheBroken(found) => self.record_cache_break(found, meter),
            AgentEvent::Ended(ended) => self.record_prompt_end(ended, meter, send),
            AgentEvent::Text(_)
            | AgentEvent::Thinking(_)
            | AgentEvent::Progress(_)
            | AgentEvent::AnswerDiscarded { .. }
            | AgentEvent::Waiting { .. } => {}
            AgentEvent::ToolPrinted { .. } | AgentEvent::SubagentActivity { .. } | AgentEvent::Mode(_) => {}
            AgentEvent::ColdTurn { .. } | AgentEvent::Alarm { .. } => {}
            AgentEvent::Notice(_) | AgentEvent::Warning(_) | AgentEvent::Compacting { .. } => {}
        }
    }

    /// Ends all open spans.
    pub(super) fn finish(&mut self, send: SpanSink<'_>) {
        self.send_chat(send);
        if let Some(run) = self.run.take() {
            let mut span = self.run_span(run);
            fail(&mut span, "unfinished");
            send(span);
        }
    }

    fn record_session_start(&mut self, began: &SessionInfo, meter: &mut MetricMeter) {
        self.conversation.clone_from(&began.session_id);
        self.model.clone_from(&began.model);
        meter.add(&n::SESSIONS, 1.0, [(n::RESUMED, MetricLabel::from(began.is_resumed))]);
    }

    /// The prompt that is worked on.
    fn run(&mut self) -> &mut PromptTrace {
        self.run.get_or_insert_with(|| PromptTrace {
            trace: Uuid::new_v4().into_bytes().to_vec(),
            span: span_id(),
            begun: SystemTime::now(),
            events: Vec::new(),
        })
    }

    fn message(&mut self, entry: &LogEntry) {
        if !self.with_content {
            return;
        }
        match MessageParts::of(entry) {
            Some(MessageParts::Model(words)) => {
                if let Some(chat) = &mut self.chat {
                    chat.attributes.push(text_attribute(
                        n::OUTPUT_MESSAGES,
                        MessageParts::messages(&[MessageParts::Model(words)]),
                    ));
                }
            }
            Some(said) => self.heard.push(said),
            None => {}
        }
    }

    fn record_exchange(&mut self, exchanged: &ExchangeReport, meter: &mut MetricMeter, send: SpanSink<'_>) {
        self.send_chat(send);
        count(exchanged, meter);
        let name = format!("{} {}", n::CHAT, exchanged.model);
        let mut span = self.span(name, CLIENT, exchanged.took);
        span.attributes = chat_attributes(exchanged, &self.conversation);
        if let Some(why) = exchanged.failed {
            fail(&mut span, why);
        }
        if self.with_content && exchanged.source.is_conversation() {
            let heard = std::mem::take(&mut self.heard);
            span.attributes.push(text_attribute(n::INPUT_MESSAGES, MessageParts::messages(&heard)));
            self.chat = Some(span);
        } else {
            send(span);
        }
    }

    fn send_chat(&mut self, send: SpanSink<'_>) {
        if let Some(span) = self.chat.take() {
            send(span);
        }
    }

    fn tool_span(&mut self, call: &ToolUseId, name: &str, took: Duration) -> Span {
        let called = self.tools.remove(call);
        let mut span = self.span(format!("{} {name}", n::EXECUTE_TOOL), INTERNAL, took);
        span.attributes = vec![
            text(n::OPERATION, n::EXECUTE_TOOL),
            text(n::TOOL, name),
            text(n::TOOL_CALL, call.as_str()),
            text(n::TOOL_TYPE, "function"),
            text(n::CONVERSATION, self.conversation.as_str()),
        ];
        if let Some(ToolCallStart { begun, input }) = called {
            span.start_time_unix_nano = nanoseconds(begun).min(span.end_time_unix_nano);
            span.attributes.extend(input.map(|input| text_attribute(n::TOOL_ARGUMENTS, input)));
        }
        span
    }

    /// A part of the prompt that is worked on, which ends now.
    fn span(&mut self, name: String, kind: i32, took: Duration) -> Span {
        let now = SystemTime::now();
        let run = self.run();
        Span {
            trace_id: run.trace.clone(),
            span_id: span_id(),
            parent_span_id: run.span.clone(),
            name,
            kind,
            start_time_unix_nano: nanoseconds(now.checked_sub(took).unwrap_or(now)),
            end_time_unix_nano: nanoseconds(now),
            ..Span::default()
        }
    }

    fn record_compaction(&mut self, boundary: &Boundary, meter: &mut MetricMeter) {
        let labels = [
            (n::HOW, MetricLabel::from(boundary.method.as_str())),
            (n::TRIGGER, MetricLabel::from(boundary.trigger.as_str())),
        ];
        meter.add(&n::COMPACTIONS, 1.0, labels);
        let mut attributes =
            vec![text(n::HOW, boundary.method.as_str()), text(n::TRIGGER, boundary.trigger.as_str())];
        attributes.extend(boundary.tokens_before.map(|tokens| whole(n::TOKENS_BEFORE, tokens)));
        attributes.extend(boundary.tokens_after.map(|tokens| whole(n::TOKENS_AFTER, tokens)));
        self.note(n::EVENT_COMPACTION, attributes);
    }

    fn record_cache_break(&mut self, found: &CacheBreak, meter: &mut MetricMeter) {
        let cause = found.cause.name();
        meter.add(&n::BREAKS, 1.0, [(n::CAUSE, MetricLabel::from(cause))]);
        self.note(n::EVENT_CACHE_BREAK, vec![text(n::CAUSE, cause), whole(n::TOKENS, found.tokens)]);
    }

    /// Something happened at a moment of the prompt.
    fn note(&mut self, name: &str, attributes: Attributes) {
        let run = self.run();
        if run.events.len() < SPAN_EVENTS_MAX {
            let time_unix_nano = nanoseconds(SystemTime::now());
            run.events.push(SpanEvent { time_unix_nano, name: name.to_owned(), attributes });
        }
    }

    fn record_prompt_end(&mut self, ended: &PromptResult, meter: &mut MetricMeter, send: SpanSink<'_>) {
        self.send_chat(send);
        self.heard.clear();
        self.tools.clear();
        for denial in &ended.denials {
            count_denial(&denial.tool_name, meter);
        }
        self.run();
        let Some(run) = self.run.take() else { return };
        let mut span = self.run_span(run);
        let took = u64::try_from(ended.took.as_nanos()).unwrap_or(u64::MAX);
        span.start_time_unix_nano = span.end_time_unix_nano.saturating_sub(took);
        let spent = &ended.spent;
        let cached = spent.cache_creation_input_tokens.saturating_add(spent.cache_read_input_tokens);
        span.attributes.extend([
            whole(n::INPUT_TOKENS, spent.input_tokens.saturating_add(cached)),
            whole(n::OUTPUT_TOKENS, spent.output_tokens),
            whole(n::CACHE_READ_TOKENS, spent.cache_read_input_tokens),
            whole(n::CACHE_WRITE_TOKENS, spent.cache_creation_input_tokens),
            attribute(n::COST, Value::Fraction(spent.cost)),
            whole(n::TURNS, ended.turns),
            whole(n::DENIALS, ended.denials.len() as u64),
            text(n::END, ended.end.name()),
        ]);
        if matches!(ended.end, PromptEnd::Failed(_)) {
            fail(&mut span, ended.end.name());
        }
        send(span);
    }

    fn run_span(&self, run: PromptTrace) -> Span {
        Span {
            trace_id: run.trace,
            span_id: run.span,
            name: format!("{} pal", n::INVOKE_AGENT),
            kind: INTERNAL,
            start_time_unix_nano: nanoseconds(run.begun),
            end_time_unix_nano: nanoseconds(SystemTime::now()),
            attributes: vec![
                text(n::OPERATION, n::INVOKE_AGENT),
                text(n::AGENT, "pal"),
                text(n::CONVERSATION, self.conversation.as_str()),
                text(n::REQUEST_MODEL, self.model.as_str()),
            ],
            events: run.events,
            ..Span::default()
        }
    }
}

fn chat_attributes(exchanged: &ExchangeReport, conversation: &str) -> Attributes {
    let mut attributes = vec![
        text(n::OPERATION, n::CHAT),
        text(n::PROVIDER, exchanged.provider),
        text(n::CONVERSATION, conversation),
        text(n::REQUEST_MODEL, exchanged.model.as_str()),
        whole(n::REQUEST_MAX_TOKENS, exchanged.max_tokens),
        text(n::SOURCE, exchanged.source.as_str()),
    ];
    if let Some((id, model)) = &exchanged.answered {
        attributes.extend([text(n::RESPONSE_ID, id.as_str()), text(n::RESPONSE_MODEL, model.as_str())]);
    }
    if let Some(reason) = &exchanged.stop_reason {
        let values = vec![AnyValue::from(Value::Text(reason.to_string()))];
        attributes.push(attribute(n::FINISH_REASONS, Value::List(List { values })));
    }
    if let Some(usage) = &exchanged.usage {
        attributes.extend([
            whole(n::INPUT_TOKENS, usage.prompt_tokens()),
            whole(n::OUTPUT_TOKENS, usage.output_tokens),
            whole(n::CACHE_READ_TOKENS, usage.cache_read_input_tokens),
            whole(n::CACHE_WRITE_TOKENS, usage.cache_creation_input_tokens),
        ]);
    }
    attributes.extend(exchanged.cost.map(|cost| attribute(n::COST, Value::Fraction(cost))));
    let started =
        exchanged.took_to_start.map(|took| attribute(n::FIRST, Value::Fraction(took.as_secs_f64())));
    attributes.extend(started);
    attributes
}

/// Message content as an attribute, with secrets masked: it leaves the machine.
fn text_attribute(key: &str, words: impl Into<String>) -> KeyValue {
    let words: String = words.into();
    text(key, mask_secrets(&words).text)
}

/// Marks a span as failed with a fixed word, because error messages may quote content.
fn fail(span: &mut Span, why: &str) {
    span.status = Some(Status { code: ERROR });
    span.attributes.push(text(n::ERROR_TYPE, why));
}

fn span_id() -> Vec<u8> {
    Uuid::new_v4().as_bytes()[..8].to_vec()
}

/// A moment as the protocol counts.
pub(super) fn nanoseconds(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
