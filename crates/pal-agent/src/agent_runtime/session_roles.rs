//! The roles that a session needs, played by the runtime.

use pal_context::{CompactionRequest, FileRequest, RestoredFile, SummaryQuestion};
use pal_engine::{
    CompactionFollowUp, CompactionInputs, CompactionObserver, FileReader, GuessedWindow, ModelClient,
    Notifier, OutgoingRequest, RequestOutcome, SummaryExchange, TimeSource, TokenObservation,
};
use pal_events::AgentEvent;
use pal_model::{Boundary, PromptPrefix, Timestamp};
use pal_prompt::PrefixProfile;
use pal_settings::KillSwitch;
use pal_view::View;
use smol_str::SmolStr;

use crate::agent_runtime::AgentRuntime;

impl ModelClient for AgentRuntime<'_> {
    fn send(&mut self, outgoing: &OutgoingRequest<'_>) -> RequestOutcome {
        let cancel = self.inbox.handle.cancel();
        let exchange = if self.switches.is_off(KillSwitch::BreakDetector) {
            self.model.exchange(outgoing.request, outgoing.betas, &cancel, &mut self.events)
        } else {
            let request = self.model.encoder.with_cache_diagnosis(outgoing.request, outgoing.previous);
            self.model.exchange(&request, outgoing.betas, &cancel, &mut self.events)
        };
        self.model.outcome(exchange)
    }

    fn ask(&mut self, question: &SummaryQuestion, betas: &[SmolStr], _now: Timestamp) -> SummaryExchange {
        let cancel = self.inbox.handle.cancel();
        self.model.summarize(question, betas, &cancel, &mut self.events)
    }

    fn learn_window(&mut self, window: u64) {
        if let Some(notice) = self.model.learn_window(window) {
            self.events.notice(notice);
        }
    }

    fn learn_guessed_window(&mut self, window: &GuessedWindow) {
        if let Some(warning) = self.model.learn_guessed_window(window) {
            self.events.warning(warning);
        }
    }

    fn learn_output_limit(&mut self, tokens: u64) {
        let notice = self.model.learn_output_limit(tokens);
        self.events.notice(notice);
    }

    fn observe_tokens(&mut self, observation: &TokenObservation) {
        self.model.observe_tokens(observation);
    }

    fn is_cancelled(&self) -> bool {
        self.inbox.handle.cancel().is_cancelled()
    }
}

impl FileReader for AgentRuntime<'_> {
    fn read_file(&mut self, wanted: &FileRequest) -> RestoredFile {
        self.read_again(wanted)
    }
}

impl Notifier for AgentRuntime<'_> {
    fn notice(&mut self, line: &str) {
        if self.model.is_quiet {
            tracing::info!(line, "not shown");
            return;
        }
        self.events.notice(line.to_owned());
    }

    fn discard_answer(&mut self) {
        let why = String::from("the window was full before it ended; the conversation is compacted first");
        self.events.send(AgentEvent::AnswerDiscarded { why });
    }
}

impl TimeSource for AgentRuntime<'_> {
    fn now(&mut self, _earlier: Timestamp) -> Timestamp {
        self.clock.now()
    }
}

impl CompactionObserver for AgentRuntime<'_> {
    fn before_compaction(&mut self, order: &CompactionRequest, view: &View) -> CompactionInputs {
        self.prepare_compaction(order, view)
    }

    fn smaller_prefix(&mut self, view: &View, window: u64) -> Option<PromptPrefix> {
        let window = self.model.lowered_window.map_or(window, |lowered| lowered.min(window));
        let is_lean = |profile| profile == PrefixProfile::Lean;
        if is_lean(self.tools.catalog.profile()) || !is_lean(PrefixProfile::for_window(window)) {
            return None;
        }
        self.model.lowered_window = Some(window);
        self.renewed(view)
    }

    fn after_compaction(&mut self, boundary: &Boundary, view: &View) -> CompactionFollowUp {
        self.follow_compaction(boundary, view)
    }
}
