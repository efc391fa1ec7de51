//! Destination of an agent's events.

use pal_events::AgentEvent;

/// Receives the events of an agent.
pub(crate) struct EventSink<'a>(Box<dyn FnMut(AgentEvent) + 'a>);

impl<'a> EventSink<'a> {
    pub(crate) fn new(sink: Box<dyn FnMut(AgentEvent) + 'a>) -> EventSink<'a> {
        EventSink(sink)
    }

    pub(crate) fn send(&mut self, event: AgentEvent) {
        (self.0)(event);
    }

    /// Shows one line to the user.
    pub(crate) fn notice(&mut self, line: String) {
        self.send(AgentEvent::Notice(line));
    }

    /// Shows one line to the user that every form of output contains.
    pub(crate) fn warning(&mut self, line: String) {
        self.send(AgentEvent::Warning(line));
    }
}
