//! Keepalive requests in a replay (§10.5): decided as the agent would decide, charged, and appended to the log.
//!
//! A pause is simulated without knowing when it ends. After the last answer the session counts as left open, so keepalives sent there
//! cost money and save nothing.

use pal_model::{RequestSource, ResponseId, ResponseRecord, Timestamp};
use pal_sim::ModelOutput;

use crate::replay::ReplayError;
use crate::replay::replay_state::ReplayRun;

impl ReplayRun<'_> {
    /// Keeps the cache warm until something happens, as far as that is worth it; for good if nothing does.
    pub(crate) fn keep_warm(&mut self, until: Option<Timestamp>) -> Result<(), ReplayError> {
        while let Some(since) = self.progress.rests_since
            && let Some(pinging) = self.session.keepalive_plan(&self.engine, since)
            && let Some(due) = pinging.due()
        {
            // An answer may come so late that it is due at once.
            let now = due.max(since);
            if until.is_some_and(|until| until <= now) {
                return Ok(());
            }
            let sent = pinging.ping(now).1.and_then(|request| {
                let call = self.provider.call(&request, pinging.betas(), &self.card);
                self.provider
                    .ask(now, &call, &call.body.to_joined_string(), Some(ModelOutput::default()))
                    .exchange
            });
            let Some(exchange) = sent else {
                // It is not thought of again in this pause.
                self.progress.rests_since = None;
                return Ok(());
            };
            self.report.requests += 1;
            self.report.measured.add(&exchange.usage, exchange.cost);
            self.report.pings.get_or_insert_default().add(&exchange.usage, exchange.cost);
            let got = ResponseRecord {
                response: ResponseId::from(exchange.response.as_str()),
                source: RequestSource::keepalive(),
                model: exchange.model.as_str().into(),
                usage: exchange.usage,
                stop_reason: Some(exchange.stop_reason.as_str().into()),
                cost: exchange.cost,
                cache_break: None,
            };
            self.session.append_ping(now, &got)?;
        }
        Ok(())
    }
}
