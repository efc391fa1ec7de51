//! Rejected media (§1.9): images or documents that the provider rejects are removed from their messages for good, so
//! that they do not end the session.
//!
//! New media are blamed first. If there are none, the provider no longer accepts what it accepted before (another model,
//! another server behind the same address): then all media of that kind are removed, wherever they are in the view.

use pal_model::{Decision, DecisionKind, EntryId, MediaKind, Timestamp};
use pal_view::VisibleMedia;

use crate::{EngineError, Session, SessionHost};

impl Session {
    /// Entries that no request has carried yet.
    pub(crate) fn unsent_entries(&self) -> Vec<EntryId> {
        self.view.unsent_entries().into_iter().map(|entry| entry.id).collect()
    }

    /// Removes the media that the provider refused, with its reason; returns false if there are none to remove. `unsent`
    /// are the entries that the refused request carried first.
    pub(crate) fn strip_refused(
        &mut self,
        kinds: &[MediaKind],
        unsent: &[EntryId],
        why: &str,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<bool, EngineError> {
        let blamed = self.blamed_media(kinds, unsent);
        if blamed.is_empty() {
            return Ok(false);
        }
        host.notice(&format!("left out, because the provider refused it: {why}"));
        for VisibleMedia { entry, kind: media, .. } in blamed {
            let kind = DecisionKind::Strip {
                entry,
                media: Some(media),
                text: format!(
                    "[The {} that stood here is left out. The provider refused it: {why}]",
                    media.name()
                ),
            };
            let reason = format!("the provider refused what it carries: {why}");
            let mut decision = Decision { kind, reason, cost: Default::default() };
            decision.cost = self.view.cost_of_change(&self.view.with_decision(&decision));
            self.decide(&decision, now)?;
        }
        Ok(true)
    }

    /// Media that a refusal is about: those of the named kinds; of these the new ones, if there are any.
    fn blamed_media(&self, kinds: &[MediaKind], unsent: &[EntryId]) -> Vec<VisibleMedia> {
        let mut blamed = self.view.visible_media();
        blamed.retain(|media| kinds.contains(&media.kind));
        let is_new = |media: &VisibleMedia| unsent.contains(&media.entry);
        if blamed.iter().any(is_new) {
            blamed.retain(is_new);
        }
        blamed
    }
}
