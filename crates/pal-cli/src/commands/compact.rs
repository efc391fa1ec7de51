//! `pal compact`: replaces the conversation of a stored session by a summary.

mod compaction_hooks;
mod compaction_report;
mod summary_editor;

use std::io::Write;
use std::process::ExitCode;

use pal_agent::CompactionPreview;
use pal_agent::approved_plan;
use pal_context::{CompactionRange, CompactionRequest, CompactionTrigger, RestoreSources, SummaryMethod};
use pal_engine::CompactionResult;
use pal_model::{ModelCard, RequestSource};
use pal_settings::KillSwitch;
use pal_view::{Lens, ViewScope};

use crate::arguments::{CompactArgs, SummaryMethodArg};
use crate::compaction_range::{LATER, find_range};
use crate::failure::Failure;
use crate::loaded_session::lens;
use crate::notices::print_notice;
use crate::open_session::{OpenSession, now};
use crate::provider::{endpoint, has_access, usual_provider};
use crate::settings::{Settings, full_model_name};
use crate::summary_client::{QuestionTotals, SummaryClient};
use compaction_hooks::CompactionHooks;
use compaction_report::CompactionReport;
pub(crate) use summary_editor::{editor, run_editor};

pub(crate) fn compact(
    arguments: &CompactArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    if !settings.may_compact() {
        return Err(Failure::with_hint(
            format!("compaction is switched off by {}", settings.switches.why(KillSwitch::Compact)),
            "remove that switch first",
        ));
    }
    let editor = if arguments.edit { Some(summary_editor::editor(settings)?) } else { None };
    let mut stored = OpenSession::open(&arguments.session, arguments.model.as_deref(), settings)?;
    if let Some(with) = arguments.with {
        stored.engine.policy.provider_compaction = with == SummaryMethodArg::Provider;
    }
    if arguments.model.is_none() {
        stored.engine.compaction.lens = compaction_lens(&stored.card, settings);
    }
    // The range is checked before the method is chosen.
    let reach = find_range(arguments.from.as_deref(), arguments.up_to.as_deref(), stored.session.view())?;
    let mut helper =
        SummaryClient::without_provider(&stored.card, stored.cache_key.clone(), stored.files.clone());
    let only = summary_methods(arguments, settings, &stored, &mut helper)?;
    let mut order = compaction_request(arguments, &stored, reach, only);
    // A preview has no effects, so no hook runs.
    let hooks = (!arguments.preview).then(|| CompactionHooks::new(&stored, settings));
    if let Some(hooks) = &hooks {
        order.hook_instructions = hooks.before(order.instructions.as_deref())?;
    }
    let before = stored.session.view().clone();
    let compacted = stored.session.compaction(order, &stored.engine, now(), &mut helper);
    let (boundary, attempts) = match compacted.map_err(|error| engine_failure(&error))? {
        CompactionResult::Done { boundary, attempts } => (boundary, attempts),
        CompactionResult::Refused(_) | CompactionResult::Blocked(_) => {
            return Err(refusal(arguments, &helper));
        }
    };
    let boundary = match editor {
        Some(editor) => Box::new(summary_editor::edit_summary(editor, &boundary, &before, &stored)?),
        None => boundary,
    };
    if let Some(hooks) = &hooks {
        stored.session.append_boundary(&boundary, now()).map_err(|error| engine_failure(&error))?;
        for text in hooks.after(&boundary) {
            stored.session.attach("hook", &text, now()).map_err(|error| engine_failure(&error))?;
        }
    }
    let report = CompactionReport {
        is_preview: arguments.preview,
        lines_max: usize::MAX,
        model: helper.totals.model.as_deref().unwrap_or(&stored.card.model),
        before: &before,
        reach,
        boundary: &boundary,
        attempts: &attempts,
        taken: &helper.totals,
        not_read: &helper.not_read,
    };
    if arguments.json {
        report.print_json(out)?
    } else {
        report.print(out)?
    }
    Ok(ExitCode::SUCCESS)
}

/// Previews a compaction of an open session, with at most `lines_max` lines of the summary.
pub(crate) fn preview(
    preview: &CompactionPreview,
    reach: CompactionRange,
    lines_max: usize,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let why = || String::from("it is gone or not readable");
    let not_read: Vec<(String, String)> = preview.not_read.iter().map(|path| (path.clone(), why())).collect();
    let report = CompactionReport {
        is_preview: true,
        lines_max,
        model: &preview.before.lens().card.model,
        before: &preview.before,
        reach,
        boundary: &preview.boundary,
        attempts: &[],
        taken: &QuestionTotals::default(),
        not_read: &not_read,
    };
    report.print(out)
}

