//! Requests that only keep the provider's cache warm while a session rests (§10.5): when one would be due, whether it is
//! worth it, what it is, and how it is put into the log.

use pal_context::thrifty::{Ping, ping_due};
use pal_model::{Draft, RequestSent, ResponseGot, Source, Timestamp};

use crate::{Aside, Engine, EngineError, Session};

/// What the model is told, whose answer nobody reads.
const WORDS: &str = "Nothing is to be done yet. Answer with one word.";

impl Session {
    /// When the next ping would have to leave, if it is worth it then; none where none ever is.
    pub fn ping_due(&self, engine: &Engine) -> Option<Timestamp> {
        let may_ping = engine.is_attended && engine.policy.thrift.is_some_and(|thrift| thrift.pings);
        ping_due(&self.view).filter(|_| may_ping && !engine.cache.marks_off)
    }

    /// A ping that would leave now, judged, and the fork that sends it: the conversation once more, for one token.
    pub fn ping(&self, engine: &Engine, now: Timestamp) -> (Ping, Aside) {
        let mut aside = self.aside(engine, now);
        // Whoever goes on will have said something: it is seen as it will be then.
        aside.say(WORDS);
        (engine.ping(aside.view(), now), aside)
    }

    /// Puts a ping into the log that left then, and what it took.
    pub fn append_ping(
        &mut self,
        sent: Timestamp,
        got: &ResponseGot,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let got = ResponseGot { source: Source::ping(), ..got.clone() };
        let model = self.view.lens().card.model.clone();
        let request = RequestSent::plain(Source::ping(), self.view.newest(), model);
        self.append(Draft::request(&request), sent)?;
        self.append(Draft::response(&got), now)?;
        Ok(())
    }
}
