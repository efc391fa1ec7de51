//! A fork of the conversation that works aside (§8.2): it sees what the conversation sees and reads its cache, and nothing of
//! what it is told or says goes into the log. An agent that no conversation stands behind works the same way.

use pal_context::Standing;
use pal_model::{
    Block, BlockType, Body, Content, Draft, Entry, EntryId, IdSource, Origin, Prefix, ResponseId, Timestamp,
    ToolUseId, raw_list,
};
use pal_view::{Lens, RenderOptions, Request, View};
use smol_str::SmolStr;

use crate::session::result;
use crate::standing::effort_member;
use crate::{CacheSettings, Engine, Session};

/// A fork that works aside.
#[derive(Clone)]
pub struct Aside {
    view: View,
    standing: Standing,
    betas: Vec<SmolStr>,
    ids: IdSource,
    at: Timestamp,
    /// The newest entry of the conversation that it knows all about.
    newest: Option<EntryId>,
    /// Whether a conversation stands behind it, whose cache it reads and does not write to.
    is_fork: bool,
}

impl Session {
    /// The conversation as it is now, for a fork that works aside.
    pub fn aside(&self, engine: &Engine, now: Timestamp) -> Aside {
        Aside {
            view: self.view.clone(),
            standing: self.fork_standing(engine, now),
            betas: self.betas(engine),
            ids: IdSource::seeded(0),
            at: now,
            newest: newest(self.view.branch()),
            is_fork: true,
        }
    }
}

impl Session {
    /// The newest entry that an answer whose calls may be under way knows all about.
    pub fn newest_known(&self) -> Option<EntryId> {
        newest(self.view.branch())
    }
}

/// The last thing said before an answer whose calls may be under way.
fn newest(branch: &[Entry]) -> Option<EntryId> {
    let is_answer = |entry: &Entry| matches!(entry.body, Body::Assistant(_));
    let makes_calls = |entry: &Entry| match &entry.body {
        Body::Assistant(assistant) => {
            assistant.content.blocks().iter().any(|block| block.kind() == BlockType::ToolUse)
        }
        _ => false,
    };
    let last = branch.iter().rposition(is_answer).filter(|at| makes_calls(&branch[*at]));
    let known = last.map_or(branch, |at| &branch[..at]);
    let is_said = |entry: &&Entry| matches!(entry.body, Body::User(_) | Body::Assistant(_));
    known.iter().rev().find(is_said).map(|entry| entry.id)
}

impl Aside {
    /// An agent of its own: all that it knows is what stands before its messages.
    pub fn fresh(lens: Lens, prefix: &Prefix, cache: &CacheSettings, now: Timestamp) -> Aside {
        let standing = Standing {
            members: effort_member(cache).into_iter().collect(),
            is_unmarked: cache.marks_off,
            ..Standing::default()
        };
        let mut aside = Aside {
            view: View::new(lens),
            standing,
            betas: cache.betas.clone(),
            ids: IdSource::seeded(0),
            at: now,
            newest: None,
            is_fork: false,
        };
        aside.push(Draft::prefix(prefix));
        aside
    }

    /// The newest entry of the conversation that it knows all about: what calls return that are under way, it does not know.
    pub fn newest(&self) -> Option<EntryId> {
        self.newest
    }

    /// The view: that of the conversation, and what came on top of it.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The beta headers of its requests.
    pub fn betas(&self) -> &[SmolStr] {
        &self.betas
    }

    /// Tells it something.
    pub fn say(&mut self, words: &str) {
        self.push(Draft::user(Origin::Person, &Content::of_text(words).raw()));
    }

    /// What it answered.
    pub fn answered(&mut self, response: &ResponseId, model: &str, blocks: &[Block]) {
        self.push(Draft::assistant(Some(response), Some(model), &raw_list(blocks)));
    }

    /// What came of one of its calls.
    pub fn returned(&mut self, call: &ToolUseId, content: &[Block], is_error: bool) {
        self.push(Draft::user(Origin::Tool, &result(call, content, is_error)));
    }

    /// Its next request: the conversation's last one, and what came on top.
    pub fn request(&self, max_tokens: u64) -> Request {
        let options = RenderOptions { max_tokens, stream: true, spell_out_unseen: true };
        match self.is_fork {
            true => self.standing.repeated(&self.view, options),
            false => self.standing.request(&self.view, options),
        }
    }

    fn push(&mut self, draft: Draft) {
        self.push_at(draft, self.at);
    }

    pub(crate) fn push_at(&mut self, draft: Draft, at: Timestamp) {
        let parent = self.view.branch().last().map(|entry| entry.id);
        // A draft of ours is an entry.
        if let Ok(entry) = draft.into_entry(self.ids.next_id(at), parent, at) {
            self.view.push(entry);
        }
    }
}
