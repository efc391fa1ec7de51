//! The provider of a replay: the simulator, asked in the dialect of the model's vendor.

use pal_model::{Block, Caching, Card, Cards, Parts, Timestamp, fields, member};
use pal_sim::{Answer, Exchange, HttpRequest, Reply, Settings, Signatures, Simulator};
use pal_view::Request;
use pal_wire::{
    Call, Conversation, Decoder, Dialect, Encoder, Event, FailureKind, Piece, classify, count_tokens_call,
    messages_call_with,
};

use serde_json::json;
use smol_str::SmolStr;

use crate::recital::Recital;

/// Steers all requests of a replay to one cache.
const CACHE_KEY: &str = "replay";

/// The simulator and what is spoken to it.
pub(crate) struct Provider {
    simulator: Simulator,
    recital: Recital,
    /// Of the vendor whose endpoint caches like this.
    encoder: Option<(Caching, Encoder)>,
    /// The newest answer of the conversation, by the provider's own id.
    previous: Option<String>,
}

/// What came back.
#[derive(Clone)]
pub(crate) struct Replied {
    pub(crate) status: u16,
    /// What it took; none if it was refused.
    pub(crate) exchange: Option<Exchange>,
    /// Why it was refused.
    pub(crate) refusal: Option<String>,
    /// Whether that was for its length: the tokens and the limit, where they were named.
    pub(crate) too_long: Option<(Option<u64>, Option<u64>)>,
}

/// What an answer says.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) blocks: Vec<Block>,
    /// Tokens that the provider cleared before.
    pub(crate) cleared_tokens: u64,
    /// Why it could not read what it had cached.
    pub(crate) cache_miss: Option<SmolStr>,
}

impl Provider {
    pub(crate) fn new(cards: Cards) -> Provider {
        let recital = Recital::default();
        // Recorded thinking was signed by somebody else.
        let settings = Settings { cards, signatures: Signatures::Learn, ..Settings::plain() };
        let simulator = Simulator::new(settings, Box::new(recital.clone()));
        Provider { simulator, recital, encoder: None, previous: None }
    }

    /// A request of the conversation that asks the provider what it could not read of the one before.
    pub(crate) fn asking_why(&self, request: Request, card: &Card) -> Request {
        if !card.can.cache_diagnostics {
            return request;
        }
        request.with_member("diagnostics", &json!({"previous_message_id": self.previous}).to_string())
    }

    /// The newest answer of the conversation.
    pub(crate) fn answered(&mut self, exchange: &Exchange) {
        self.previous = Some(exchange.response.clone());
    }

    /// The call that a request becomes; its answer is streamed.
    pub(crate) fn call(&mut self, request: &Request, betas: &[SmolStr], card: &Card) -> Call {
        if card.caching == Caching::Marks {
            return messages_call_with(betas, request.parts(), true);
        }
        let pieces: Vec<Piece> = request
            .pieces()
            .map(|(opens, block, is_marked)| Piece { opens, block: block.clone(), is_marked })
            .collect();
        let kept = self.encoder.take().filter(|(caching, _)| *caching == card.caching);
        let fresh = || (card.caching, Encoder::responses(card.caching.into()));
        let (_, encoder) = self.encoder.insert(kept.unwrap_or_else(fresh));
        encoder.encode(&Conversation {
            model: &card.model,
            max_tokens: request.max_tokens(),
            stream: true,
            effort: None,
            cache_key: Some(CACHE_KEY),
            system: request.system(),
            tools: request.tools(),
            pieces: &pieces,
        })
    }

    /// How many tokens a text has for a model, as the provider counts them; none where it does not count.
    pub(crate) fn count(&mut self, card: &Card, text: &str) -> Option<u64> {
        if card.caching != Caching::Marks {
            return None;
        }
        let body = json!({"model": card.model, "messages": [{"role": "user", "content": text}]}).to_string();
        let call = count_tokens_call(card, Parts::from(body));
        // Counting has no time.
        let reply = self.send(Timestamp::default(), &call, &call.body.joined());
        let text = String::from_utf8_lossy(&reply.body()).into_owned();
        member(&fields(&text).ok()?, "input_tokens")?.parse().ok()
    }

    /// Asks; the answer is the one given, or drawn from what was sent, and nobody reads it.
    pub(crate) fn ask(&mut self, now: Timestamp, call: &Call, body: &str, answer: Option<Answer>) -> Replied {
        self.exchange(now, call, body, answer).0
    }

    /// The same, and what the answer says.
    pub(crate) fn ask_and_read(
        &mut self,
        now: Timestamp,
        call: &Call,
        body: &str,
        answer: Option<Answer>,
    ) -> (Replied, Read) {
        let (replied, reply) = self.exchange(now, call, body, answer);
        let read = replied.exchange.as_ref().map(|_| read(call.dialect, &reply));
        (replied, read.unwrap_or_default())
    }

    fn exchange(
        &mut self,
        now: Timestamp,
        call: &Call,
        body: &str,
        answer: Option<Answer>,
    ) -> (Replied, Reply) {
        self.recital.put_down(answer);
        let reply = self.send(now, call, body);
        let failure = reply.exchange.is_none().then(|| classify(reply.status, |_| None, &reply.body()));
        let too_long = match failure.as_ref().map(|failure| &failure.kind) {
            Some(FailureKind::TooLong { have, limit }) => Some((*have, *limit)),
            _ => None,
        };
        let refusal = failure.map(|failure| failure.message);
        let exchange = reply.exchange.clone();
        (Replied { status: reply.status, exchange, refusal, too_long }, reply)
    }

    fn send(&mut self, now: Timestamp, call: &Call, body: &str) -> Reply {
        let headers: Vec<(String, String)> =
            call.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let request =
            HttpRequest { method: "POST", path: call.path, headers: &headers, body: body.as_bytes() };
        self.simulator.handle(now, &request)
    }
}

/// Reads a streamed answer.
fn read(dialect: Dialect, reply: &Reply) -> Read {
    let mut events = Vec::new();
    let mut decoder = Decoder::new(dialect);
    for chunk in &reply.chunks {
        decoder.push(&chunk.bytes, &mut events);
    }
    decoder.finish(&mut events);
    let mut read = Read::default();
    for event in events {
        match event {
            Event::Block { block, .. } => read.blocks.push(block),
            Event::Finished(finished) => {
                read.cleared_tokens = finished.cleared_tokens();
                read.cache_miss = finished.cache_miss();
            }
            _ => {}
        }
    }
    read
}
