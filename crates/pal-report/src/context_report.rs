//! The contents of a request before and after its first message, and how full the context window is.

mod breakpoint_list;
mod context_json;
mod context_text;
mod layer_outlook;
mod prompt_contents;
mod window_picture;
mod window_slices;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pal_project::ProjectSnapshot;
use pal_prompt::{AssembledPrefix, MemoryIndex, PrefixOmission, PrefixProfile};
use pal_view::{Category, ContextSize, Request, View, WindowLimits};
use serde_json::Value;

use crate::text_style::TextStyle;
pub use context_text::scope_name;
pub use layer_outlook::LayerOutlook;
use prompt_contents::{PromptContents, text_of};
use window_slices::WindowSlice;

/// The contents of a session's next request, by part, in relation to the model's window.
pub struct ContextReport {
    subject: ContextSubject,
    view: View,
    request: Request,
    limits: WindowLimits,
    /// Tokens of the context.
    tokens: u64,
    contents: PromptContents,
    slices: Vec<WindowSlice>,
    /// Forecast of the layers; none for a session that has not started.
    outlook: Option<LayerOutlook>,
}

/// The session that a report is about.
pub(crate) enum ContextSubject {
    /// A session that has not started.
    Planned(Box<PlannedSession>),
    /// A session on disk.
    Stored {
        /// Name for people.
        name: String,
        path: PathBuf,
        size: Box<ContextSize>,
    },
}

/// A session that has not started: its directory and what its first request would contain.
pub struct PlannedSession {
    /// Directory that the session would start in.
    pub directory: PathBuf,
    /// Instruction files, environment and git snapshot of the project.
    pub gathered: ProjectSnapshot,
    /// Memory indexes as they would stand in the context.
    pub memory: Vec<MemoryIndex>,
    /// The prompt prefix, and what did not fit into it.
    pub assembled: AssembledPrefix,
}

/// A part of a request whose exact text can be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PromptPart {
    /// The system prompt.
    System,
    /// The tool schemas.
    Tools,
    /// The reminder before the first message.
    Reminder,
    /// The git snapshot in the system prompt.
    Git,
}

impl ContextReport {
    /// Reports on a session that has not started. `view` holds its prefix and a stand-in for the first message, `request` is
    /// rendered from that view.
    pub fn of_planned(
        session: PlannedSession,
        view: View,
        request: Request,
        limits: WindowLimits,
    ) -> ContextReport {
        let contents = PromptContents::of(&view, &request, Some(&session.assembled.prefix))
            .with_files(&session, view.estimator());
        // The stand-in for the first message does not count.
        let slices =
            window_slices::window_slices(&view, &contents, |category| category != Category::UserText);
        let tokens = window_slices::total_tokens(&slices);
        let subject = ContextSubject::Planned(Box::new(session));
        ContextReport { subject, view, request, limits, tokens, contents, slices, outlook: None }
    }

    /// Reports on a session on disk. `request` is its next request, `outlook` what the layers would do before it.
    pub fn of_stored(
        name: String,
        path: PathBuf,
        view: View,
        request: Request,
        limits: WindowLimits,
        outlook: LayerOutlook,
    ) -> ContextReport {
        let contents = PromptContents::of(&view, &request, view.prefix());
        let size = view.size();
        let slices = window_slices::scale_slices(
            window_slices::window_slices(&view, &contents, |_| true),
            size.tokens,
        );
        let tokens = size.tokens;
        let subject = ContextSubject::Stored { name, path, size: Box::new(size) };
        ContextReport { subject, view, request, limits, tokens, contents, slices, outlook: Some(outlook) }
    }

    /// Writes the report for people, in at most `columns` columns. Paths below `home` are shortened; a brief report has only
    /// the picture of the window.
    pub fn write_text(
        &self,
        home: Option<&Path>,
        style: TextStyle,
        columns: usize,
        is_brief: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        context_text::write_text(self, home, style, columns, is_brief, out)
    }

    /// Profile of the session's prefix.
    pub(crate) fn profile(&self) -> PrefixProfile {
        let prefix = self.view.prefix();
        PrefixProfile::from_name(prefix.and_then(|prefix| prefix.notes.profile.as_deref()))
    }

    /// Returns the report as one JSON object.
    pub fn to_json(&self) -> Value {
        context_json::context_object(self)
    }

    /// Returns the text of a part exactly as it would be sent; none if the request has no such part.
    pub fn part_text(&self, part: PromptPart) -> Option<String> {
        let text = match part {
            PromptPart::System => {
                let blocks: Vec<String> =
                    self.request.system_blocks().iter().map(|raw| text_of(raw)).collect();
                blocks.join("\n\n")
            }
            PromptPart::Tools => {
                let tools: Vec<&str> = self.request.tools().iter().map(|raw| raw.as_str()).collect();
                if tools.is_empty() { String::new() } else { format!("[{}]", tools.join(",\n")) }
            }
            PromptPart::Reminder => self.contents.context.text.clone(),
            PromptPart::Git => self.contents.section("git").map(|git| git.text.clone()).unwrap_or_default(),
        };
        (!text.is_empty()).then_some(text)
    }

    /// Returns why the git snapshot of a planned session was left out, if it was.
    pub fn git_omission(&self) -> Option<&PrefixOmission> {
        match &self.subject {
            ContextSubject::Planned(session) => {
                session.assembled.left_out.iter().find(|left| left.what == "git")
            }
            ContextSubject::Stored { .. } => None,
        }
    }
}
