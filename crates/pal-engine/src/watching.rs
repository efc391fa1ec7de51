//! The provider's cache, watched: every request is compared with the one before it, and reads that fell get a cause
//! (§5.11).

use pal_context::Standing;
use pal_context::cache::{self, Asked, Baseline, Expected, Fall};
use pal_model::{
    Body, BreakCause, CacheBreak, Card, DecisionKind, Entry, EntryId, RequestSent, ResponseId, Source, Text,
    Timestamp, Usage, escape_into,
};
use pal_view::{CacheLifetime, RenderOptions};
use smol_str::SmolStr;

use crate::Session;

/// What is known of the newest request of the conversation that was answered.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    baseline: Baseline,
    /// The entry of the request.
    entry: EntryId,
    /// The answer's id, as the provider knows it.
    response: ResponseId,
    /// Tokens that the provider cleared of it.
    cleared_tokens: u64,
    /// What was asked; none in a session that was resumed, where it is rendered again if it is needed.
    asked: Option<Asked>,
}

/// A request that was answered, to be compared with the one before.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// The entry of the request.
    pub entry: EntryId,
    /// Who asked.
    pub source: &'a Source,
    /// What was asked.
    pub asked: Asked,
    /// For how long what it marks is kept.
    pub lifetime: CacheLifetime,
    /// When it started.
    pub started: Timestamp,
    /// The answer's id, as the provider knows it.
    pub response: &'a ResponseId,
    /// What it took.
    pub usage: &'a Usage,
    /// Tokens that the provider cleared of it.
    pub cleared_tokens: u64,
    /// What the provider says of its cache.
    pub provider: Option<&'a SmolStr>,
}

impl Watched {
    /// Of a session that was resumed: its newest request of the conversation that reports what it read.
    pub(crate) fn of(branch: &[Entry], card: &Card) -> Option<Watched> {
        let (answered, response) =
            branch.iter().enumerate().rev().find_map(|(at, entry)| match &entry.body {
                Body::Response(got) if got.source.is_conversation() && got.usage.has_prompt() => {
                    Some((at, got))
                }
                _ => None,
            })?;
        let (entry, request) = branch[..answered].iter().rev().find_map(|entry| match &entry.body {
            Body::Request(request) if request.source.is_conversation() => Some((entry, request)),
            _ => None,
        })?;
        Some(Watched {
            baseline: Baseline {
                started: entry.at,
                lifetime_ms: cache::kept_ms(card, lifetime_of(request, &response.usage)),
                read: response.usage.cache_read_input_tokens,
            },
            entry: entry.id,
            response: response.response.clone(),
            cleared_tokens: cleared_tokens(branch),
            asked: None,
        })
    }

    /// The answer's id, as the provider knows it.
    pub(crate) fn response(&self) -> &ResponseId {
        &self.response
    }
}

/// Tokens that the provider cleared of the newest request, as far as the log says.
fn cleared_tokens(branch: &[Entry]) -> u64 {
    let cleared = branch.iter().rev().find_map(|entry| match entry.decision() {
        Some(DecisionKind::ProviderClear { cleared_tokens }) => Some(*cleared_tokens),
        _ => None,
    });
    cleared.unwrap_or(0)
}

/// For how long a request's marks last: as it says itself, or as the provider counted.
fn lifetime_of(request: &RequestSent, usage: &Usage) -> CacheLifetime {
    let counted = usage.cache_creation.is_some_and(|written| written.ephemeral_1h_input_tokens > 0);
    let said = request.lifetime.as_deref().and_then(CacheLifetime::named);
    said.unwrap_or(if counted { CacheLifetime::Hour1 } else { CacheLifetime::Minutes5 })
}

impl Session {
    /// Compares a request with the one before it and remembers it; the break that it shows, if it shows one. Requests
    /// that the session sends itself are compared as they are answered.
    pub fn watch(&mut self, seen: Seen<'_>) -> Option<CacheBreak> {
        let before = self.watched.take();
        let found = before.as_ref().and_then(|before| self.fallen(before, &seen));
        if let Some(found) = &found {
            tracing::info!(
                cause = found.cause.name(),
                tokens = found.tokens,
                source = seen.source.as_str(),
                "cache broke"
            );
        }
        let baseline = Baseline {
            started: seen.started,
            lifetime_ms: cache::kept_ms(&self.view.lens().card, seen.lifetime),
            read: seen.usage.cache_read_input_tokens,
        };
        self.watched = Some(if seen.source.is_conversation() {
            Watched {
                baseline,
                entry: seen.entry,
                response: seen.response.clone(),
                cleared_tokens: seen.cleared_tokens,
                asked: Some(seen.asked),
            }
        } else {
            // A fork reads what the conversation wrote, and so keeps it alive; the next request does not go on from it.
            match before {
                Some(before) if found.is_none() => {
                    let baseline = Baseline { started: seen.started, ..before.baseline };
                    Watched { baseline, ..before }
                }
                Some(before) => before,
                None => return found,
            }
        });
        found
    }

