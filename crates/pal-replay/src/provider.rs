//! The provider of a replay: the simulator, asked in the dialect of the model's vendor.

use pal_model::{Caching, Card, Cards, Parts, Timestamp, fields, member, member_string};
use pal_sim::{Answer, Exchange, HttpRequest, Reply, Settings, Signatures, Simulator};
use pal_view::Request;
use pal_wire::{Call, Conversation, Encoder, Piece, count_tokens_call, messages_call};
use serde_json::json;

use crate::recital::Recital;

/// The simulator and what is spoken to it.
pub(crate) struct Provider {
    simulator: Simulator,
    recital: Recital,
    /// Of the vendor whose endpoint caches like this.
    encoder: Option<(Caching, Encoder)>,
}

/// What came back.
pub(crate) struct Replied {
    pub(crate) status: u16,
    /// What it took; none if it was refused.
    pub(crate) exchange: Option<Exchange>,
    /// Why it was refused.
    pub(crate) refusal: Option<String>,
}

impl Provider {
    pub(crate) fn new(cards: Cards) -> Provider {
        let recital = Recital::default();
        // Recorded thinking was signed by somebody else.
        let settings = Settings { cards, signatures: Signatures::Learn, ..Settings::plain() };
        let simulator = Simulator::new(settings, Box::new(recital.clone()));
        Provider { simulator, recital, encoder: None }
    }

    /// The call that a request becomes.
    pub(crate) fn call(&mut self, request: &Request, card: &Card, max_tokens: u64) -> Call {
        if card.caching == Caching::Marks {
            return messages_call(card, request.parts(), true);
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
            max_tokens,
            stream: true,
            effort: None,
            cache_key: None,
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

    /// Asks; the answer is the one given.
    pub(crate) fn ask(&mut self, now: Timestamp, call: &Call, body: &str, answer: Answer) -> Replied {
        self.recital.put_down(answer);
        let reply = self.send(now, call, body);
        let refusal = reply.exchange.is_none().then(|| refusal(&reply.body()));
        Replied { status: reply.status, exchange: reply.exchange, refusal }
    }

    fn send(&mut self, now: Timestamp, call: &Call, body: &str) -> Reply {
        let headers: Vec<(String, String)> =
            call.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let request =
            HttpRequest { method: "POST", path: call.path, headers: &headers, body: body.as_bytes() };
        self.simulator.handle(now, &request)
    }
}

/// The message of an error body, or the body itself.
fn refusal(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let message = fields(&text).ok().and_then(|known| {
        let error = fields(member(&known, "error")?).ok()?;
        member_string(&error, "message").map(|message| message.into_owned())
    });
    message.unwrap_or_else(|| text.into_owned())
}
