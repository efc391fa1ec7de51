//! `pal context`: what goes into a request before anybody has said a word, and how full the window is.

mod contents;
mod here;
mod json;
mod marks;
mod next;
mod page;
mod picture;
mod show;
mod slices;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use pal_context::Standing;
use pal_context::cache::lifetime_of;
use pal_view::{Limits, RenderOptions, Request, Scope, Size, View};

use crate::arguments::Context;
use crate::aside;
use crate::books;
use crate::colour::{Colours, columns};
use crate::failure::Failure;
use crate::session::{Session, card, lens};
use crate::settings::Settings;
use crate::stored::{MAX_TOKENS, eligibility, engine, find, model_card, now, policy};
use contents::Contents;
use here::Here;
use next::Next;
pub(crate) use page::scope_name;
use slices::Slice;

/// The model that is counted for when nothing names one.
const MODEL: &str = "claude-opus-5-5";

/// What there is to be shown.
struct Look {
    /// Where the session would start, or which session it is.
    subject: Subject,
    view: View,
    request: Request,
    limits: Limits,
    /// Tokens of the context.
    tokens: u64,
    contents: Contents,
    slices: Vec<Slice>,
    /// What would leave next; none of a session that has not begun.
    next: Option<Next>,
}

/// What is looked at.
enum Subject {
    /// A session that would start.
    Start(Box<Here>),
    /// A session that is stored.
    Stored {
        /// How people call it.
        name: String,
        path: PathBuf,
        size: Size,
    },
}

pub(crate) fn context(
    arguments: &Context,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let look = match &arguments.session {
        Some(session) => stored(session, arguments, settings)?,
        None => start(arguments, settings)?,
    };
    match arguments.show {
        Some(part) => show::print(&look, part, out)?,
        None if arguments.json => writeln!(out, "{}", json::of(&look))?,
        None => {
            let colours = Colours::of(arguments.colour);
            let home = settings.user_home.as_deref();
            page::print(&look, home, colours, columns(), arguments.brief, out)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A session that would start.
fn start(arguments: &Context, settings: &Settings) -> Result<Look, Failure> {
    let card = card(settings, arguments.model.as_deref().unwrap_or(MODEL));
    let lens = lens(&card, settings.estimator, Scope::Current);
    let here = Here::gather(arguments, &card, lens.estimator, settings)?;
    let view = View::of(lens, here.entries()?);
    let limits = Limits::new(&card, &settings.window_for(&card.model));
    let request = next_request(&view, settings);
    let contents =
        Contents::of(&view, &request, Some(&here.assembled.prefix)).with_files(&here, view.estimator());
    // The message that stands in for the first one is nobody's.
    let slices = slices::of(&view, &contents, |category| category != pal_view::Category::UserText);
    let tokens = slices::sum(&slices);
    let subject = Subject::Start(Box::new(here));
    Ok(Look { subject, view, request, limits, tokens, contents, slices, next: None })
}

/// A session that is stored.
fn stored(name: &str, arguments: &Context, settings: &Settings) -> Result<Look, Failure> {
    let path = find(name, settings)?;
    let session = Session::read(&path, settings)?;
    for problem in &session.problems {
        aside::tell(problem);
    }
    let card = model_card(&session, arguments.model.as_deref(), settings)?;
    let name = books::name(&session, &path);
    let view = View::of(lens(&card, settings.estimator, Scope::Current), session.branch);
    let limits = Limits::new(&card, &settings.window_for(&card.model));
    let request = next_request(&view, settings);
    let contents = Contents::of(&view, &request, view.prefix());
    let size = view.size();
    let slices = slices::scaled(slices::of(&view, &contents, |_| true), size.tokens);
    let tokens = size.tokens;
    let next = Next::of(&view, &engine(&card, &path, settings), now());
    Ok(Look {
        subject: Subject::Stored { name, path, size },
        view,
        request,
        limits,
        tokens,
        contents,
        slices,
        next: Some(next),
    })
}

/// The request that would leave next, with its marks.
fn next_request(view: &View, settings: &Settings) -> Request {
    let (lifetime, _) = lifetime_of(view, &policy(settings), eligibility(settings), None);
    let options = RenderOptions {
        max_tokens: MAX_TOKENS.min(view.lens().card.max_output),
        stream: true,
        spell_out_unseen: false,
    };
    Standing { lifetime, ..Standing::default() }.request(view, options)
}
