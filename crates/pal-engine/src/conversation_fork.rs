//! Forks of a conversation (§8.2): a fork sees the same context and reads the same cache, and nothing it says
//! goes into the log. Agents without a conversation use the same type with an empty view.

use pal_context::{ContextPolicy, RequestParams};
use pal_model::{
    BlockType, Content, ContentBlock, EntryBody, EntryDraft, EntryId, IdSource, LogEntry, MessageOrigin,
    PromptPrefix, ResponseId, Timestamp, ToolUseId, blocks_to_json,
};
use pal_view::{Lens, RenderOptions, Request, View, window_scale};
use smol_str::SmolStr;

use crate::session::tool_result_json;
use crate::session_params::output_member;
use crate::{CacheSettings, Session, SessionConfig};

/// A fork of a conversation, kept in memory.
#[derive(Clone)]
pub struct ConversationFork {
    view: View,
    params: RequestParams,
    betas: Vec<SmolStr>,
    ids: IdSource,
    at: Timestamp,
    /// Newest entry of the conversation whose consequences the fork knows.
    newest: Option<EntryId>,
    /// Whether it continues a conversation, whose cache it reads and does not extend.
    is_fork: bool,
    /// Context window, in tokens: the model's, or a smaller one that the session learned.
    window: u64,
    /// Maximum characters of one tool result, for a window of 200,000 tokens.
    result_characters: u64,
}

/// Minimum tokens of an answer: a request with less room for it is not worth sending.
const ANSWER_TOKENS_MIN: u64 = 1_024;
/// Minimum characters that are kept of a tool result.
const RESULT_CHARACTERS_MIN: u64 = 1_000;

impl Session {
    /// Forks the conversation as it is now.
    pub fn fork(&self, config: &SessionConfig, now: Timestamp) -> ConversationFork {
        ConversationFork {
            view: self.view.clone(),
            params: self.fork_params(config, now),
            betas: self.betas(config),
            ids: IdSource::seeded(0),
            at: now,
            newest: newest(self.view.branch()),
            is_fork: true,
            window: config.limits.window,
            result_characters: config.policy.spill_characters,
        }
    }
}

impl Session {
    /// Routes all requests of a session, its forks and branches included, to one provider cache.
    pub fn cache_key(&self) -> Option<String> {
        cache_key(self.view.branch())
    }

    /// Newest entry before a response whose calls may still be running.
    pub fn newest_known(&self) -> Option<EntryId> {
        newest(self.view.branch())
    }
}

/// Routes all requests of a session to one provider cache.
pub fn cache_key(branch: &[LogEntry]) -> Option<String> {
    branch.first().map(|entry| format!("pal-{}", entry.id))
}

/// Newest message before a response whose calls may still be running.
fn newest(branch: &[LogEntry]) -> Option<EntryId> {
    let is_answer = |entry: &LogEntry| matches!(entry.body, EntryBody::Assistant(_));
    let makes_calls = |entry: &LogEntry| match &entry.body {
        EntryBody::Assistant(assistant) => {
            assistant.content.blocks().iter().any(|block| block.kind() == BlockType::ToolUse)
        }
        _ => false,
    };
    let last = branch.iter().rposition(is_answer).filter(|at| makes_calls(&branch[*at]));
    let known = last.map_or(branch, |at| &branch[..at]);
    let is_said = |entry: &&LogEntry| matches!(entry.body, EntryBody::User(_) | EntryBody::Assistant(_));
    known.iter().rev().find(is_said).map(|entry| entry.id)
}

