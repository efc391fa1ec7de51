//! `pal view`: what the model would see now, message by message, and why.

mod json;
mod margin;
mod page;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pal_context::{LAYERS, What};
use pal_engine::{Engine, pin_tokens};
use pal_model::{Body, Entry, EntryId};
use pal_store::{OmittedHistory, Reader};
use pal_view::{Scope, View as ContextView};

use crate::arguments::View;
use crate::colour::Colours;
use crate::failure::Failure;
use crate::session::{Session, card, is_log, lens};
use crate::settings::Settings;
use crate::stored::{engine, find, now};
use margin::Margin;

/// What there is to be shown.
struct Page<'a> {
    view: &'a ContextView,
    engine: &'a Engine,
    /// Decisions by what they act on.
    margin: Margin<'a>,
    /// Messages of the branch that the view does not show, because a boundary hides them or no window holds them.
    hidden: Option<Hidden>,
    layers: Vec<LayerLine>,
    pins: Vec<(String, u64)>,
    is_full: bool,
    /// Damage of the log.
    problems: &'a [String],
}

/// What lies before the boundary in force, or before what a window may hold.
struct Hidden {
    messages: usize,
    by_people: usize,
    bytes: usize,
    why: &'static str,
}

impl From<&OmittedHistory> for Hidden {
    fn from(left_out: &OmittedHistory) -> Hidden {
        Hidden {
            messages: left_out.messages as usize,
            by_people: left_out.by_people as usize,
            bytes: left_out.bytes as usize,
            why: "that no context window holds",
        }
    }
}

/// What a layer would do.
struct LayerLine {
    name: &'static str,
    would: String,
    reason: String,
}

pub(crate) fn view(arguments: &View, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let path = find(&arguments.session, settings)?;
    // The view as it is now needs the end of a log only.
    let session = match arguments.at {
        None if is_log(&path) => {
            Session::read_resumed(&path).map_err(|error| Failure::new(error.to_string()))?
        }
        _ => Session::read(&path, settings)?,
    };
    let (end, model) = session.looked_at(arguments.at, arguments.model.as_ref())?;
    let card = card(settings, &model);
    let engine = engine(&card, &path, settings);
    let totals = session.left_out.as_ref().map(|left_out| left_out.totals);
    let view = ContextView::resumed(
        lens(&card, settings.estimator, Scope::Current),
        session.branch[..end].to_vec(),
        totals,
    );
    // A look back is a look with the eyes of then.
    let moment = match arguments.at {
        Some(_) => session.branch.get(end).map_or_else(now, |entry| entry.at),
        None => now(),
    };
    let page = Page {
        margin: Margin::of(&view),
        hidden: match &session.left_out {
            Some(left_out) => Some(Hidden::from(left_out)),
            None => hidden(&view, &path)?,
        },
        problems: &session.problems,
        layers: layers(&view, &engine, moment),
        pins: view
            .state()
            .pins
            .values()
            .cloned()
            .zip(pin_tokens(&view).into_iter().map(|pin| pin.1))
            .collect(),
        is_full: arguments.full,
        view: &view,
        engine: &engine,
    };
    if arguments.json {
        json::print(&page, out)?
    } else {
        page.print(Colours::of(arguments.colour), out)?
    }
    Ok(ExitCode::SUCCESS)
}

fn layers(view: &ContextView, engine: &Engine, moment: pal_model::Timestamp) -> Vec<LayerLine> {
    LAYERS
        .iter()
        .map(|layer| {
            let act = engine.plan(*layer, view, moment);
            let would = match &act.what {
                What::Nothing => String::from("nothing"),
                What::Decide(proposals) => match proposals.len() {
                    1 => String::from("1 decision"),
                    count => format!("{count} decisions"),
                },
                What::AskProvider { .. } => String::from("the provider"),
                What::Fold(_) => String::from("fold"),
                What::Compact => String::from("compact"),
                What::Stop => String::from("stop"),
            };
            LayerLine { name: layer.name(), would, reason: act.reason }
        })
        .collect()
}

/// What the boundary in force hides, if the file still has it. Of a log that was read from its end, the lines before are
/// skimmed.
fn hidden(view: &ContextView, path: &Path) -> Result<Option<Hidden>, Failure> {
    let Some(boundary) = view.boundary().map(|boundary| boundary.id) else { return Ok(None) };
    if !is_log(path) {
        return Ok(Some(hidden_in(view, boundary)));
    }
    let shown: BTreeSet<_> = view.shown().map(|shown| shown.entry.id).collect();
    let mut hidden = Hidden { messages: 0, by_people: 0, bytes: 0, why: "before the compaction" };
    let reader = Reader::open(path).map_err(|error| Failure::new(error.to_string()))?;
    let skimmed = reader.skim_ancestors(boundary, &mut |head| {
        if matches!(head.kind.as_str(), "user" | "assistant" | "attachment") && !shown.contains(&head.id) {
            hidden.messages += 1;
            hidden.by_people += usize::from(head.kind == "user" && head.origin.as_deref() == Some("person"));
            hidden.bytes += head.bytes as usize;
        }
    });
    skimmed.map_err(|error| Failure::new(error.to_string()))?;
    Ok(Some(hidden))
}

fn hidden_in(view: &ContextView, boundary: EntryId) -> Hidden {
    let shown: BTreeSet<_> = view.shown().map(|shown| shown.entry.id).collect();
    let mut hidden = Hidden { messages: 0, by_people: 0, bytes: 0, why: "before the compaction" };
    for entry in view.branch().iter().take_while(|entry| entry.id != boundary) {
        if is_said(entry) && !shown.contains(&entry.id) {
            hidden.messages += 1;
            hidden.by_people += usize::from(is_of_a_person(entry));
            hidden.bytes += entry.line.len();
        }
    }
    hidden
}

fn is_said(entry: &Entry) -> bool {
    matches!(entry.body, Body::User(_) | Body::Assistant(_) | Body::Attachment(_))
}

fn is_of_a_person(entry: &Entry) -> bool {
    matches!(&entry.body, Body::User(user) if user.origin == pal_model::Origin::Person)
}
