//! Several questions at once: staggered until what they share is in the provider's cache, shown in their order.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pal_model::{BlockType, Usage};
use pal_provider::{Client, Stagger, Whole};
use pal_wire::Call;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{Desk, Told, answer, show_block};
use crate::aside;
use crate::colour::{COLUMNS, clipped};
use crate::failure::Failure;
use crate::table::{bold, counted, harmless, harmless_lines, usage_line};

/// Most questions that are on their way at once: more than that runs into the limits of most accounts.
const AT_ONCE: usize = 8;

impl Desk<'_> {
    /// Asks all questions and shows each answer as soon as those before it are shown. A question that fails does not
    /// keep the others from being answered.
    pub(super) async fn several(
        &self,
        client: &Client,
        calls: Vec<Call>,
        json: bool,
        out: &mut dyn Write,
    ) -> Result<ExitCode, Failure> {
        let (stagger, slots) = (Stagger::default(), Arc::new(Semaphore::new(AT_ONCE)));
        let mut asked = JoinSet::new();
        for (at, call) in calls.into_iter().enumerate() {
            let (client, stagger, slots) = (client.clone(), stagger.clone(), Arc::clone(&slots));
            let shared = self.shared(at);
            asked.spawn(async move {
                let _slot = slots.acquire_owned().await;
                (at, waited_for(&client, call, at, shared, &stagger).await)
            });
        }
        let mut answers: Vec<Option<Result<Whole, Failure>>> = self.questions.iter().map(|_| None).collect();
        let (mut shown, mut total) = (0, Total::default());
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
            total.tell();
        }
        Ok(if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// The print of what a question shares with others, and for how long that is kept; none if it is not cached.
    fn shared(&self, at: usize) -> Option<(u128, Duration)> {
        let fork = &self.forks[at];
        let mark = fork.marks().first()?;
        Some((fork.shared_print(), Duration::from_millis(mark.lifetime.milliseconds())))
    }

    fn show(
        &self,
        at: usize,
        answer: &Result<Whole, Failure>,
        json: bool,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let question = &self.questions[at];
        match (answer, json) {
            (Ok(whole), true) => writeln!(out, "{}", self.json(question, whole))?,
            (Err(failure), true) => {
                let error = match failure {
                    Failure::Said { what, .. } | Failure::WrongUse { what, .. } => what.clone(),
                    Failure::ReaderLeft => failure.to_string(),
                };
                let object = json!({"question": question, "error": error});
                writeln!(out, "{object}")?;
            }
            (answer, false) => {
                let gap = if at == 0 { "" } else { "\n" };
                let heading = clipped(&format!("{}. {}", at + 1, harmless(question)), COLUMNS - 1);
                writeln!(out, "{gap}{}\n", bold(&heading))?;
                let blocks = answer.as_ref().map(|whole| whole.blocks.as_slice()).unwrap_or_default();
                for block in blocks {
                    if let (BlockType::Text, Some(text)) = (block.kind(), block.string("text")) {
                        write!(out, "{}", harmless_lines(&text))?;
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

/// The answer to one question of several, which waits for its turn.
async fn waited_for(
    client: &Client,
    call: Call,
    at: usize,
    shared: Option<(u128, Duration)>,
    stagger: &Stagger,
) -> Result<Whole, Failure> {
    let mut pass = match shared {
        Some((print, lifetime)) => Some(stagger.enter(print, lifetime).await),
        None => None,
    };
    let (mut attempt, mut has_begun) = (0, false);
    answer(client, call, |told| {
        match told {
            Told::Waiting(wait) if wait.attempt != attempt => {
                attempt = wait.attempt;
                let why = harmless(&wait.failure.message);
                aside::tell(format_args!("question {}: {why}: attempt {attempt} of {}", at + 1, wait.of));
            }
            Told::Waiting(_) => {}
            _ if !std::mem::replace(&mut has_begun, true) => {
                if let Some(pass) = &mut pass {
                    pass.begun();
                }
            }
            _ => {}
        }
        Ok(())
    })
    .await
}

/// What all answers took together.
#[derive(Default)]
struct Total {
    answered: usize,
    failed: usize,
    usage: Usage,
    cost: Option<f64>,
}

impl Total {
    fn add(&mut self, desk: &Desk<'_>, answer: &Result<Whole, Failure>) {
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
        if let Some(cost) = desk.card.cost(usage) {
            self.cost = Some(self.cost.unwrap_or_default() + cost);
        }
    }

    fn tell(&self) {
        let failed = if self.failed == 0 { String::new() } else { format!(", {} failed", self.failed) };
        let answers = counted(self.answered, "answer");
        eprintln!("{answers}{failed}: {}", usage_line(&self.usage, self.cost));
    }
}
