//! Budget of background work (§8.9, §10.9): tokens per day over all processes of a user, and nothing while the
//! provider's rate limit is nearly exhausted.
//!
//! Usage is recorded under the home at once, one line per response, so that it survives a kill and other
//! processes see it. Running work may finish when the budget is exhausted; its turns are bounded.

mod background_ledger;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pal_model::{RequestSource, Timestamp, Usage, UsageBasis};
use pal_provider::ProviderConnection;

pub use background_ledger::{BackgroundLedger, BackgroundRun, read_background_ledger};
use background_ledger::{LedgerEntry, LedgerEvent};

/// Minimum share of the provider's rate limit that must be left to start background work.
const LEFT_MIN: f64 = 0.25;

/// Budget and ledger of background work.
#[derive(Debug)]
pub struct BackgroundBudget {
    home: PathBuf,
    tokens_per_day: u64,
    /// Session that the work is for; empty for none.
    session: String,
    line: Arc<ProviderConnection>,
    /// Tokens that could not be recorded; they count for this process.
    unbooked: AtomicU64,
}

impl BackgroundBudget {
    /// Creates the budget of a session. `home` contains the ledger of all sessions.
    pub fn new(
        home: &Path,
        tokens_per_day: u64,
        session: &str,
        line: Arc<ProviderConnection>,
    ) -> BackgroundBudget {
        let unbooked = AtomicU64::new(0);
        BackgroundBudget {
            home: home.to_owned(),
            tokens_per_day,
            session: session.to_owned(),
            line,
            unbooked,
        }
    }

    /// Allows work of a source to start, or returns the reason against it for the user.
    pub fn may_begin(&self, source: &RequestSource, now: Timestamp) -> Result<(), String> {
        let source = source.as_str();
        if let Some(limit) = self.line.rate_limit().filter(|limit| limit.remaining_share < LEFT_MIN) {
            let (left, of) = (100.0 * limit.remaining_share, limit.resource.replace('-', " "));
            return Err(format!(
                "{source}: not now, because {left:.0} % are left of the {of} that the provider allows"
            ));
        }
        let most = self.tokens_per_day;
        let taken = background_ledger::taken(&self.home, now)
            .map_err(|error| format!("{source}: the books of background work cannot be read: {error}"))?
            .saturating_add(self.unbooked.load(Ordering::Relaxed));
        if taken >= most {
            return Err(format!(
                "{source}: no more today, because background work took {taken} of {most} tokens a day \
                 (setting `background_tokens_daily`)"
            ));
        }
        Ok(())
    }

    /// Records a response. One that cannot be recorded is logged and counts for this process.
    /// A simulated response costs nothing and is not recorded.
    pub fn record_usage(&self, source: &RequestSource, usage: &Usage, cost: Option<f64>, now: Timestamp) {
        if usage.basis == UsageBasis::Simulated {
            return;
        }
        let counted = counted(usage);
        let happened = LedgerEvent::Asked {
            counted,
            prompt: usage.prompt_tokens(),
            cached: usage.cache_read_input_tokens,
            output: usage.output_tokens,
            cost_usd: cost,
        };
        if !self.book(source, happened, now) {
            self.unbooked.fetch_add(counted, Ordering::Relaxed);
        }
    }

    /// Records the end of a run and the files that it wrote.
    pub fn ended(&self, source: &RequestSource, wrote: &[String], now: Timestamp) {
        self.book(source, LedgerEvent::Ended { wrote: wrote.to_vec() }, now);
    }

    fn book(&self, source: &RequestSource, happened: LedgerEvent, now: Timestamp) -> bool {
        let booked = LedgerEntry {
            at: now,
            source: source.as_str().to_owned(),
            session: self.session.clone(),
            process: std::process::id(),
            happened,
        };
        let written = background_ledger::book(&self.home, &booked);
        if let Err(error) = &written {
            tracing::warn!(%error, source = source.as_str(), "background work could not be booked");
        }
        written.is_ok()
    }
}

