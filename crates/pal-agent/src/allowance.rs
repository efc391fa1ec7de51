//! What background work may take (§8.9, §10.9): so many tokens a day for all processes of a user together, and nothing while the
//! provider's own limit is nearly used up.
//!
//! Everything that was taken is booked under the home at once, one line for each answer, so that neither a kill nor another
//! process makes it unknown. Runs that are under way when the day's tokens are used up go on to their end, which is bounded
//! by their turns.

mod books;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pal_model::{Source, Timestamp, Usage};

use crate::line::Line;

pub use books::{Background, BackgroundRun, background};
use books::{Booked, Happened};

/// Below this share of the provider's limit nothing is begun in the background: what is left is the conversation's.
const LEFT_LEAST: f64 = 0.25;

/// The limits of background work, and the books about it.
#[derive(Debug)]
pub struct Allowance {
    home: PathBuf,
    tokens_per_day: u64,
    /// For which session the work is done; empty if for none.
    session: String,
    line: Arc<Line>,
    /// What could not be booked. It counts all the same as long as this process lives.
    unbooked: AtomicU64,
}

impl Allowance {
    /// The limits of what is done in the background for a session, over a line. `home` has the books of all sessions.
    pub fn new(home: &Path, tokens_per_day: u64, session: &str, line: Arc<Line>) -> Allowance {
        let unbooked = AtomicU64::new(0);
        Allowance { home: home.to_owned(), tokens_per_day, session: session.to_owned(), line, unbooked }
    }

