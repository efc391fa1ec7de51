//! Keepalive requests for the provider's cache while a session is paused (§10.5): due time, worth, content and
//! log entries.

use pal_context::cost_aware::{KeepaliveVerdict, keepalive_due};
use pal_model::{EntryDraft, RequestRecord, RequestSource, ResponseRecord, Timestamp};
use pal_view::{Request, View};
use smol_str::SmolStr;

use crate::{ConversationFork, EngineError, Session, SessionConfig};

/// Prompt of a keepalive request; its answer is discarded.
const WORDS: &str = "Nothing is to be done yet. Answer with one word.";

/// A snapshot of a paused session plus the keepalive requests sent since.
pub struct KeepalivePlan {
    fork: ConversationFork,
    config: SessionConfig,
}

impl Session {
    /// Snapshots the session for keepalive requests; none if its configuration forbids them.
    pub fn keepalive_plan(&self, config: &SessionConfig, now: Timestamp) -> Option<KeepalivePlan> {
        let may_ping =
            config.is_attended && config.policy.cost_aware.is_some_and(|thrift| thrift.cache_keepalive);
        if !may_ping || config.cache.breakpoints_off {
            return None;
        }
        keepalive_due(self.view())?;
        Some(KeepalivePlan { fork: self.fork(config, now), config: config.clone() })
    }

    /// Appends a keepalive request and its usage.
    pub fn append_ping(&mut self, sent: Timestamp, got: &ResponseRecord) -> Result<(), EngineError> {
        for draft in entries(&self.view, got) {
            self.append(draft, sent)?;
        }
        Ok(())
    }
}

impl KeepalivePlan {
    /// Time when the next keepalive request would be due.
    pub fn due(&self) -> Option<Timestamp> {
        keepalive_due(self.fork.view())
    }

    /// Judges a keepalive request at `now`; if it is worth its price, returns the conversation with a limit of
    /// one token.
    pub fn ping(&self, now: Timestamp) -> (KeepaliveVerdict, Option<Request>) {
        let mut fork = self.fork.clone();
        // The user will have said something by then, so the judgement includes a message.
        fork.push_user_text(WORDS);
        let ping = self.config.ping(fork.view(), now);
        let request = ping.is_worth_it.then(|| fork.request(1));
        (ping, request)
    }

    /// Routes the request to the cache of the session.
    pub fn cache_key(&self) -> Option<String> {
        self.fork.cache_key()
    }

    /// Beta headers of the request.
    pub fn betas(&self) -> &[SmolStr] {
        self.fork.betas()
    }

    /// Records an answered keepalive request, so that the next one is judged as if this one were in the log.
    pub fn sent(&mut self, at: Timestamp, got: &ResponseRecord) {
        for draft in entries(self.fork.view(), got) {
            self.fork.push_at(draft, at);
        }
    }
}

/// Log entries of a keepalive request.
fn entries(view: &View, got: &ResponseRecord) -> [EntryDraft; 2] {
    let model = view.lens().card.name.clone();
    let request = RequestRecord::new(RequestSource::keepalive(), view.newest_id(), model);
    let got = ResponseRecord { source: RequestSource::keepalive(), ..got.clone() };
    [EntryDraft::request(&request), EntryDraft::response(&got)]
}
