//! Handle of an agent for other threads.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pal_background::{ExchangeListener, SuggestionListener};
use pal_events::{AgentControl, ExchangeReport};
use pal_model::{Content, ToolUseId};
use pal_permissions::PermissionMode;
use pal_process::CancelToken;
use pal_run::{RunInput, ToolCallResult};

/// Callback for an incoming message.
type MessageListener = Arc<dyn Fn() + Send + Sync>;

/// Steers and interrupts an agent from any thread.
#[derive(Clone)]
pub struct AgentHandle {
    signals: Sender<AgentSignal>,
    /// Messages of the user that the agent has not read yet, oldest first.
    unread: Arc<Mutex<VecDeque<Content>>>,
    cancel: Arc<Mutex<CancelToken>>,
    bell: Arc<Mutex<Option<MessageListener>>>,
    /// Receives suggestions for the next prompt.
    suggestions: Arc<Mutex<Option<SuggestionListener>>>,
    /// Whether the agent is closed.
    is_closed: Arc<AtomicBool>,
    /// Mode chosen by the user, not applied yet.
    mode: Arc<Mutex<Option<PermissionMode>>>,
    /// Files of memories saved by the user and not announced yet.
    remembered: Arc<Mutex<Vec<PathBuf>>>,
    /// Work in the pause, and the user's activity.
    idle: Arc<Mutex<IdleWork>>,
    /// Receives keepalive requests of the pause.
    keepalives: Arc<Mutex<Option<MessageListener>>>,
}

/// Work in a pause, which the user's next activity cancels.
#[derive(Debug, Default)]
struct IdleWork {
    /// Cancels the work under way.
    cancel: Option<CancelToken>,
    /// Last activity of the user.
    active_at: Option<Instant>,
}

/// A signal from another thread.
#[derive(Debug)]
pub(crate) enum AgentSignal {
    /// A message of another agent, or an interrupt.
    Said(RunInput),
    /// The user has sent a message, which waits in [`AgentHandle::take_unread`].
    Steered,
    /// Output of a running call.
    Printed(ToolUseId, String),
    /// Result of a call, with the files it touched.
    Returned(Box<ToolCallResult>, Vec<std::path::PathBuf>),
    /// Usage of a subagent or fork.
    Exchanged(Box<ExchangeReport>),
    /// A subagent has ended.
    AgentLeft,
    /// Progress line of a subagent.
    Doing {
        /// Its name.
        agent: String,
        /// The line.
        doing: String,
    },
}

impl AgentHandle {
    pub(crate) fn new(signals: Sender<AgentSignal>) -> AgentHandle {
        let cancel = Arc::new(Mutex::new(CancelToken::new()));
        AgentHandle {
            signals,
            unread: Arc::default(),
            cancel,
            bell: Arc::default(),
            suggestions: Arc::default(),
            is_closed: Arc::default(),
            mode: Arc::default(),
            remembered: Arc::default(),
            idle: Arc::default(),
            keepalives: Arc::default(),
        }
    }

    /// Sends a user message. A working agent reads it with its next tool results; an idle one runs it next.
    pub fn steer(&self, content: Content) {
        self.unread().push_back(content);
        // A closed agent ignores it.
        let _ = self.signals.send(AgentSignal::Steered);
    }

    /// Takes the oldest unread message of the user.
    pub(crate) fn take_unread(&self) -> Option<Content> {
        self.unread().pop_front()
    }

    /// Puts messages back that were taken and not worked on, before all others.
    pub(crate) fn return_unread(&self, messages: Vec<Content>) {
        let mut unread = self.unread();
        messages.into_iter().rev().for_each(|content| unread.push_front(content));
    }

    fn unread(&self) -> MutexGuard<'_, VecDeque<Content>> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers a message of another agent, which does not count as the user's.
    pub fn message(&self, content: Content) {
        let _ = self.signals.send(AgentSignal::Said(RunInput::Message(content)));
        let bell = self.bell.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(bell) = bell {
            bell();
        }
    }

