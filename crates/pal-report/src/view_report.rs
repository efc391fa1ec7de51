//! The messages that the model sees, one by one, and the decisions behind them.

mod decision_margin;
mod view_json;
mod view_text;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use pal_context::{ActionKind, LAYERS};
use pal_engine::{SessionConfig, pin_tokens};
use pal_model::{EntryBody, EntryId, LogEntry, Timestamp};
use pal_store::{LogReader, OmittedHistory, OpenError};
use pal_view::View;
use serde_json::Value;

use crate::text_style::TextStyle;
use decision_margin::DecisionMargin;

/// The messages of a view with their decisions, and what each layer would do before the next request.
pub struct ViewReport<'a> {
    view: &'a View,
    engine: &'a SessionConfig,
    margin: DecisionMargin<'a>,
    hidden: Option<HiddenMessages>,
    layers: Vec<LayerPlan>,
    /// Pinned texts with their tokens.
    pins: Vec<(String, u64)>,
    is_full: bool,
    /// Damage of the log.
    problems: &'a [String],
}

impl<'a> ViewReport<'a> {
    /// Builds the report; the layers are asked as of `moment`. With `is_full`, messages are shown whole.
    pub fn new(
        view: &'a View,
        engine: &'a SessionConfig,
        hidden: Option<HiddenMessages>,
        moment: Timestamp,
        is_full: bool,
        problems: &'a [String],
    ) -> ViewReport<'a> {
        let pins = view.state().pins.values().cloned();
        ViewReport {
            margin: DecisionMargin::of(view),
            layers: plan_layers(view, engine, moment),
            pins: pins.zip(pin_tokens(view).into_iter().map(|pin| pin.1)).collect(),
            view,
            engine,
            hidden,
            is_full,
            problems,
        }
    }

    /// Writes the report for people, in 80 columns.
    pub fn write_text(&self, style: TextStyle, out: &mut dyn Write) -> io::Result<()> {
        self.print(style, out)
    }

    /// Returns the report as one JSON object.
    pub fn to_json(&self) -> Value {
        view_json::view_object(self)
    }
}

/// Messages of the branch that the view does not show: those before the boundary in force, or before what a window may hold.
pub struct HiddenMessages {
    pub(crate) messages: usize,
    pub(crate) by_people: usize,
    pub(crate) bytes: usize,
    /// Reason, as it follows the count: "before the compaction".
    pub(crate) why: &'static str,
}

impl From<&OmittedHistory> for HiddenMessages {
    fn from(left_out: &OmittedHistory) -> HiddenMessages {
        HiddenMessages {
            messages: left_out.messages as usize,
            by_people: left_out.user_messages as usize,
            bytes: left_out.bytes as usize,
            why: "beyond any context window",
        }
    }
}

impl HiddenMessages {
    /// Counts what the boundary in force hides; none without a boundary. A session in our own format is read from its end, so
    /// the lines of its `log` before that are skimmed; otherwise the view holds the whole branch.
    pub fn before_boundary(view: &View, log: Option<&Path>) -> Result<Option<HiddenMessages>, OpenError> {
        let Some(boundary) = view.boundary().map(|boundary| boundary.id) else { return Ok(None) };
        let Some(path) = log else { return Ok(Some(count_hidden(view, boundary))) };
        let shown: BTreeSet<_> = view.visible_entries().map(|shown| shown.entry.id).collect();
        let mut hidden = HiddenMessages { messages: 0, by_people: 0, bytes: 0, why: "before the compaction" };
        let reader = LogReader::open(path)?;
        reader.skim_ancestors(boundary, &mut |head| {
            if matches!(head.kind.as_str(), "user" | "assistant" | "attachment") && !shown.contains(&head.id)
            {
                hidden.messages += 1;
                hidden.by_people +=
                    usize::from(head.kind == "user" && head.origin.as_deref() == Some("person"));
                hidden.bytes += head.bytes as usize;
            }
        })?;
        Ok(Some(hidden))
    }
}

/// The action that a layer plans.
struct LayerPlan {
    name: &'static str,
    would: String,
    reason: String,
}

fn plan_layers(view: &View, engine: &SessionConfig, moment: Timestamp) -> Vec<LayerPlan> {
    LAYERS
        .iter()
        .map(|layer| {
            let act = engine.plan(*layer, view, moment);
            let would = match &act.kind {
                ActionKind::Nothing => String::from("nothing"),
                ActionKind::Decide(proposals) => match proposals.len() {
                    1 => String::from("1 decision"),
                    count => format!("{count} decisions"),
                },
                ActionKind::AskProvider { .. } => String::from("the provider"),
                ActionKind::Fold(_) => String::from("fold"),
                ActionKind::Compact => String::from("compact"),
                ActionKind::Stop => String::from("stop"),
            };
            LayerPlan { name: layer.name(), would, reason: act.reason }
        })
        .collect()
}

fn count_hidden(view: &View, boundary: EntryId) -> HiddenMessages {
    let shown: BTreeSet<_> = view.visible_entries().map(|shown| shown.entry.id).collect();
    let mut hidden = HiddenMessages { messages: 0, by_people: 0, bytes: 0, why: "before the compaction" };
    for entry in view.branch().iter().take_while(|entry| entry.id != boundary) {
        if is_message(entry) && !shown.contains(&entry.id) {
            hidden.messages += 1;
            hidden.by_people += usize::from(is_from_person(entry));
            hidden.bytes += entry.line.len();
        }
    }
    hidden
}

fn is_message(entry: &LogEntry) -> bool {
    matches!(entry.body, EntryBody::User(_) | EntryBody::Assistant(_) | EntryBody::Attachment(_))
}

fn is_from_person(entry: &LogEntry) -> bool {
    matches!(&entry.body, EntryBody::User(user) if user.origin == pal_model::MessageOrigin::Person)
}
