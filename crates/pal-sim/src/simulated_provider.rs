//! The simulated provider: one request in, one reply out.
//!
//! Owns the state (cache, block memo, ids, ledger) and the path of a request: fault, route, key, reply,
//! fault. `messages_endpoint` handles Messages requests.

use pal_model::Timestamp;
use pal_wire::{ApiError, ApiErrorKind, Dialect, MessagesEndpoint};
use serde_json::json;

use crate::block_facts::BlockMemo;
use crate::block_signatures::BlockSigner;
use crate::bound_thinking::LearnedSignatures;
use crate::cache_diagnostics::RecentPrompts;
use crate::http_request::{authorize, check_encoding, json_reply, limit_headers};
use crate::id_generator::IdGenerator;
use crate::message_threads::MessageThreads;
use crate::openai::{self, NumberedRequest, OpenAiProvider, ProviderParts};
use crate::prefix_cache::PrefixCache;
use crate::sim_settings::SimSettings;
use crate::usage_ledger::UsageLedger;
use crate::{HttpReply, HttpRequest, SimulatedModel, models_endpoint};

/// A simulated provider for the Messages and OpenAI dialects.
pub struct SimulatedProvider {
    pub(crate) settings: SimSettings,
    pub(crate) model: Box<dyn SimulatedModel>,
    pub(crate) memo: BlockMemo,
    pub(crate) cache: PrefixCache,
    pub(crate) ids: IdGenerator,
    pub(crate) sealer: BlockSigner,
    openai: OpenAiProvider,
    pub(crate) learned: LearnedSignatures,
    pub(crate) recent: RecentPrompts,
    ledger: UsageLedger,
    pub(crate) threads: MessageThreads,
    number: u64,
}

/// A request with its arrival time, number, id and client.
#[derive(Clone, Copy)]
pub(crate) struct IncomingRequest<'a> {
    pub(crate) now: Timestamp,
    pub(crate) request: &'a HttpRequest<'a>,
    /// Request number, counted from 1.
    pub(crate) number: u64,
    /// Request id.
    pub(crate) id: &'a str,
    /// Hash of the client's key.
    pub(crate) scope: u64,
}

impl SimulatedProvider {
    /// Creates a provider with an empty cache that answers from `model`.
    pub fn new(settings: SimSettings, model: Box<dyn SimulatedModel>) -> SimulatedProvider {
        let seed = settings.seed;
        SimulatedProvider {
            settings,
            model,
            memo: BlockMemo::default(),
            cache: PrefixCache::default(),
            ids: IdGenerator::new(seed),
            sealer: BlockSigner::new(seed),
            openai: OpenAiProvider::default(),
            learned: LearnedSignatures::default(),
            recent: RecentPrompts::default(),
            ledger: UsageLedger::default(),
            threads: MessageThreads::default(),
            number: 0,
        }
    }

    /// Answers a request that arrives at `now`.
    pub fn handle(&mut self, now: Timestamp, request: &HttpRequest<'_>) -> HttpReply {
        let path = request.route();
        if path == "/health" {
            return json_reply(200, json!({"status": "ok"}).to_string());
        }
        self.number += 1;
        let number = self.number;
        let foreign = openai::dialect(request);
        if let Some(reply) =
            self.settings.faults.replacement_reply(number, foreign.unwrap_or(Dialect::Messages))
        {
            return reply;
        }
        let id = self.ids.id("req");
        let reply = match foreign {
            Some(_) => self.openai(NumberedRequest { now, request, number, id: &id }),
            None => self.messages_side(now, request, path, &id),
        };
        let is_stream = reply.is_stream();
        if let Some(exchange) = &reply.exchange {
            self.ledger.push(exchange.clone());
        }
        self.settings.faults.apply(number, is_stream, reply)
    }

    fn openai(&mut self, asked: NumberedRequest<'_>) -> HttpReply {
        let mut parts = ProviderParts {
            settings: &self.settings,
            model: &mut *self.model,
            memo: &mut self.memo,
            ids: &mut self.ids,
            sealer: self.sealer,
        };
        self.openai.handle(&mut parts, asked)
    }

    fn messages_side(
        &mut self,
        now: Timestamp,
        request: &HttpRequest<'_>,
        path: &str,
        id: &str,
    ) -> HttpReply {
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

    /// Requests answered so far and their cost.
    pub fn ledger(&self) -> &UsageLedger {
        &self.ledger
    }

    fn route(
        &mut self,
        now: Timestamp,
        request: &HttpRequest<'_>,
        path: &str,
        id: &str,
    ) -> Result<HttpReply, ApiError> {
        let expected = match path {
            "/v1/messages" | "/v1/messages/count_tokens" => "POST",
            "/v1/models" => "GET",
            _ if path.strip_prefix("/v1/models/").is_some_and(|model| !model.is_empty()) => "GET",
            _ => return Err(ApiError::new(ApiErrorKind::NotFound, format!("Not Found: {path}"))),
        };
        if request.method != expected {
            let error = ApiError::new(ApiErrorKind::InvalidRequest, "Method Not Allowed");
            return Err(ApiError { status: 405, ..error });
        }
        let scope = authorize(request, self.settings.keys.as_deref())?;
        check_encoding(request)?;
        let incoming = IncomingRequest { now, request, number: self.number, id, scope };
        match path {
            "/v1/messages" => self.answer_threaded(incoming),
            "/v1/messages/count_tokens" => self.messages(incoming, MessagesEndpoint::CountTokens),
            "/v1/models" => {
                Ok(json_reply(200, models_endpoint::list(&self.settings.cards, request.query()).to_string()))
            }
            _ => {
                let model = path.strip_prefix("/v1/models/").unwrap_or_default();
                let card = models_endpoint::find(&self.settings.cards, model)?;
                Ok(json_reply(200, models_endpoint::info(&card).to_string()))
            }
        }
    }
}
