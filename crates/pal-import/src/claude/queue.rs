//! Messages typed while the agent was at work.
//!
//! A queued message may leave the queue as a record of its own, as an attachment, or, in older versions, without
//! any trace but the operation that removed it. Only in the last case does the queue speak for it, at the place
//! of that operation, so that nothing typed is lost and nothing is said twice. What the person took back into the
//! input line was not said. What is still queued when the file ends was typed and waits: it stands at its place.

use std::borrow::Cow;
use std::collections::VecDeque;

use pal_model::unescape;

use super::person;

#[derive(Default)]
pub(super) struct Queue<'a> {
    waiting: VecDeque<Queued<'a>>,
    /// Messages that left the queue towards the model: the step that is held for each, and the raw text.
    left: Vec<(usize, Queued<'a>)>,
    /// Texts that people's records hold, by step.
    delivered: Vec<(usize, Cow<'a, str>)>,
}

struct Queued<'a> {
    /// The step that is held at the place where it was queued.
    step: usize,
    raw: &'a str,
    text: Cow<'a, str>,
    is_typed: bool,
}

impl<'a> Queue<'a> {
    /// A record at `step` holds this raw text of a person.
    pub(super) fn delivered(&mut self, step: usize, raw: &'a str) {
        if (!self.waiting.is_empty() || !self.left.is_empty())
            && let Some(text) = unescape(raw)
        {
            self.delivered.push((step, text));
        }
    }

    /// An operation on the queue; returns how many messages it took back.
    pub(super) fn operation(&mut self, step: usize, operation: &str, content: Option<&'a str>) -> u64 {
        match operation {
            "enqueue" => {
                let raw = content.unwrap_or("\"\"");
                let text = unescape(raw).unwrap_or_default();
                let is_typed = person::is_queued_by_person(&text);
                self.waiting.push_back(Queued { step, raw, text, is_typed });
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

    /// The typed messages that nothing else delivers: the step to stand at, and the raw text.
    pub(super) fn undelivered(&mut self) -> Vec<(usize, &'a str)> {
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

/// Whether a later record says the same. That record then speaks for no other message. Messages that left the
/// queue together may be joined, so the next text of a person may also hold it as a part.
fn take_delivery(delivered: &mut Vec<(usize, Cow<'_, str>)>, queued: &Queued<'_>) -> bool {
    let is_later = |(step, _): &&(usize, Cow<'_, str>)| *step > queued.step;
    let same =
        delivered.iter().position(|(step, text)| *step > queued.step && text.trim() == queued.text.trim());
    if let Some(same) = same {
        delivered.remove(same);
        return true;
    }
    delivered.iter().find(is_later).is_some_and(|(_, text)| text.contains(queued.text.trim()))
}
