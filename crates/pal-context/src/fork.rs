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
        self.marked(request, view, is_fork)
    }

    /// A request with the conversation's marks, or those of a fork, and without its members.
    pub fn marked(&self, request: Request, view: &View, is_fork: bool) -> Request {
        let marks = plan(&request, &view.lens().card, Marking { lifetime: self.lifetime, is_fork });
        request.with_marks(marks)
    }
}