/// Returns the summary methods that may be tried; connects the client if a model is needed.
fn summary_methods(
    arguments: &CompactArgs,
    settings: &Settings,
    stored: &OpenSession,
    helper: &mut SummaryClient,
) -> Result<Option<Vec<SummaryMethod>>, Failure> {
    let only = match arguments.with {
        None => None,
        Some(SummaryMethodArg::Extractive) => return Ok(Some(vec![SummaryMethod::Extractive])),
        Some(SummaryMethodArg::Fork) => Some(vec![SummaryMethod::Fork]),
        // Dropping the oldest rounds is part of it.
        Some(SummaryMethodArg::Plain) => Some(vec![SummaryMethod::Plain, SummaryMethod::Truncated]),
        Some(SummaryMethodArg::Provider) => {
            provider_can(arguments, stored)?;
            Some(vec![SummaryMethod::Provider])
        }
    };
    // Missing access is an error only for an explicit provider or method; otherwise the summary is made without a model.
    let is_free = only.is_none() && arguments.provider.is_none();
    let name = usual_provider(&stored.card);
    if is_free && !has_access(name, settings) {
        if let Err(Failure::Error { what, .. }) = endpoint(name, settings) {
            print_notice(format_args!("{what}; the summary is extracted from the log without a model"));
        }
        return Ok(Some(vec![SummaryMethod::Extractive]));
    }
    helper.connect(arguments.provider, settings)?;
    Ok(only)
}

fn provider_can(arguments: &CompactArgs, stored: &OpenSession) -> Result<(), Failure> {
    if !stored.card.can.provider_compaction {
        return Err(Failure::with_hint(
            format!("the provider of {} has no compaction of its own", stored.card.model),
            "omit --with, or choose another --model",
        ));
    }
    if arguments.from.is_some() || arguments.up_to.is_some() {
        return Err(Failure::with_hint(
            "the provider compacts whole conversations only, not from or up to a message",
            "omit --from and --up-to, or use --with fork",
        ));
    }
    Ok(())
}

fn compaction_request(
    arguments: &CompactArgs,
    stored: &OpenSession,
    reach: CompactionRange,
    only: Option<Vec<SummaryMethod>>,
) -> CompactionRequest {
    let instructions = arguments.instructions.join(" ");
    let transcript = stored.engine.paths.transcript.clone();
    CompactionRequest {
        trigger: CompactionTrigger::Manual,
        reason: None,
        range: reach,
        source: RequestSource::main(),
        instructions: Some(instructions).filter(|text| !text.trim().is_empty()),
        hook_instructions: None,
        notes: None,
        methods: only,
        is_attended: true,
        sources: RestoreSources {
            plan: approved_plan(stored.session.view()),
            not_restored: vec![transcript],
            ..RestoreSources::default()
        },
        params: pal_context::RequestParams::default(),
    }
}

/// Model that the setting `compaction.model` names, if the provider of the session's model offers it.
fn compaction_lens(card: &ModelCard, settings: &Settings) -> Option<Lens> {
    let name = settings.context_policy().compaction_model?;
    let other = settings.cards.find(&full_model_name(&name, settings)).card;
    let is_other = other.model != card.model && usual_provider(&other) == usual_provider(card);
    is_other.then(|| lens(&other, settings.estimator, ViewScope::Current))
}

fn engine_failure(error: &pal_engine::EngineError) -> Failure {
    Failure::new(error.to_string())
}

/// Error for a compaction without a result; the reason was printed when it happened.
fn refusal(arguments: &CompactArgs, helper: &SummaryClient) -> Failure {
    let what = "no compaction was made; the context is unchanged";
    let has_reach = arguments.from.is_some() || arguments.up_to.is_some();
    match helper.totals.questions {
        0 if has_reach => Failure::with_hint(what, LATER),
        0 if arguments.with == Some(SummaryMethodArg::Extractive) => {
            Failure::with_hint(what, "`pal view` shows the current context")
        }
        0 => {
            Failure::with_hint(what, "`pal view` shows the current context; --with extractive needs no model")
        }
        asked => Failure::with_hint(
            what,
            format!(
                "try --with extractive, which needs no model; {asked} model answers are recorded in the log"
            ),
        ),
    }
}
