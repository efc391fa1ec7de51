//! The provider: one request in, one reply out.
//!
//! Owns the state (cache, memory of blocks, ids, ledger) and the way of a request through it: fault, route, key,
//! reply, fault. What a Messages request means is in `messages`.

use pal_model::Timestamp;
use pal_wire::{ApiError, Dialect, Endpoint, ErrorKind};
use serde_json::json;

use crate::binding::Learned;
use crate::cache::PrefixCache;
use crate::facts::Memo;
use crate::http::{authorize, check_encoding, json_reply, limit_headers};
use crate::ids::Ids;
use crate::ledger::Ledger;
use crate::openai::{self, Asked, Desk, OpenAi};
use crate::recent::Recent;
use crate::seal::Sealer;
use crate::settings::Settings;
use crate::threads::Threads;
use crate::{HttpRequest, Model, Reply, models};

/// A provider that can be asked.
pub struct Simulator {
    pub(crate) settings: Settings,
    pub(crate) model: Box<dyn Model>,
    pub(crate) memo: Memo,
    pub(crate) cache: PrefixCache,
    pub(crate) ids: Ids,
    pub(crate) sealer: Sealer,
    openai: OpenAi,
    pub(crate) learned: Learned,
    pub(crate) recent: Recent,
    ledger: Ledger,
    pub(crate) threads: Threads,
    number: u64,
}

/// A request on its way.
#[derive(Clone, Copy)]
pub(crate) struct Incoming<'a> {
    pub(crate) now: Timestamp,
    pub(crate) request: &'a HttpRequest<'a>,
    /// Which request it is, counted from 1.
    pub(crate) number: u64,
    /// Its id.
    pub(crate) id: &'a str,
    /// Who asks.
    pub(crate) scope: u64,
}

impl Simulator {
    /// A provider with an empty cache, whose answers come from a model.
    pub fn new(settings: Settings, model: Box<dyn Model>) -> Simulator {
        let seed = settings.seed;
        Simulator {
            settings,
            model,
            memo: Memo::default(),
            cache: PrefixCache::default(),
            ids: Ids::new(seed),
            sealer: Sealer::new(seed),
            openai: OpenAi::default(),
            learned: Learned::default(),
            recent: Recent::default(),
            ledger: Ledger::default(),
            threads: Threads::default(),
            number: 0,
        }
    }

    /// Answers a request that arrives now.
    pub fn handle(&mut self, now: Timestamp, request: &HttpRequest<'_>) -> Reply {
        let path = request.route();
        if path == "/health" {
            return json_reply(200, json!({"status": "ok"}).to_string());
        }
        self.number += 1;
        let number = self.number;
        let foreign = openai::dialect(request);
        if let Some(reply) = self.settings.faults.instead(number, foreign.unwrap_or(Dialect::Messages)) {
            return reply;
        }
        let id = self.ids.id("req");
        let reply = match foreign {
            Some(_) => self.openai(Asked { now, request, number, id: &id }),
            None => self.messages_side(now, request, path, &id),
        };
        let is_stream = reply.is_stream();
        if let Some(exchange) = &reply.exchange {
            self.ledger.push(exchange.clone());
        }
        self.settings.faults.apply(number, is_stream, reply)
    }

    fn openai(&mut self, asked: Asked<'_>) -> Reply {
        let mut desk = Desk {
            settings: &self.settings,
            model: &mut *self.model,
            memo: &mut self.memo,
            ids: &mut self.ids,
            sealer: self.sealer,
        };
        self.openai.handle(&mut desk, asked)
    }

    fn messages_side(&mut self, now: Timestamp, request: &HttpRequest<'_>, path: &str, id: &str) -> Reply {
        let mut reply = self.route(now, request, path, id).unwrap_or_else(|error| {
            let status = error.status;
            json_reply(status, error.to_json(id))
        });
        reply.headers.push(("request-id", id.to_owned()));
        if path == "/v1/messages" {
            reply.headers.extend(limit_headers(now));
        }
        reply
    }

    /// What was asked and what it cost.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn route(
        &mut self,
        now: Timestamp,
        request: &HttpRequest<'_>,
        path: &str,
        id: &str,
    ) -> Result<Reply, ApiError> {
        let expected = match path {
            "/v1/messages" | "/v1/messages/count_tokens" => "POST",
            "/v1/models" => "GET",
            _ if path.strip_prefix("/v1/models/").is_some_and(|model| !model.is_empty()) => "GET",
            _ => return Err(ApiError::new(ErrorKind::NotFound, format!("Not Found: {path}"))),
        };
        if request.method != expected {
            let error = ApiError::new(ErrorKind::InvalidRequest, "Method Not Allowed");
            return Err(ApiError { status: 405, ..error });
        }
        let scope = authorize(request, self.settings.keys.as_deref())?;
        check_encoding(request)?;
        let incoming = Incoming { now, request, number: self.number, id, scope };
        match path {
            "/v1/messages" => self.threaded(incoming),
            "/v1/messages/count_tokens" => self.messages(incoming, Endpoint::CountTokens),
            "/v1/models" => {
                Ok(json_reply(200, models::list(&self.settings.cards, request.query()).to_string()))
            }
            _ => {
                let model = path.strip_prefix("/v1/models/").unwrap_or_default();
                let card = models::find(&self.settings.cards, model)?;
                Ok(json_reply(200, models::info(&card).to_string()))
            }
        }
    }
}
