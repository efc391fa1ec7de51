//! Requests that only keep the provider's cache warm while a session rests (§10.5): when one would be due, whether it is
//! worth it, what it is, and how it is put into the log.

use pal_context::thrifty::{Ping, ping_due};
use pal_model::{Draft, RequestSent, ResponseGot, Source, Timestamp};
use pal_view::{Request, View};
use smol_str::SmolStr;

use crate::{Aside, Engine, EngineError, Session};

/// What the model is told, whose answer nobody reads.
const WORDS: &str = "Nothing is to be done yet. Answer with one word.";

/// A session that rests, as it was when it came to rest, and what was sent since to keep its cache warm.
pub struct Pinging {
    aside: Aside,
    engine: Engine,
}

impl Session {
    /// The session as it is now, for whoever keeps its cache warm; none where that is not to be done.
    pub fn pinging(&self, engine: &Engine, now: Timestamp) -> Option<Pinging> {
        let may_ping = engine.is_attended && engine.policy.thrift.is_some_and(|thrift| thrift.pings);
        if !may_ping || engine.cache.marks_off {
            return None;
        }
        ping_due(self.view())?;
        Some(Pinging { aside: self.aside(engine, now), engine: engine.clone() })
    }

    /// Puts a ping into the log that left at this time, and what it took.
    pub fn append_ping(&mut self, sent: Timestamp, got: &ResponseGot) -> Result<(), EngineError> {
        for draft in entries(&self.view, got) {
            self.append(draft, sent)?;
        }
        Ok(())
    }
}

impl Pinging {
    /// When the next ping would have to leave, if it is worth it then.
    pub fn due(&self) -> Option<Timestamp> {
        ping_due(self.aside.view())
    }

    /// A ping that would leave now, judged; and if it is worth it, what it is: the conversation once more, for one token.
    pub fn ping(&self, now: Timestamp) -> (Ping, Option<Request>) {
        let mut aside = self.aside.clone();
        // Whoever goes on will have said something: it is judged as it will be then.
        aside.say(WORDS);
        let ping = self.engine.ping(aside.view(), now);
        let request = ping.is_worth_it.then(|| aside.request(1));
        (ping, request)
    }

    /// The beta headers of a ping.
    pub fn betas(&self) -> &[SmolStr] {
        self.aside.betas()
    }

    /// A ping left at this time and was answered: the next one is judged as if it stood in the log, where it will stand.
    pub fn sent(&mut self, at: Timestamp, got: &ResponseGot) {
        for draft in entries(self.aside.view(), got) {
            self.aside.push_at(draft, at);
        }
    }
}

/// A ping as it stands in a log.
fn entries(view: &View, got: &ResponseGot) -> [Draft; 2] {
    let model = view.lens().card.model.clone();
    let request = RequestSent::plain(Source::ping(), view.newest(), model);
    let got = ResponseGot { source: Source::ping(), ..got.clone() };
    [Draft::request(&request), Draft::response(&got)]
}
