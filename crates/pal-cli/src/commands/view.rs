//! `pal view`: what the model would see now, message by message, and why.

mod json;
mod margin;
mod page;

use std::io::Write;
use std::process::ExitCode;

use pal_context::{LAYERS, What};
use pal_engine::{Engine, pin_tokens};
use pal_model::{Body, Entry};
use pal_view::{Scope, View as ContextView};

use crate::arguments::View;
use crate::colour::Colours;
use crate::failure::Failure;
use crate::session::{Session, card, lens};
use crate::settings::Settings;
use crate::stored::{engine, find, now};
use margin::Margin;

/// What there is to be shown.
struct Page<'a> {
    view: &'a ContextView,
    engine: &'a Engine,
    /// Decisions by what they act on.
    margin: Margin<'a>,
    /// Messages of the branch that the view does not show, because a boundary hides them.
    hidden: Option<Hidden>,
    layers: Vec<LayerLine>,
    pins: Vec<(String, u64)>,
    is_full: bool,
}

/// What lies before the boundary in force.
struct Hidden {
    messages: usize,
    by_people: usize,
    bytes: usize,
}

/// What a layer would do.
struct LayerLine {
    name: &'static str,
    would: String,
    reason: String,
}

pub(crate) fn view(arguments: &View, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let path = find(&arguments.session, settings)?;
    let session = Session::read(&path, settings)?;
    let (end, model) = session.looked_at(arguments.at, arguments.model.as_ref())?;
    let card = card(settings, &model);
    let engine = engine(&card, &path, settings);
    let view =
        ContextView::of(lens(&card, settings.estimator, Scope::Current), session.branch[..end].to_vec());
    // A look back is a look with the eyes of then.
    let moment = match arguments.at {
        Some(_) => session.branch.get(end).map_or_else(now, |entry| entry.at),
        None => now(),
    };
    let page = Page {
        margin: Margin::of(&view),
        hidden: hidden(&view),
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

/// What the boundary in force hides, if the file still has it.
fn hidden(view: &ContextView) -> Option<Hidden> {
    let boundary = view.boundary()?.id;
    let shown: std::collections::BTreeSet<_> = view.shown().map(|shown| shown.entry.id).collect();
    let mut hidden = Hidden { messages: 0, by_people: 0, bytes: 0 };
    for entry in view.branch().iter().take_while(|entry| entry.id != boundary) {
        if is_said(entry) && !shown.contains(&entry.id) {
            hidden.messages += 1;
            hidden.by_people += usize::from(is_of_a_person(entry));
            hidden.bytes += entry.line.len();
        }
    }
    Some(hidden)
}

fn is_said(entry: &Entry) -> bool {
    matches!(entry.body, Body::User(_) | Body::Assistant(_) | Body::Attachment(_))
}

fn is_of_a_person(entry: &Entry) -> bool {
    matches!(&entry.body, Body::User(user) if user.origin == pal_model::Origin::Person)
}
