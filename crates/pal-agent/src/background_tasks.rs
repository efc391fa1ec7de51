//! Background work of a session: notes, memory extraction, dreams, cache keepalive and prompt suggestions.

use std::sync::Arc;

use pal_background::{
    BackgroundBudget, CacheKeepalive, DreamScheduler, Extraction, NoteKeeper, PromptSuggester, SentPing,
};
use pal_engine::{EngineError, Session, SessionConfig};
use pal_events::AgentEvent;
use pal_model::Timestamp;
use pal_settings::KillSwitch;

use crate::event_sink::EventSink;
use crate::session_switches::SessionSwitches;

/// Everything that works in the background for a session; each is none if switched off.
pub(crate) struct BackgroundTasks {
    pub(crate) notes: Option<NoteKeeper>,
    pub(crate) extraction: Option<Extraction>,
    pub(crate) dreams: Option<DreamScheduler>,
    pub(crate) keepalive: Option<CacheKeepalive>,
    pub(crate) suggester: Option<PromptSuggester>,
    /// Daily budget of all of it.
    pub(crate) budget: Option<Arc<BackgroundBudget>>,
}

impl BackgroundTasks {
    /// Updates the session notes if they are due.
    pub(crate) fn update_notes(
        &mut self,
        session: &Session,
        config: &SessionConfig,
        now: Timestamp,
        switches: &SessionSwitches,
    ) -> Option<String> {
        let notes = self.notes.as_mut().filter(|_| !switches.is_off(KillSwitch::Notes))?;
        notes.look(session, config, now)
    }

    /// Starts extraction and dreams when the conversation has come to rest; returns lines for the user.
    pub(crate) fn start_memory_work(
        &mut self,
        session: &Session,
        config: &SessionConfig,
        now: Timestamp,
        switches: &SessionSwitches,
    ) -> Vec<String> {
        if switches.is_off(KillSwitch::Memory) {
            return Vec::new();
        }
        if let Some(extraction) = &self.extraction {
            extraction.rested(session, config, now);
        }
        let dreams = self.dreams.as_mut().filter(|_| !switches.is_off(KillSwitch::Dreaming));
        dreams.map_or(Vec::new(), |dreams| dreams.rested(now))
    }

    /// Takes the line about memories written since the last call.
    pub(crate) fn take_written_memories(&self) -> Option<String> {
        let written = self.extraction.as_ref().map_or(Vec::new(), Extraction::take_written);
        (!written.is_empty()).then(|| format!("remembered: {}", written.join(", ")))
    }

    /// Starts the prediction of the next prompt.
    pub(crate) fn suggest(&mut self, session: &Session, config: &SessionConfig, now: Timestamp) {
        if let Some(suggester) = &mut self.suggester {
            suggester.suggest(session, config, now);
        }
    }

    /// Cancels the prediction of the next prompt.
    pub(crate) fn end_suggestion(&mut self) {
        if let Some(suggester) = &mut self.suggester {
            suggester.cancel();
        }
    }

    /// Starts a pause that may last: the cache is kept alive in it.
    pub(crate) fn pause(&mut self, session: &Session, config: &SessionConfig, now: Timestamp) {
        if let Some(keepalive) = &mut self.keepalive {
            keepalive.pause(session, config, now);
        }
    }

    /// Ends a pause: appends the keepalive requests sent in it to the log and reports them.
    pub(crate) fn end_pause(
        &mut self,
        session: &mut Session,
        events: &mut EventSink<'_>,
    ) -> Result<(), EngineError> {
        let sent = self.keepalive.as_mut().map_or(Vec::new(), CacheKeepalive::end_pause);
        for SentPing { at, exchanged } in sent {
            if let Some(got) = exchanged.response_record() {
                session.append_ping(at, &got)?;
            }
            events.send(AgentEvent::ExchangeEnded(exchanged));
        }
        Ok(())
    }

    /// Stops everything under way.
    pub(crate) fn end_notes(&mut self) {
        if let Some(notes) = &mut self.notes {
            notes.end();
        }
    }

    /// Stops extraction and dreams.
    pub(crate) fn end_memory_work(&mut self) {
        if let Some(extraction) = &self.extraction {
            extraction.end();
        }
        if let Some(dreams) = &mut self.dreams {
            dreams.end();
        }
    }
}
