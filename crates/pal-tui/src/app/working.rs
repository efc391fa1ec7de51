//! News of the session.

use pal_agent::Event;
use ratatui_core::text::{Line, Span};

use super::App;
use crate::ansi;
use crate::asking::Question;
use crate::paint::{clipped, harmless_line};
use crate::told::{Facts, Told, Wish};

impl App {
    pub(super) fn told(&mut self, told: Told) {
        match told {
            Told::Event(event) => self.event(&event),
            Told::Ready(facts) => self.ready(*facts),
            Told::Ask(asked, answer) => self.questions.push(Question::new(asked, answer)),
            Told::Printed(text) => self.transcript.add(ansi::lines(&text)),
            Told::Failed(why) => self.transcript.complain(&why),
            Told::Fill(text) => self.editor.set(&text),
            Told::Rests => self.rests(),
            Told::Called => self.wish(Wish::Heed),
            Told::Stop => self.control_c(),
            Told::End => self.leave(),
            Told::Continued => self.continued(),
            // The first word on it counts: another may follow from whoever ends later.
            Told::Left(why) => {
                self.left.get_or_insert(why);
            }
        }
    }

    fn event(&mut self, event: &Event) {
        if let Event::Mode(_) = event {
            self.modes.changed();
        }
        if let Event::Began(began) = event {
            self.modes.began(&began.permission_mode);
            let title = format!("Palimpsest {}", harmless_line(&began.version));
            let place = format!(" · {} · {}", harmless_line(&began.model), harmless_line(&began.cwd));
            let room = self.screen.columns().saturating_sub(title.len());
            self.transcript.add(vec![Line::from(vec![
                Span::styled(title, self.theme.strong()),
                Span::styled(clipped(&place, room), self.theme.dim()),
            ])]);
        }
        self.status.apply(event);
        self.transcript.apply(event);
    }

    fn ready(&mut self, facts: Facts) {
        self.status.tokens = facts.tokens;
        self.status.goal = facts.goal;
        self.status.cost = facts.cost;
        self.status.prompt_tokens = 0;
        self.status.cached_tokens = 0;
        if self.facts.as_ref().is_some_and(|known| known.log != facts.log) {
            self.has_talked = !facts.earlier.is_empty();
        }
        if let Some(mode) = self.modes.chosen() {
            facts.handle.choose_mode(mode);
            self.status.mode = mode.name().to_owned();
        }
        for entry in &facts.earlier {
            self.transcript.recall(entry);
        }
        self.facts = Some(facts);
    }

    /// A wish was fulfilled. What was said too late to go along with it is the next one.
    fn rests(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
        // Nobody waits for an answer any more.
        self.questions.clear();
        if self.outstanding > 0 {
            return;
        }
        self.is_stopping = false;
        self.since = None;
        if self.transcript.has_unheard() {
            self.wish(Wish::Heed);
        }
    }
}
