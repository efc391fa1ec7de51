//! Forks: the conversation's own request once more, with a directive at its end (§4.7, §8.2).
//!
//! What a fork repeats it repeats byte for byte, so it reads what the conversation has written to the provider's cache,
//! and it writes nothing: its mark stands where the conversation's last one stood.

use pal_model::Text;
use pal_view::{CacheLifetime, RenderOptions, Request, View};
use smol_str::SmolStr;

use crate::cache::{Marking, plan};

/// What the requests of a conversation carry besides their content: a fork that left it out would be another request.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// Members at the top level, such as what the provider shall clear, as raw JSON.
    pub members: Vec<(SmolStr, Text)>,
    /// For how long what is marked is kept.
    pub lifetime: CacheLifetime,
    /// Nothing is marked.
    pub is_unmarked: bool,
}

/// Members that the requests of a log may have carried: what else stands there is not taken from it. Thinking is the
/// view's business.
const CARRIED: [&str; 3] = ["output_config", "context_management", "speed"];

/// A member that a log says a request carried; or why it is not taken from there. A log is a file like any other, and none
/// may write a body of its own.
pub fn carried_member(name: &str, value: &str) -> Result<(SmolStr, Text), &'static str> {
    if !CARRIED.contains(&name) {
        return Err("pal takes no such member from a log");
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(value) {
        Ok(_) => Ok((SmolStr::new(name), Text::from(value))),
        Err(_) => Err("it is no whole JSON"),
    }
}

impl Standing {
    /// A request of the conversation, with all of it and with its marks.
    pub fn request(&self, view: &View, options: RenderOptions) -> Request {
        self.finished(view.render(options), view, false)
    }

    /// A fork of the conversation.
    pub fn fork(&self, view: &View, options: RenderOptions, directive: &str) -> Request {
        self.finished(view.fork(options, directive), view, true)
    }

    /// The conversation's last request once more, with nothing at its end.
    pub fn repeated(&self, view: &View, options: RenderOptions) -> Request {
        self.finished(view.render(options), view, true)
    }

    fn finished(&self, request: Request, view: &View, is_fork: bool) -> Request {
        let request =
            self.members.iter().fold(request, |request, (name, value)| request.with_member(name, value));
        if self.is_unmarked {
            return request;
        }
        let marks = plan(&request, &view.lens().card, Marking { lifetime: self.lifetime, is_fork });
        request.with_marks(marks)
    }
}
