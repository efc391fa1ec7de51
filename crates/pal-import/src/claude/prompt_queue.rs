//! Messages queued while the agent was working.
//!
//! A queued message may be delivered by its own record, by an attachment or, in older versions, only by the
//! operation that removed it. Only in the last case it is added at that operation, so that nothing is lost or
//! repeated. Messages taken back into the input line were not sent. Messages still queued at the end of the
//! file are added at their place.

use std::borrow::Cow;
use std::collections::VecDeque;

use pal_model::unescape;

use super::typed_prompts;

#[derive(Default)]
pub(super) struct PromptQueue<'a> {
    waiting: VecDeque<QueuedPrompt<'a>>,
    /// Messages that left the queue for the model, with the step reserved for each.
    left: Vec<(usize, QueuedPrompt<'a>)>,
    /// User texts in records, by step.
    delivered: Vec<(usize, Cow<'a, str>)>,
}

struct QueuedPrompt<'a> {
    /// Step reserved at the place where it was queued.
    step: usize,
    raw: &'a str,
    text: Cow<'a, str>,
    is_typed: bool,
}

impl<'a> PromptQueue<'a> {
    /// Notes that the record at `step` has this raw user text.
    pub(super) fn note_delivery(&mut self, step: usize, raw: &'a str) {
        if (!self.waiting.is_empty() || !self.left.is_empty())
            && let Some(text) = unescape(raw)
        {
            self.delivered.push((step, text));
        }
    }

    /// Applies a queue operation. Returns the number of messages taken back.
    pub(super) fn operation(&mut self, step: usize, operation: &str, content: Option<&'a str>) -> u64 {
        match operation {
            "enqueue" => {
                let raw = content.unwrap_or("\"\"");
                let text = unescape(raw).unwrap_or_default();
                let is_typed = typed_prompts::is_queued_by_person(&text);
                self.waiting.push_back(QueuedPrompt { step, raw, text, is_typed });
                0
            }
            "dequeue" | "remove" => {
                let named = content.and_then(unescape);
                let at = self.waiting.iter().position(|queued| named.as_ref() == Some(&queued.text));
                if let Some(queued) = self.waiting.remove(at.unwrap_or(0)) {
                    self.left.push((step, queued));
                }
                0
            }
            "popAll" => self.waiting.drain(..).filter(|queued| queued.is_typed).count() as u64,
            _ => 0,
        }
    }

    /// Typed messages not delivered otherwise: step and raw text.
    pub(super) fn take_undelivered(&mut self) -> Vec<(usize, &'a str)> {
        let waiting = self.waiting.drain(..).map(|queued| (queued.step, queued));
        let left: Vec<_> = self.left.drain(..).chain(waiting).collect();
        let mut undelivered = Vec::new();
        for (step, queued) in left {
            if queued.is_typed && !take_delivery(&mut self.delivered, &queued) {
                undelivered.push((step, queued.raw));
            }
        }
        undelivered
    }
}

/// True if a later record delivers this message; that record then delivers no other. Messages that left the
/// queue together may be joined, so the next user text may also contain it.
fn take_delivery(delivered: &mut Vec<(usize, Cow<'_, str>)>, queued: &QueuedPrompt<'_>) -> bool {
    let is_later = |(step, _): &&(usize, Cow<'_, str>)| *step > queued.step;
    let same =
        delivered.iter().position(|(step, text)| *step > queued.step && text.trim() == queued.text.trim());
    if let Some(same) = same {
        delivered.remove(same);
        return true;
    }
    delivered.iter().find(is_later).is_some_and(|(_, text)| text.contains(queued.text.trim()))
}