    /// Whether work of a source may begin now; else why not, in words for the user.
    pub fn may_begin(&self, source: &Source, now: Timestamp) -> Result<(), String> {
        let source = source.as_str();
        if let Some(limit) = self.line.rate_limit().filter(|limit| limit.left < LEFT_LEAST) {
            let (left, of) = (100.0 * limit.left, limit.of.replace('-', " "));
            return Err(format!(
                "{source}: not now, because {left:.0} % are left of the {of} that the provider allows"
            ));
        }
        let most = self.tokens_per_day;
        let taken = books::taken(&self.home, now)
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

    /// An answer was given to work of a source. It is booked at once; what cannot be booked is logged and counts nevertheless.
    pub fn took(&self, source: &Source, usage: &Usage, cost: Option<f64>, now: Timestamp) {
        let counted = counted(usage);
        let happened = Happened::Asked {
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

    /// A run of a source is over; what it wrote: files, or names of what is in them.
    pub fn ended(&self, source: &Source, wrote: &[String], now: Timestamp) {
        self.book(source, Happened::Ended { wrote: wrote.to_vec() }, now);
    }

    fn book(&self, source: &Source, happened: Happened, now: Timestamp) -> bool {
        let booked = Booked {
            at: now,
            source: source.as_str().to_owned(),
            session: self.session.clone(),
            process: std::process::id(),
            happened,
        };
        let written = books::book(&self.home, &booked);
        if let Err(error) = &written {
            tracing::warn!(%error, source = source.as_str(), "background work could not be booked");
        }
        written.is_ok()
    }
}

/// How many tokens of the day an answer takes: those that were read from the cache count a tenth, as they cost.
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

    use pal_model::Parts;
    use pal_process::Cancel;
    use pal_provider::{Endpoint, Policy};
    use pal_wire::{Call, Dialect};

    use super::*;

    fn line() -> Arc<Line> {
        line_to("http://127.0.0.1:9")
    }

    fn line_to(address: &str) -> Arc<Line> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let endpoint = Endpoint::new(Dialect::Messages, address, None).unwrap();
        Arc::new(Line::new(runtime, endpoint, Policy::patient()).unwrap())
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
    fn a_day_has_so_many_tokens_for_all_processes_together() {
        let home = tempfile::tempdir().unwrap();
        let (notes, dream) = (Source::named("notes"), Source::named("dream"));
        let one = Allowance::new(home.path(), 1_000, "one", line());
        let other = Allowance::new(home.path(), 1_000, "other", line());
        assert_eq!(one.may_begin(&notes, noon()), Ok(()));
        one.took(&notes, &usage(6_000, 200, 199), Some(0.01), noon());
        assert_eq!(other.may_begin(&dream, noon()), Ok(()), "999 of 1 000");
        other.took(&dream, &usage(0, 0, 1), None, noon());
        for allowance in [&one, &other] {
            let why = allowance.may_begin(&dream, noon()).unwrap_err();
            assert!(why.contains("1000 of 1000") && why.contains("background_tokens_daily"), "{why}");
        }
        let tomorrow = noon().after(Duration::from_secs(12 * 60 * 60));
        assert_eq!(one.may_begin(&notes, tomorrow), Ok(()));
        let none = Allowance::new(home.path(), 0, "one", line());
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
            let allowance = Allowance::new(home.path(), 1_000, "one", Arc::clone(&line));
            assert_eq!(allowance.may_begin(&Source::named("notes"), noon()), Ok(()), "nothing is known yet");
            let (headers, body) = (Vec::new(), Parts::from(String::from("{}")));
            let call = Call { dialect: Dialect::Messages, path: "/v1/messages", headers, body, stream: true };
            line.exchange(call, &Cancel::new(), &mut |_| {});
            server.join().unwrap();
            let answer = allowance.may_begin(&Source::named("notes"), noon());
            assert_eq!(answer.is_ok(), may, "{answer:?}");
            if let Err(why) = answer {
                assert!(why.contains("25 % are left of the output tokens"), "{why}");
            }
        }
    }

    #[test]
    fn books_survive_what_was_cut_off_and_tell_each_run() {
        let home = tempfile::tempdir().unwrap();
        let notes = Source::named("notes");
        let allowance = Allowance::new(home.path(), 10_000, "one", line());
        allowance.took(&notes, &usage(100, 10, 5), Some(0.5), noon());
        allowance.ended(&notes, &[String::from("notes.md")], noon());
        let file = home.path().join("background/2026-11-15.jsonl");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let mut text = std::fs::read_to_string(&file).unwrap();
        text.push_str("{\"at\":\"2026-11-15T12:00:00");
        std::fs::write(&file, text).unwrap();
        allowance.took(&notes, &usage(100, 20, 5), None, noon());
        let later = noon().after(Duration::from_secs(60));
        allowance.took(&notes, &usage(0, 30, 5), Some(0.25), later);
        let Background { runs, unreadable } = background(home.path()).unwrap();
        assert_eq!((runs.len(), unreadable), (2, 1));
        let first = &runs[0];
        assert_eq!((first.day.as_str(), first.requests, first.counted), ("2026-11-15", 1, 25));
        assert_eq!((first.wrote.as_slice(), first.is_over), (&[String::from("notes.md")][..], true));
        let second = &runs[1];
        assert_eq!((second.requests, second.prompt, second.cached), (2, 150, 100));
        assert_eq!((second.cost_usd, second.is_over, second.begun), (Some(0.25), false, noon()));
        assert_eq!(books::taken(home.path(), noon()).unwrap(), 25 + 35 + 35);
    }

    #[test]
    fn what_cannot_be_booked_counts_and_what_cannot_be_read_stops() {
        let home = tempfile::tempdir().unwrap();
        let notes = Source::named("notes");
        let allowance = Allowance::new(home.path(), 100, "one", line());
        std::fs::create_dir_all(home.path().join("background/2026-11-15.jsonl")).unwrap();
        allowance.took(&notes, &usage(0, 100, 0), None, noon());
        assert!(allowance.may_begin(&notes, noon()).unwrap_err().contains("cannot be read"));
        std::fs::remove_dir(home.path().join("background/2026-11-15.jsonl")).unwrap();
        assert!(allowance.may_begin(&notes, noon()).unwrap_err().contains("100 of 100"));
    }
}
