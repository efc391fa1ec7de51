//! Provider of a replay: the simulator, called in the dialect of the model's vendor.

use pal_model::{
    CacheMode, ChunkedText, ContentBlock, ContextOverflow, ModelCard, ModelCatalog, Timestamp, member,
    object_fields,
};
use pal_sim::{
    HttpReply, HttpRequest, ModelExchange, ModelOutput, SignaturePolicy, SimSettings, SimulatedProvider,
};
use pal_view::Request;
use pal_wire::{
    ApiCall, ConversationBlock, Dialect, DialectEncoder, FailureKind, ResponseDecoder, ResponseEvent,
    WireConversation, classify_failure, count_tokens_call, messages_call,
};

use serde_json::json;
use smol_str::SmolStr;

use crate::replay::recorded_answers::RecordedAnswers;

/// Steers all requests of a replay to one cache.
const CACHE_KEY: &str = "replay";

/// The simulator and the dialect of its requests.
pub(crate) struct ReplayProvider {
    simulator: SimulatedProvider,
    recital: RecordedAnswers,
    /// Of the vendor whose endpoint caches like this.
    encoder: Option<(CacheMode, DialectEncoder)>,
    /// The newest answer of the conversation, by the provider's own id.
    previous: Option<String>,
}

/// Response of the simulated provider.
#[derive(Clone)]
pub(crate) struct ReplayResponse {
    pub(crate) status: u16,
    /// Usage; none if it was refused.
    pub(crate) exchange: Option<ModelExchange>,
    /// Why it was refused.
    pub(crate) refusal: Option<String>,
    /// Figures of a refusal because of its length.
    pub(crate) too_long: Option<ContextOverflow>,
}

/// Content of an answer.
#[derive(Default)]
pub(crate) struct CacheReading {
    pub(crate) blocks: Vec<ContentBlock>,
    /// Tokens that the provider cleared before.
    pub(crate) cleared_tokens: u64,
    /// Reason why cached content could not be read.
    pub(crate) cache_miss: Option<SmolStr>,
}

impl ReplayProvider {
    pub(crate) fn new(cards: ModelCatalog) -> ReplayProvider {
        let recital = RecordedAnswers::default();
        // Recorded thinking has another signature.
        let settings = SimSettings { cards, signatures: SignaturePolicy::Learn, ..SimSettings::plain() };
        let simulator = SimulatedProvider::new(settings, Box::new(recital.clone()));
        ReplayProvider { simulator, recital, encoder: None, previous: None }
    }

    /// A request that asks the provider to report what it could not read of the previous one.
    pub(crate) fn asking_why(&self, request: Request, card: &ModelCard) -> Request {
        if !card.can.cache_diagnostics {
            return request;
        }
        request.with_member("diagnostics", &json!({"previous_message_id": self.previous}).to_string())
    }

    /// The newest answer of the conversation.
    pub(crate) fn answered(&mut self, exchange: &ModelExchange) {
        self.previous = Some(exchange.response.clone());
    }

    /// The call that a request becomes; its answer is streamed.
    pub(crate) fn call(&mut self, request: &Request, betas: &[SmolStr], card: &ModelCard) -> ApiCall {
        if card.caching == CacheMode::Explicit {
            return messages_call(betas, request.parts(), true);
        }
        let pieces: Vec<ConversationBlock> = request
            .pieces()
            .map(|(opens, block, is_marked)| ConversationBlock {
                starts_message: opens,
                block: block.clone(),
                has_breakpoint: is_marked,
            })
            .collect();
        let kept = self.encoder.take().filter(|(caching, _)| *caching == card.caching);
        let fresh = || (card.caching, DialectEncoder::responses(card.caching.into()));
        let (_, encoder) = self.encoder.insert(kept.unwrap_or_else(fresh));
        encoder.encode(&WireConversation {
            model: &card.model,
            max_tokens: request.max_tokens(),
            stream: true,
            effort: None,
            cache_key: Some(CACHE_KEY),
            system: request.system_blocks(),
            tools: request.tools(),
            blocks: &pieces,
        })
    }

    /// Number of tokens a text has for a model, as the provider counts them; none where it does not count.
    pub(crate) fn count(&mut self, card: &ModelCard, text: &str) -> Option<u64> {
        if card.caching != CacheMode::Explicit {
            return None;
        }
        let body = json!({"model": card.model, "messages": [{"role": "user", "content": text}]}).to_string();
        let call = count_tokens_call(card, ChunkedText::from(body));
        // Counting has no time.
        let reply = self.send(Timestamp::default(), &call, &call.body.to_joined_string());
        let text = String::from_utf8_lossy(&reply.body()).into_owned();
        member(&object_fields(&text).ok()?, "input_tokens")?.parse().ok()
    }

    /// Sends a request. The answer is recorded or derived from the request, and is not decoded.
    pub(crate) fn ask(
        &mut self,
        now: Timestamp,
        call: &ApiCall,
        body: &str,
        answer: Option<ModelOutput>,
    ) -> ReplayResponse {
        self.exchange(now, call, body, answer).0
    }

    /// Sends a request and decodes the answer.
    pub(crate) fn ask_and_read(
        &mut self,
        now: Timestamp,
        call: &ApiCall,
        body: &str,
        answer: Option<ModelOutput>,
    ) -> (ReplayResponse, CacheReading) {
        let (replied, reply) = self.exchange(now, call, body, answer);
        let read = replied.exchange.as_ref().map(|_| read(call.dialect, &reply));
        (replied, read.unwrap_or_default())
    }

    fn exchange(
        &mut self,
        now: Timestamp,
        call: &ApiCall,
        body: &str,
        answer: Option<ModelOutput>,
    ) -> (ReplayResponse, HttpReply) {
        self.recital.put_down(answer);
        let reply = self.send(now, call, body);
        let failure =
            reply.exchange.is_none().then(|| classify_failure(reply.status, |_| None, &reply.body()));
        let too_long = match failure.as_ref().map(|failure| &failure.kind) {
            Some(FailureKind::TooLong(overflow)) => Some(*overflow),
            _ => None,
        };
        let refusal = failure.map(|failure| failure.message);
        let exchange = reply.exchange.clone();
        (ReplayResponse { status: reply.status, exchange, refusal, too_long }, reply)
    }

    fn send(&mut self, now: Timestamp, call: &ApiCall, body: &str) -> HttpReply {
        let headers: Vec<(String, String)> =
            call.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let request =
            HttpRequest { method: "POST", path: call.path, headers: &headers, body: body.as_bytes() };
        self.simulator.handle(now, &request)
    }
}

/// Reads a streamed answer.
fn read(dialect: Dialect, reply: &HttpReply) -> CacheReading {
    let mut events = Vec::new();
    let mut decoder = ResponseDecoder::new(dialect);
    for chunk in &reply.chunks {
        decoder.push(&chunk.bytes, &mut events);
    }
    decoder.finish(&mut events);
    let mut read = CacheReading::default();
    for event in events {
        match event {
            ResponseEvent::Block { block, .. } => read.blocks.push(block),
            ResponseEvent::Finished(finished) => {
                read.cleared_tokens = finished.cleared_tokens();
                read.cache_miss = finished.cache_miss();
            }
            _ => {}
        }
    }
    read
}