impl ConversationFork {
    /// A conversation of its own that starts with nothing but `prefix`.
    pub fn fresh(
        lens: Lens,
        prefix: &PromptPrefix,
        cache: &CacheSettings,
        now: Timestamp,
    ) -> ConversationFork {
        // The budget is the conversation's.
        let own = CacheSettings { task_budget: None, ..cache.clone() };
        let params = RequestParams {
            members: output_member(&own, None).into_iter().collect(),
            without_breakpoints: cache.breakpoints_off,
            ..RequestParams::default()
        };
        let window = lens.card.window;
        let mut aside = ConversationFork {
            view: View::new(lens),
            params,
            betas: cache.betas.clone(),
            ids: IdSource::seeded(0),
            at: now,
            newest: None,
            is_fork: false,
            window,
            result_characters: ContextPolicy::threshold().spill_characters,
        };
        aside.push(EntryDraft::prefix(prefix));
        aside
    }

    /// Routes the fork's requests to the cache of its conversation; none for a conversation of its own.
    pub fn cache_key(&self) -> Option<String> {
        cache_key(self.view.branch()).filter(|_| self.is_fork)
    }

    /// Newest entry of the conversation known to the fork; results of calls still running are not.
    pub fn newest(&self) -> Option<EntryId> {
        self.newest
    }

    /// The conversation's view plus the fork's own messages.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The beta headers of its requests.
    pub fn betas(&self) -> &[SmolStr] {
        &self.betas
    }

    /// Appends a user message of one text.
    pub fn push_user_text(&mut self, text: &str) {
        self.push_user_message(&Content::from_text(text));
    }

    /// Appends a user message.
    pub fn push_user_message(&mut self, content: &Content) {
        self.push(EntryDraft::user(MessageOrigin::Person, &content.to_json()));
    }

    /// Appends a response.
    pub fn push_answer(&mut self, response: &ResponseId, model: &str, blocks: &[ContentBlock]) {
        self.push(EntryDraft::assistant(Some(response), Some(model), &blocks_to_json(blocks)));
    }

    /// Appends a tool result.
    pub fn push_tool_result(&mut self, call: &ToolUseId, content: &[ContentBlock], is_error: bool) {
        self.push(EntryDraft::user(MessageOrigin::Tool, &tool_result_json(call, content, is_error)));
    }

    /// Tokens for the answer to the next request, at most `max_tokens`; none if the fork no longer fits the window.
    pub fn answer_room(&self, max_tokens: u64) -> Option<u64> {
        let size = self.view.size().tokens;
        let room = self.window.saturating_sub(size + size / 20);
        (room >= ANSWER_TOKENS_MIN.min(max_tokens)).then_some(max_tokens.min(room))
    }

    /// Maximum characters of each of `count` tool results that are appended next: the budget of the conversation for its
    /// window, and no more than half of what is left of the window.
    pub fn result_characters_max(&self, count: usize) -> usize {
        let scaled = (self.result_characters as f64 * window_scale(self.window)) as u64;
        // A character is rarely more than half a token.
        let room = self.window.saturating_sub(self.view.size().tokens) / count.max(1) as u64;
        scaled.min(room).max(RESULT_CHARACTERS_MIN) as usize
    }

    /// Limits it to a window that is smaller than the model's.
    #[must_use]
    pub fn with_window(self, window: u64) -> ConversationFork {
        ConversationFork { window: window.min(self.window), ..self }
    }

    /// Context window, in tokens.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Renders the next request: the conversation's last one and the fork's own messages.
    pub fn request(&self, max_tokens: u64) -> Request {
        let options = RenderOptions { max_tokens, stream: true, spell_out_unseen: false };
        match self.is_fork {
            true => self.params.repeated(&self.view, options),
            false => self.params.request(&self.view, options),
        }
    }

    fn push(&mut self, draft: EntryDraft) {
        self.push_at(draft, self.at);
    }

    pub(crate) fn push_at(&mut self, draft: EntryDraft, at: Timestamp) {
        let parent = self.view.branch().last().map(|entry| entry.id);
        // Drafts built here are always valid.
        if let Ok(entry) = draft.into_entry(self.ids.next_id(at), parent, at) {
            self.view.push(entry);
        }
    }
}