    fn fallen(&self, before: &Watched, seen: &Seen<'_>) -> Option<CacheBreak> {
        let tokens = cache::reads_fell(before.baseline.read, seen.usage.cache_read_input_tokens)?;
        // What it was asked to clear, the provider clears of every request anew; more or less of it is another prompt.
        let clears_otherwise = seen.source.is_conversation() && before.cleared_tokens != seen.cleared_tokens;
        let cleared = || clears_otherwise.then(|| Expected { what: SmolStr::new_static("provider_clear") });
        let expected = self.announced_since(before.entry, seen.entry).or_else(cleared);
        let rendered = || self.asked_again(before.entry, &seen.asked);
        let Some(asked) = before.asked.clone().or_else(rendered) else {
            // What was sent before lies behind a boundary that the session was resumed from.
            let what = expected.map_or(SmolStr::new_static("boundary"), |expected| expected.what);
            let cause = BreakCause::Expected { what };
            return Some(CacheBreak {
                tokens,
                cause,
                cost: None,
                provider: seen.provider.cloned(),
                diff: None,
            });
        };
        // What only kept the cache warm was read like it; the next request does not go on from it.
        let touched = self.view.state().pings.last.filter(|ping| *ping < seen.started);
        let started = touched.map_or(before.baseline.started, |ping| ping.max(before.baseline.started));
        let fall = Fall {
            tokens,
            baseline: &Baseline { started, ..before.baseline },
            before: &asked,
            now: &seen.asked,
            started: seen.started,
            usage: seen.usage,
            expected: expected.as_ref(),
            has_unseen: self.view.has_unseen_prefix(),
            provider: seen.provider,
        };
        let mut found = cache::judge(&fall, &self.view.lens().card);
        if !found.cause.is_expected() {
            let diff = cache::diff(&asked, &seen.asked);
            if !diff.is_empty() {
                found.diff = crate::files::write_break(&self.directory, seen.entry, &diff);
            }
        }
        Some(found)
    }

    /// What changed the view on purpose between two requests.
    fn announced_since(&self, before: EntryId, until: EntryId) -> Option<Expected> {
        let branch = self.view.branch();
        let entries = branch.iter().rev().skip_while(|entry| entry.id != until).skip(1);
        let since: Vec<&Entry> = entries.take_while(|entry| entry.id != before).collect();
        let boundary =
            since.iter().any(|entry| matches!(&entry.body, Body::Boundary(found) if found.stands()));
        if boundary || !branch.iter().any(|entry| entry.id == before) {
            return Some(Expected { what: SmolStr::new_static("boundary") });
        }
        let rewritten =
            |entry: &Entry| matches!(&entry.body, Body::Decision(made) if made.cost.tokens_rewritten > 0);
        let rewrites = |entry: &&Entry| match entry.decision()? {
            DecisionKind::Snip { .. }
            | DecisionKind::Clear { .. }
            | DecisionKind::Fold { .. }
            | DecisionKind::Strip { .. }
            | DecisionKind::CacheEdit { .. }
            | DecisionKind::ProviderClear { .. }
            | DecisionKind::Undo { .. } => Some(Expected { what: entry.kind().0 }),
            // A spill is made before its text is sent, as a rule.
            DecisionKind::Spill { .. } if rewritten(entry) => Some(Expected { what: entry.kind().0 }),
            _ => None,
        };
        since.iter().find_map(rewrites)
    }

    /// The request of an entry, rendered again: a resumed session knows it only by its log. What it carried besides its
    /// content is in its entry.
    fn asked_again(&self, entry: EntryId, like: &Asked) -> Option<Asked> {
        let found = self.view.branch().iter().find(|known| known.id == entry)?;
        let Body::Request(sent) = &found.body else { return None };
        let view = self.view.until(entry)?;
        let options =
            RenderOptions { max_tokens: like.request.max_tokens(), stream: true, spell_out_unseen: true };
        let lifetime = sent.lifetime.as_deref().and_then(CacheLifetime::named).unwrap_or_default();
        let standing = Standing { lifetime, ..Standing::default() };
        let request = standing.request(&view, options);
        let members = sent.members.iter().map(|(name, value)| (name, Text::from(value.as_str())));
        let request = members.fold(request, |request, (name, value)| request.with_member(name, &value));
        // It may have been for another model than the one that the session is looked at for now.
        let mut model = String::new();
        escape_into(&mut model, &sent.model);
        let request = request.with_member("model", &model);
        Some(Asked { request, betas: sent.betas.clone() })
    }
}
