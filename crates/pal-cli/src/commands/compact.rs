//! `pal compact`: a summary takes the place of what was said in a stored session.

mod edit;
mod report;

use std::io::Write;
use std::process::ExitCode;

use pal_agent::Preview;
use pal_context::{How, Order, Reach, Trigger, World};
use pal_engine::Compacted;
use pal_model::{EntryId, Source};
use pal_settings::Switch;
use pal_view::View;

use crate::arguments::{Compact, WayName};
use crate::aside;
use crate::errands::{Helper, Taken};
use crate::failure::Failure;
use crate::provider::{endpoint, has_access, usual_provider};
use crate::settings::Settings;
use crate::stored::{Stored, now};
pub(crate) use edit::{editor, run_editor};
use report::Report;

/// What to do where nothing can be cut off.
const LATER: &str = "name a later message; `pal view` shows them with their numbers";

pub(crate) fn compact(
    arguments: &Compact,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    if !settings.may_compact() {
        return Err(Failure::with_hint(
            format!("compaction is switched off by {}", settings.switches.why(Switch::Compact)),
            "take it back there",
        ));
    }
    let editor = if arguments.edit { Some(edit::editor(settings)?) } else { None };
    let mut stored = Stored::open(&arguments.session, arguments.model.as_deref(), settings)?;
    stored.engine.policy.provider_compaction = arguments.with == Some(WayName::Provider);
    // What is asked for is checked before anything is said about how it is done.
    let reach = reach(arguments, stored.session.view())?;
    let mut helper = Helper::alone(&stored.card, stored.cache_key.clone(), stored.files.clone());
    let only = ways(arguments, settings, &stored, &mut helper)?;
    let order = order(arguments, &stored, reach, only);
    let before = stored.session.view().clone();
    let compacted = stored.session.compaction(order, &stored.engine, now(), &mut helper);
    let (boundary, attempts) = match compacted.map_err(|error| failed(&error))? {
        Compacted::Done { boundary, attempts } => (boundary, attempts),
        Compacted::Refused(_) | Compacted::Blocked(_) => return Err(refused(arguments, &helper)),
    };
    let boundary = match editor {
        Some(editor) => Box::new(edit::edit(editor, &boundary, &before, &stored)?),
        None => boundary,
    };
    if !arguments.preview {
        stored.session.append_boundary(&boundary, now()).map_err(|error| failed(&error))?;
    }
    let report = Report {
        is_preview: arguments.preview,
        lines_max: usize::MAX,
        model: &stored.card.model,
        before: &before,
        reach,
        boundary: &boundary,
        attempts: &attempts,
        taken: &helper.taken,
        not_read: &helper.not_read,
    };
    if arguments.json {
        report.print_json(out)?
    } else {
        report.print(out)?
    }
    Ok(ExitCode::SUCCESS)
}

/// What a compaction of a session that is open would come to; at most so many lines of the summary.
pub(crate) fn preview(preview: &Preview, lines_max: usize, out: &mut dyn Write) -> Result<(), Failure> {
    let why = || String::from("it is gone, or not to be looked at");
    let not_read: Vec<(String, String)> = preview.not_read.iter().map(|path| (path.clone(), why())).collect();
    let report = Report {
        is_preview: true,
        lines_max,
        model: &preview.before.lens().card.model,
        before: &preview.before,
        reach: Reach::Whole,
        boundary: &preview.boundary,
        attempts: &[],
        taken: &Taken::default(),
        not_read: &not_read,
    };
    report.print(out)
}

/// The ways to a summary that may be tried; where a model is to be asked, the helper is connected to its provider.
fn ways(
    arguments: &Compact,
    settings: &Settings,
    stored: &Stored,
    helper: &mut Helper,
) -> Result<Option<Vec<How>>, Failure> {
    let only = match arguments.with {
        None => None,
        Some(WayName::Extractive) => return Ok(Some(vec![How::Extractive])),
        Some(WayName::Fork) => Some(vec![How::Fork]),
        // Leaving the oldest rounds out is part of it.
        Some(WayName::Plain) => Some(vec![How::Plain, How::Truncated]),
        Some(WayName::Provider) => {
            provider_can(arguments, stored)?;
            Some(vec![How::Provider])
        }
    };
    // Whoever asks for a provider or a way by name is told what is missing; whoever does not gets the summary that needs
    // neither.
    let is_free = only.is_none() && arguments.provider.is_none();
    let name = usual_provider(&stored.card);
    if is_free && !has_access(name, settings) {
        if let Err(Failure::Said { what, .. }) = endpoint(name, settings) {
            aside::tell(format_args!(
                "{what}; the summary is drawn from the log, word for word, without a model"
            ));
        }
        return Ok(Some(vec![How::Extractive]));
    }
    helper.connect(arguments.provider, settings)?;
    Ok(only)
}

