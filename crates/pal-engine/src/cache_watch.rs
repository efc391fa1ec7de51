//! Cache watch: compares every request with the previous one and finds the cause of cache-read drops (§5.11).

use pal_context::RequestParams;
use pal_context::cache::{self, CacheBaseline, CacheReadDrop, ExpectedDrop, SentRequest};
use pal_model::{
    BreakCause, CacheBreak, DecisionKind, EntryBody, EntryId, LogEntry, RequestSource, ResponseId,
    SharedText, Timestamp, Usage, escape_into, sent_model_name,
};
use pal_view::{CacheTtl, RenderOptions};
use smol_str::SmolStr;

use crate::Session;
use crate::watched_request::WatchedRequest;

/// An answered request, to compare with the previous one.
#[derive(Clone, Debug)]
pub struct AnsweredRequest<'a> {
    /// Log entry of the request.
    pub entry: EntryId,
    /// Source of the request.
    pub source: &'a RequestSource,
    /// The request as sent.
    pub asked: SentRequest,
    /// TTL of its breakpoints.
    pub ttl: CacheTtl,
    /// Time of sending.
    pub started: Timestamp,
    /// Response id.
    pub response: &'a ResponseId,
    /// Token usage.
    pub usage: &'a Usage,
    /// Tokens that the provider cleared from it.
    pub cleared_tokens: u64,
    /// The provider's cache diagnosis.
    pub provider: Option<&'a SmolStr>,
}

impl Session {
    /// Compares a request with the previous one, remembers it, and returns the cache break it reveals. Requests
    /// that the session sends itself are compared automatically.
    pub fn watch(&mut self, seen: AnsweredRequest<'_>) -> Option<CacheBreak> {
        let before = self.watched.take();
        let found = before.as_ref().and_then(|before| self.find_cache_break(before, &seen));
        if let Some(found) = &found {
            tracing::info!(
                cause = found.cause.name(),
                tokens = found.tokens,
                source = seen.source.as_str(),
                "cache broke"
            );
        }
        let baseline = CacheBaseline {
            started: seen.started,
            ttl_ms: cache::cache_ttl_ms(&self.view.lens().card, seen.ttl),
            read: seen.usage.cache_read_input_tokens,
        };
        self.watched = Some(if seen.source.is_conversation() {
            WatchedRequest {
                baseline,
                entry: seen.entry,
                response: seen.response.clone(),
                cleared_tokens: seen.cleared_tokens,
                asked: Some(seen.asked),
            }
        } else {
            // A fork reads the conversation's cache entry and so keeps it alive; the next request does not
            // continue from it.
            match before {
                Some(before) if found.is_none() => {
                    let baseline = CacheBaseline { started: seen.started, ..before.baseline };
                    WatchedRequest { baseline, ..before }
                }
                Some(before) => before,
                None => return found,
            }
        });
        found
    }

    fn find_cache_break(&self, before: &WatchedRequest, seen: &AnsweredRequest<'_>) -> Option<CacheBreak> {
        let tokens = cache::cache_read_drop(before.baseline.read, seen.usage.cache_read_input_tokens)?;
        // The provider clears each request separately; clearing more or less makes another prompt.
        let clears_otherwise = seen.source.is_conversation() && before.cleared_tokens != seen.cleared_tokens;
        let cleared =
            || clears_otherwise.then(|| ExpectedDrop { kind: SmolStr::new_static("provider_clear") });
        let expected = self.announced_since(before.entry, seen.entry).or_else(cleared);
        let rendered = || self.render_again(before.entry, &seen.asked);
        let Some(asked) = before.asked.clone().or_else(rendered) else {
            // The previous request is hidden behind the boundary of the resume.
            let what = expected.map_or(SmolStr::new_static("boundary"), |expected| expected.kind);
            let cause = BreakCause::Expected { what };
            return Some(CacheBreak {
                tokens,
                cause,
                also: Vec::new(),
                cost: None,
                provider: seen.provider.cloned(),
                diff: None,
            });
        };
        // A keepalive read the same cache entry; the next request does not continue from it.
        let touched = self.view.state().keepalive.last.filter(|ping| *ping < seen.started);
        let started = touched.map_or(before.baseline.started, |ping| ping.max(before.baseline.started));
        let fall = CacheReadDrop {
            tokens,
            baseline: &CacheBaseline { started, ..before.baseline },
            before: &asked,
            now: &seen.asked,
            started: seen.started,
            usage: seen.usage,
            expected: expected.as_ref(),
            has_unseen: self.view.has_unseen_prefix(),
            provider: seen.provider,
        };
        let mut found = cache::diagnose_drop(&fall, &self.view.lens().card);
        if !found.cause.is_expected() {
            let diff = cache::request_diff(&asked, &seen.asked);
            if !diff.is_empty() {
                found.diff = crate::spill_files::write_break(&self.directory, seen.entry, &diff);
            }
        }
        Some(found)
    }

    /// Deliberate change of the view between two requests.
    fn announced_since(&self, before: EntryId, until: EntryId) -> Option<ExpectedDrop> {
        let branch = self.view.branch();
        let entries = branch.iter().rev().skip_while(|entry| entry.id != until).skip(1);
        let since: Vec<&LogEntry> = entries.take_while(|entry| entry.id != before).collect();
        let boundary = since
            .iter()
            .any(|entry| matches!(&entry.body, EntryBody::Boundary(found) if found.has_summary()));
        if boundary || !branch.iter().any(|entry| entry.id == before) {
            return Some(ExpectedDrop { kind: SmolStr::new_static("boundary") });
        }
        let rewritten = |entry: &LogEntry| matches!(&entry.body, EntryBody::Decision(made) if made.cost.tokens_rewritten > 0);
        let rewrites = |entry: &&LogEntry| match entry.decision()? {
            DecisionKind::Snip { .. }
            | DecisionKind::Clear { .. }
            | DecisionKind::Fold { .. }
            | DecisionKind::Strip { .. }
            | DecisionKind::CacheEdit { .. }
            | DecisionKind::ProviderClear { .. }
            | DecisionKind::Undo { .. } => Some(ExpectedDrop { kind: entry.kind().0 }),
            // Spills usually happen before their text is sent.
            DecisionKind::Spill { .. } if rewritten(entry) => Some(ExpectedDrop { kind: entry.kind().0 }),
            _ => None,
        };
        since.iter().find_map(rewrites)
    }

    /// Renders the request of a log entry again. Its parameters are in the entry.
    fn render_again(&self, entry: EntryId, like: &SentRequest) -> Option<SentRequest> {
        let found = self.view.branch().iter().find(|known| known.id == entry)?;
        let EntryBody::Request(sent) = &found.body else { return None };
        let view = self.view.before_entry(entry)?;
        let options =
            RenderOptions { max_tokens: like.request.max_tokens(), stream: true, spell_out_unseen: false };
        let ttl = sent.cache_ttl.as_deref().and_then(CacheTtl::from_name).unwrap_or_default();
        let params = RequestParams { ttl, ..RequestParams::default() };
        let request = params.request(&view, options);
        let members = sent.members.iter().map(|(name, value)| (name, SharedText::from(value.as_str())));
        let request = members.fold(request, |request, (name, value)| request.with_member(name, &value));
        // The request may have gone to another model than the current one.
        let mut model = String::new();
        escape_into(&mut model, sent_model_name(&sent.model));
        let request = request.with_member("model", &model);
        Some(SentRequest { request, betas: sent.betas.clone() })
    }
}
