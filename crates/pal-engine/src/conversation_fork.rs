//! Forks of a conversation (§8.2): a fork sees the same context and reads the same cache, and nothing it says
//! goes into the log. Agents without a conversation use the same type with an empty view.

use pal_context::RequestParams;
use pal_model::{
    BlockType, Content, ContentBlock, EntryBody, EntryDraft, EntryId, IdSource, LogEntry, MessageOrigin,
    PromptPrefix, ResponseId, Timestamp, ToolUseId, blocks_to_json,
};
use pal_view::{Lens, RenderOptions, Request, View};
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
}

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
        }
    }
}

impl Session {
    /// Newest entry before a response whose calls may still be running.
    pub fn newest_known(&self) -> Option<EntryId> {
        newest(self.view.branch())
    }
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
        let mut aside = ConversationFork {
            view: View::new(lens),
            params,
            betas: cache.betas.clone(),
            ids: IdSource::seeded(0),
            at: now,
            newest: None,
            is_fork: false,
        };
        aside.push(EntryDraft::prefix(prefix));
        aside
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