fn provider_can(arguments: &Compact, stored: &Stored) -> Result<(), Failure> {
    if !stored.card.can.provider_compaction {
        return Err(Failure::with_hint(
            format!("{} has no compaction of its provider's own", stored.card.model),
            "leave --with out, or name another --model",
        ));
    }
    if arguments.from.is_some() || arguments.up_to.is_some() {
        return Err(Failure::with_hint(
            "the provider compacts a conversation as a whole, not from or up to a message",
            "leave --from and --up-to out, or take --with fork",
        ));
    }
    Ok(())
}

/// How much of the conversation is asked for, if there is anything to cut.
fn reach(arguments: &Compact, view: &View) -> Result<Reach, Failure> {
    let (name, reach): (_, fn(EntryId) -> Reach) = match (&arguments.from, &arguments.up_to) {
        (Some(from), _) => (from, Reach::From),
        (None, Some(up_to)) => (up_to, Reach::UpTo),
        (None, None) => return Ok(Reach::Whole),
    };
    let entry = entry(view, name)?;
    let shown: Vec<EntryId> = view.shown().map(|shown| shown.entry.id).collect();
    let at = shown.iter().position(|id| *id == entry).unwrap_or_default();
    let boundary = view.boundary().and_then(|boundary| shown.iter().rposition(|id| *id == boundary.id));
    let what = match boundary {
        Some(last) if at <= last + 1 => {
            format!("nothing stands between the last compaction and message {}", at + 1)
        }
        None if at == 0 => String::from("nothing stands before message 1"),
        _ => return Ok(reach(entry)),
    };
    Err(Failure::with_hint(what, LATER))
}

fn order(arguments: &Compact, stored: &Stored, reach: Reach, only: Option<Vec<How>>) -> Order {
    let instructions = arguments.instructions.join(" ");
    let transcript = stored.engine.place.transcript.clone();
    Order {
        trigger: Trigger::Manual,
        reach,
        source: Source::main(),
        instructions: Some(instructions).filter(|text| !text.trim().is_empty()),
        hook_instructions: None,
        notes: None,
        only,
        is_attended: true,
        world: World { not_restored: vec![transcript], ..World::default() },
        standing: pal_context::Standing::default(),
    }
}

/// The entry that a number of `pal view`, an id or the beginning of an id names.
fn entry(view: &View, name: &str) -> Result<EntryId, Failure> {
    let shown: Vec<EntryId> = view.shown().map(|shown| shown.entry.id).collect();
    if let Ok(number) = name.parse::<usize>()
        && name.len() < 8
    {
        let found = number.checked_sub(1).and_then(|at| shown.get(at).copied());
        return found.ok_or_else(|| {
            Failure::with_hint(
                format!("there is no message {number}: the view has {}", shown.len()),
                "`pal view` shows the messages with their numbers",
            )
        });
    }
    let mut found: Vec<EntryId> =
        shown.into_iter().filter(|id| !name.is_empty() && id.to_string().starts_with(name)).collect();
    found.dedup();
    match found.as_slice() {
        [id] => Ok(*id),
        [] => Err(Failure::with_hint(
            format!("no entry in sight has an id that begins with {name}"),
            "`pal view` shows the messages with their numbers, `pal view --json` with their ids",
        )),
        several => Err(Failure::with_hint(
            format!("{} entries have ids that begin with {name}", several.len()),
            "give more of the id, or the number that `pal view` shows",
        )),
    }
}

fn failed(error: &pal_engine::EngineError) -> Failure {
    Failure::new(error.to_string())
}

/// Nothing came of it; why was told when it happened.
fn refused(arguments: &Compact, helper: &Helper) -> Failure {
    let what = "nothing came of it: what the model sees is as it was";
    let has_reach = arguments.from.is_some() || arguments.up_to.is_some();
    match helper.taken.questions {
        0 if has_reach => Failure::with_hint(what, LATER),
        0 if arguments.with == Some(WayName::Extractive) => {
            Failure::with_hint(what, "`pal view` shows what is in sight")
        }
        0 => Failure::with_hint(what, "`pal view` shows what is in sight; --with extractive needs no model"),
        asked => Failure::with_hint(
            what,
            format!(
                "try --with extractive, which needs no model; {asked} answers of the model are booked in the log"
            ),
        ),
    }
}