    /// Sets the callback for incoming messages, so that an idle agent is made to read them
    /// ([`crate::Agent::run_queued_messages`]).
    pub fn on_message(&self, bell: impl Fn() + Send + Sync + 'static) {
        *self.bell.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(bell));
    }

    /// Sets the callback for suggestions of the next prompt; without one, they are dropped.
    pub fn on_suggestion(&self, listener: impl Fn(String) + Send + Sync + 'static) {
        *self.suggestions.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(listener));
    }

    /// Delivers a suggestion for the next prompt.
    pub(crate) fn suggest(&self, text: String) {
        let listener = self.suggestions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener {
            listener(text);
        }
    }

    /// Stops the current response and running tools; everything that arrived is kept.
    pub fn interrupt(&self) {
        let _ = self.signals.send(AgentSignal::Said(RunInput::Interrupt));
        self.cancel().cancel();
    }

    /// Notes that the user is active: cancels work in the pause.
    pub fn end_idle_work(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.active_at = Some(Instant::now());
        if let Some(cancel) = idle.cancel.take() {
            cancel.cancel();
        }
    }

    /// Starts work in the pause, unless the user was active within `quiet`. [`AgentHandle::end_idle_work`] cancels
    /// it.
    pub(crate) fn begin_idle_work(&self, quiet: Duration) -> bool {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.active_at.is_some_and(|at| at.elapsed() < quiet) {
            return false;
        }
        self.renew();
        idle.cancel = Some(self.cancel());
        true
    }

    /// Notes that the work in the pause is over.
    pub(crate) fn finish_idle_work(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).cancel = None;
    }

    /// Time until the user has been inactive for `quiet`.
    pub(crate) fn until_quiet(&self, quiet: Duration) -> Duration {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.active_at.map_or(Duration::ZERO, |at| quiet.saturating_sub(at.elapsed()))
    }

    /// Sets the callback for keepalive requests, which extend the life of the cache.
    pub fn on_keepalive(&self, listener: impl Fn() + Send + Sync + 'static) {
        *self.keepalives.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(listener));
    }

    /// Reports a keepalive request.
    pub(crate) fn report_keepalive(&self) {
        let listener = self.keepalives.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener {
            listener();
        }
    }

    /// Chooses the permission mode and its sandbox for the next call; the model is told with the next request.
    pub fn choose_mode(&self, mode: PermissionMode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = Some(mode);
    }

    /// Announces a memory that the user saved, with the next request.
    pub fn remember(&self, file: PathBuf) {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).push(file);
    }

    /// Takes the saved memories.
    pub(crate) fn take_remembered(&self) -> Vec<PathBuf> {
        std::mem::take(&mut *self.remembered.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the chosen mode.
    pub(crate) fn take_mode(&self) -> Option<PermissionMode> {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn send(&self, signal: AgentSignal) {
        let _ = self.signals.send(signal);
    }

    /// Cancellation of the current work.
    pub(crate) fn cancel(&self) -> CancelToken {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops the agent for good; later messages are ignored.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.interrupt();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Renews the cancellation for a new prompt, unless the agent is closed.
    pub(crate) fn renew(&self) {
        if self.is_closed() {
            return;
        }
        *self.cancel.lock().unwrap_or_else(PoisonError::into_inner) = CancelToken::new();
    }
}

impl AgentControl for AgentHandle {
    fn steer(&self, content: Content) {
        AgentHandle::steer(self, content);
    }

    fn interrupt(&self) {
        AgentHandle::interrupt(self);
    }

    fn unread_messages(&self) -> usize {
        self.unread().len()
    }

    fn take_back_messages(&self) -> usize {
        self.unread().drain(..).count()
    }

    fn end_idle_work(&self) {
        AgentHandle::end_idle_work(self);
    }

    fn choose_mode(&self, mode: PermissionMode) {
        AgentHandle::choose_mode(self, mode);
    }
}

impl ExchangeListener for AgentHandle {
    fn report_exchange(&self, report: Box<ExchangeReport>) {
        self.send(AgentSignal::Exchanged(report));
    }
}