/// Budget tokens of a response: cache reads count one tenth, like their price.
fn counted(usage: &Usage) -> u64 {
    let new = usage.input_tokens.saturating_add(usage.cache_creation_input_tokens);
    new.saturating_add(usage.output_tokens).saturating_add(usage.cache_read_input_tokens / 10)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use pal_model::ChunkedText;
    use pal_process::CancelToken;
    use pal_provider::{ClientPolicy, ProviderEndpoint};
    use pal_wire::{ApiCall, Dialect};

    use super::*;

    fn line() -> Arc<ProviderConnection> {
        line_to("http://127.0.0.1:9")
    }

    fn line_to(address: &str) -> Arc<ProviderConnection> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let endpoint = ProviderEndpoint::new(Dialect::Messages, address, None).unwrap();
        Arc::new(ProviderConnection::new(runtime, endpoint, ClientPolicy::patient()).unwrap())
    }

    fn usage(cached: u64, new: u64, output: u64) -> Usage {
        Usage {
            input_tokens: new,
            cache_read_input_tokens: cached,
            output_tokens: output,
            ..Usage::default()
        }
    }

    fn noon() -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn the_daily_budget_is_shared_by_all_processes() {
        let home = tempfile::tempdir().unwrap();
        let (notes, dream) = (RequestSource::from_name("notes"), RequestSource::from_name("dream"));
        let one = BackgroundBudget::new(home.path(), 1_000, "one", line());
        let other = BackgroundBudget::new(home.path(), 1_000, "other", line());
        assert_eq!(one.may_begin(&notes, noon()), Ok(()));
        one.record_usage(&notes, &usage(6_000, 200, 199), Some(0.01), noon());
        assert_eq!(other.may_begin(&dream, noon()), Ok(()), "999 of 1 000");
        other.record_usage(&dream, &usage(0, 0, 1), None, noon());
        for allowance in [&one, &other] {
            let why = allowance.may_begin(&dream, noon()).unwrap_err();
            assert!(why.contains("1000 of 1000") && why.contains("background_tokens_daily"), "{why}");
        }
        let tomorrow = noon().after(Duration::from_secs(12 * 60 * 60));
        assert_eq!(one.may_begin(&notes, tomorrow), Ok(()));
        let none = BackgroundBudget::new(home.path(), 0, "one", line());
        assert!(none.may_begin(&notes, tomorrow).is_err(), "none at all");
    }

    #[test]
    fn nothing_begins_while_less_than_a_quarter_of_the_provider_s_limit_is_left() {
        let home = tempfile::tempdir().unwrap();
        for (left, may) in [("250", true), ("249", false)] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = format!("http://{}", listener.local_addr().unwrap());
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = [0; 4096];
                let _ = stream.read(&mut head).unwrap();
                let answer = format!(
                    "HTTP/1.1 400 X\r\nanthropic-ratelimit-output-tokens-limit: 1000\r\n\
                     anthropic-ratelimit-output-tokens-remaining: {left}\r\n\
                     content-length: 2\r\nconnection: close\r\n\r\n{{}}"
                );
                stream.write_all(answer.as_bytes()).unwrap();
            });
            let line = line_to(&address);
            let allowance = BackgroundBudget::new(home.path(), 1_000, "one", Arc::clone(&line));
            assert_eq!(
                allowance.may_begin(&RequestSource::from_name("notes"), noon()),
                Ok(()),
                "nothing is known yet"
            );
            let (headers, body) = (Vec::new(), ChunkedText::from(String::from("{}")));
            let call =
                ApiCall { dialect: Dialect::Messages, path: "/v1/messages", headers, body, stream: true };
            line.exchange(call, &CancelToken::new(), &mut |_| {});
            server.join().unwrap();
            let answer = allowance.may_begin(&RequestSource::from_name("notes"), noon());
            assert_eq!(answer.is_ok(), may, "{answer:?}");
            if let Err(why) = answer {
                assert!(why.contains("25 % are left of the output tokens"), "{why}");
            }
        }
    }

    #[test]
    fn the_ledger_survives_truncated_lines() {
        let home = tempfile::tempdir().unwrap();
        let notes = RequestSource::from_name("notes");
        let allowance = BackgroundBudget::new(home.path(), 10_000, "one", line());
        allowance.record_usage(&notes, &usage(100, 10, 5), Some(0.5), noon());
        allowance.ended(&notes, &[String::from("notes.md")], noon());
        let file = home.path().join("background/2026-11-15.jsonl");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let mut text = std::fs::read_to_string(&file).unwrap();
        text.push_str("{\"at\":\"2026-11-15T12:00:00");
        std::fs::write(&file, text).unwrap();
        allowance.record_usage(&notes, &usage(100, 20, 5), None, noon());
        let later = noon().after(Duration::from_secs(60));
        allowance.record_usage(&notes, &usage(0, 30, 5), Some(0.25), later);
        let BackgroundLedger { runs, unreadable } = read_background_ledger(home.path()).unwrap();
        assert_eq!((runs.len(), unreadable), (2, 1));
        let first = &runs[0];
        assert_eq!((first.day.as_str(), first.requests, first.counted), ("2026-11-15", 1, 25));
        assert_eq!((first.wrote.as_slice(), first.is_over), (&[String::from("notes.md")][..], true));
        let second = &runs[1];
        assert_eq!((second.requests, second.prompt, second.cached), (2, 150, 100));
        assert_eq!((second.cost_usd, second.is_over, second.begun), (Some(0.25), false, noon()));
        assert_eq!(background_ledger::taken(home.path(), noon()).unwrap(), 25 + 35 + 35);
    }

    #[test]
    fn unrecorded_usage_counts_and_an_unreadable_ledger_stops_work() {
        let home = tempfile::tempdir().unwrap();
        let notes = RequestSource::from_name("notes");
        let allowance = BackgroundBudget::new(home.path(), 100, "one", line());
        std::fs::create_dir_all(home.path().join("background/2026-11-15.jsonl")).unwrap();
        allowance.record_usage(&notes, &usage(0, 100, 0), None, noon());
        assert!(allowance.may_begin(&notes, noon()).unwrap_err().contains("cannot be read"));
        std::fs::remove_dir(home.path().join("background/2026-11-15.jsonl")).unwrap();
        assert!(allowance.may_begin(&notes, noon()).unwrap_err().contains("100 of 100"));
    }
}
