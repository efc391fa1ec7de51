//! Suggestions for the user's next prompt: after a turn, a fork of the conversation reads its cache and predicts one line.

use std::sync::Arc;

use pal_engine::{Session, SessionConfig};
use pal_model::{ContentBlock, ModelCard, RequestSource, Timestamp};
use pal_process::CancelToken;
use pal_provider::{ExchangeEnd, ProviderConnection, RequestEncoder};

use crate::background_budget::BackgroundBudget;
use crate::background_config::BackgroundConfig;
use crate::clock::Clock;
use crate::timed_exchange::{ExchangeListener, TimedExchange};

/// Maximum tokens of the answer, with room for thinking.
const ANSWER_TOKENS: u64 = 1_024;

/// Maximum characters of a suggestion.
const SUGGESTION_CHARS_MAX: usize = 120;

/// Maximum words of a suggestion.
const WORDS_MAX: usize = 15;

/// Directive of the fork. Text for the model.
const DIRECTIVE: &str = "[This is not from the user, and your turn is over. Predict what the user will most likely type next: one \
    prompt of two to twelve words, in their language and in the way they write, that follows from the conversation, such as \
    \"run the tests\" or \"commit this\". Call no tool, judge nothing, and do not speak to the user. Answer with the prompt alone, or \
    with NONE if nothing follows by itself.]";

/// Receives a suggestion, on a thread of its own.
pub type SuggestionListener = Arc<dyn Fn(String) + Send + Sync>;

/// Suggests prompts for one session.
pub struct PromptSuggester {
    connection: Arc<ProviderConnection>,
    card: ModelCard,
    clock: Clock,
    budget: Arc<BackgroundBudget>,
    exchanges: Arc<dyn ExchangeListener>,
    suggestions: SuggestionListener,
    running: Option<CancelToken>,
}

impl PromptSuggester {
    /// Creates the suggester of a session. Its requests are reported to `exchanges`.
    pub fn new(
        config: &BackgroundConfig,
        budget: Arc<BackgroundBudget>,
        exchanges: Arc<dyn ExchangeListener>,
        suggestions: SuggestionListener,
    ) -> PromptSuggester {
        PromptSuggester {
            connection: Arc::clone(&config.model.connection),
            card: config.model.lens.card.clone(),
            clock: config.clock,
            budget,
            exchanges,
            suggestions,
            running: None,
        }
    }

    /// Starts a fork that predicts the next prompt. Nothing happens if the budget of background work is used up.
    pub fn suggest(&mut self, session: &Session, config: &SessionConfig, now: Timestamp) {
        self.cancel();
        if self.budget.may_begin(&source(), now).is_err() {
            return;
        }
        let mut fork = session.fork(config, now);
        fork.push_user_text(DIRECTIVE);
        let Some(answer_tokens) = fork.answer_room(ANSWER_TOKENS.min(self.card.max_output)) else { return };
        let request = fork.request(answer_tokens);
        let dialect = self.connection.endpoint().dialect();
        let mut encoder = RequestEncoder::new(&self.card, dialect, fork.cache_key());
        let call = encoder.encode(&request, fork.betas());
        let cancel = CancelToken::new();
        let (connection, card) = (Arc::clone(&self.connection), self.card.clone());
        let (budget, exchanges) = (Arc::clone(&self.budget), Arc::clone(&self.exchanges));
        let (suggestions, clock, stopped) = (Arc::clone(&self.suggestions), self.clock, cancel.clone());
        let work = move || {
            let timed = TimedExchange::begin(source(), &card, dialect, request.max_tokens());
            let (exchange, report) = timed.ask_in_background(&connection, call, &card, &stopped);
            if let Some(usage) = &report.usage {
                budget.record_usage(&source(), usage, report.cost, clock.now());
            }
            exchanges.report_exchange(report);
            let is_whole = matches!(exchange.end, ExchangeEnd::Finished(_)) && !stopped.is_cancelled();
            if let Some(text) = suggestion(&exchange.blocks).filter(|_| is_whole) {
                suggestions(text);
            }
        };
        // Without the thread there is no suggestion.
        if std::thread::Builder::new().name("pal-suggest".into()).spawn(work).is_ok() {
            self.running = Some(cancel);
        }
    }

    /// Cancels a suggestion that is being made: the user has typed a prompt.
    pub fn cancel(&mut self) {
        if let Some(running) = self.running.take() {
            running.cancel();
        }
    }
}

fn source() -> RequestSource {
    RequestSource::from_name("suggest")
}

/// The prompt in an answer, if it is one.
fn suggestion(blocks: &[ContentBlock]) -> Option<String> {
    let text = blocks.iter().find_map(|block| block.string("text"))?;
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.next()?.trim_matches(|letter: char| matches!(letter, '"' | '“' | '”' | '`' | '*'));
    let is_prompt = !line.is_empty()
        && lines.next().is_none()
        && !line.eq_ignore_ascii_case("none")
        && !line.contains(char::is_control)
        && line.chars().count() <= SUGGESTION_CHARS_MAX
        && line.split_whitespace().count() <= WORDS_MAX;
    is_prompt.then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggestion_is_one_short_line() {
        for (answer, expected) in [
            ("run the tests", Some("run the tests")),
            ("\n \"commit this\"\n", Some("commit this")),
            ("NONE", None),
            ("none", None),
            ("", None),
            ("Here is one:\nrun the tests", None),
            ("run\u{1b}[31m the tests", None),
            (&"very ".repeat(40), None),
        ] {
            assert_eq!(suggestion(&[ContentBlock::text(answer)]).as_deref(), expected, "{answer}");
        }
        assert_eq!(suggestion(&[]), None);
    }
}
