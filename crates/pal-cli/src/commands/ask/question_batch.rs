//! Several questions at once: staggered until their common prefix is in the provider's cache, answered in order.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pal_model::text::count_noun;
use pal_model::{BlockType, Usage};
use pal_provider::{CompleteAnswer, ProviderClient, RequestStagger};
use pal_report::{DEFAULT_COLUMNS, clip_line, format_usage, sanitize, sanitize_lines};
use pal_wire::ApiCall;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{AnswerUpdate, QuestionBatch, answer, show_block};
use crate::failure::Failure;
use crate::notices::print_notice;
use crate::terminal_style::bold;

/// Maximum questions in flight: more would exceed the rate limits of most accounts.
const IN_FLIGHT_MAX: usize = 8;

impl QuestionBatch<'_> {
    /// Asks all questions and shows each answer as soon as those before it are shown. A failed question does not stop the others.
    pub(super) async fn several(
        &self,
        client: &ProviderClient,
        calls: Vec<ApiCall>,
        json: bool,
        out: &mut dyn Write,
    ) -> Result<ExitCode, Failure> {
        let (stagger, slots) = (RequestStagger::default(), Arc::new(Semaphore::new(IN_FLIGHT_MAX)));
        let mut asked = JoinSet::new();
        for (at, call) in calls.into_iter().enumerate() {
            let (client, stagger, slots) = (client.clone(), stagger.clone(), Arc::clone(&slots));
            let shared = self.shared(at);
            asked.spawn(async move {
                let _slot = slots.acquire_owned().await;
                (at, answer_in_turn(&client, call, at, shared, &stagger).await)
            });
        }
        let mut answers: Vec<Option<Result<CompleteAnswer, Failure>>> =
            self.questions.iter().map(|_| None).collect();
        let (mut shown, mut total) = (0, AnswerTotals::default());
        while let Some(done) = asked.join_next().await {
            let (at, answer) = done.map_err(|error| Failure::new(format!("a question: {error}")))?;
            answers[at] = Some(answer);
            while let Some(Some(answer)) = answers.get(shown) {
                self.show(shown, answer, json, out)?;
                total.add(self, answer);
                shown += 1;
            }
        }
        if !json {
            total.print_totals();
        }
        Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(crate::exit_codes::ERROR) })
    }

    /// Returns the fingerprint of the prefix that a question shares with others and its lifetime; none if it is not cached.
    fn shared(&self, at: usize) -> Option<(u128, Duration)> {
        let fork = &self.forks[at];
        let mark = fork.breakpoints().first()?;
        Some((fork.shared_fingerprint(), Duration::from_millis(mark.ttl.milliseconds())))
    }

    fn show(
        &self,
        at: usize,
        answer: &Result<CompleteAnswer, Failure>,
        json: bool,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let question = &self.questions[at];
        match (answer, json) {
            (Ok(whole), true) => writeln!(out, "{}", self.json(question, whole))?,
            (Err(failure), true) => {
                let error = match failure {
                    Failure::Error { what, .. } | Failure::Usage { what, .. } => what.clone(),
                    Failure::OutputClosed => failure.to_string(),
                };
                let object = json!({"question": question, "error": error});
                writeln!(out, "{object}")?;
            }
            (answer, false) => {
                let gap = if at == 0 { "" } else { "\n" };
                let heading = clip_line(&format!("{}. {}", at + 1, sanitize(question)), DEFAULT_COLUMNS - 1);
                writeln!(out, "{gap}{}\n", bold(&heading))?;
                let blocks = answer.as_ref().map(|whole| whole.blocks.as_slice()).unwrap_or_default();
                for block in blocks {
                    if let (BlockType::Text, Some(text)) = (block.kind(), block.string("text")) {
                        write!(out, "{}", sanitize_lines(&text))?;
                    }
                    show_block(block, out)?;
                }
                out.flush()?;
                match answer {
                    Ok(whole) => self.tell_end(whole, &format!("{}. ", at + 1)),
                    Err(failure) => eprintln!("{failure}"),
                }
            }
        }
        Ok(out.flush()?)
    }
}

/// Answers one of several questions, after its turn has come.
async fn answer_in_turn(
    client: &ProviderClient,
    call: ApiCall,
    at: usize,
    shared: Option<(u128, Duration)>,
    stagger: &RequestStagger,
) -> Result<CompleteAnswer, Failure> {
    let mut pass = match shared {
        Some((print, lifetime)) => Some(stagger.acquire(print, lifetime).await),
        None => None,
    };
    let (mut attempt, mut has_begun) = (0, false);
    answer(client, call, |told| {
        match told {
            AnswerUpdate::Waiting(wait) if wait.attempt != attempt => {
                attempt = wait.attempt;
                let why = sanitize(&wait.failure.message);
                print_notice(format_args!(
                    "question {}: {why}: attempt {attempt} of {}",
                    at + 1,
                    wait.max_attempts
                ));
            }
            AnswerUpdate::Waiting(_) => {}
            _ if !std::mem::replace(&mut has_begun, true) => {
                if let Some(pass) = &mut pass {
                    pass.mark_begun();
                }
            }
            _ => {}
        }
        Ok(())
    })
    .await
}

/// Usage and cost of all answers.
#[derive(Default)]
struct AnswerTotals {
    answered: usize,
    failed: usize,
    usage: Usage,
    cost: Option<f64>,
}

impl AnswerTotals {
    fn add(&mut self, batch: &QuestionBatch<'_>, answer: &Result<CompleteAnswer, Failure>) {
        let Ok(whole) = answer else {
            self.failed += 1;
            return;
        };
        let usage = &whole.finished.usage;
        self.answered += 1;
        self.usage.input_tokens += usage.input_tokens;
        self.usage.cache_read_input_tokens += usage.cache_read_input_tokens;
        self.usage.cache_creation_input_tokens += usage.cache_creation_input_tokens;
        self.usage.output_tokens += usage.output_tokens;
        if let Some(cost) = batch.card.cost(usage) {
            self.cost = Some(self.cost.unwrap_or_default() + cost);
        }
    }

    fn print_totals(&self) {
        let failed = if self.failed == 0 { String::new() } else { format!(", {} failed", self.failed) };
        let answers = count_noun(self.answered, "answer");
        eprintln!("{answers}{failed}: {}", format_usage(&self.usage, self.cost));
    }
}
