//! `pal tokens`: what fills the context, and how good the estimates are.

use std::io::Write;
use std::process::ExitCode;

use pal_model::{Body, Usage};
use pal_view::{Calibration, Estimator, Ledger, Limits, Scope, Size, View};
use serde_json::json;

use crate::arguments::Tokens;
use crate::failure::Failure;
use crate::session::{Session, card, lens};
use crate::settings::Settings;
use crate::table::{Table, bar, bold, rounded, thousands, yellow};

/// One call: what was expected of its prompt and what the provider reported.
struct Call {
    number: usize,
    model: String,
    /// By the anchor: what the response before reported, plus an estimate of what came after it.
    expected: u64,
    /// What the response before reported, if it did.
    anchor: Option<u64>,
    /// Estimated growth since the anchor, raw.
    growth: f64,
    /// None if the provider's count was not recorded.
    reported: Option<u64>,
}

pub(crate) fn tokens(
    arguments: &Tokens,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let session = Session::read(&arguments.file, settings)?;
    let model = arguments.model.clone().or_else(|| session.model_of_request(session.branch.len()));
    let model = model.ok_or_else(|| {
        Failure::with_hint("the session does not say which model it asked", "name one with --model")
    })?;
    let card = card(settings, &model);
    let mut view =
        View::new(lens(&card, arguments.estimator.map_or(settings.estimator, Into::into), Scope::Current));
    let mut calls: Vec<Call> = Vec::new();
    let mut learnt = Calibration::default();
    let mut asked: Option<(Size, String)> = None;
    for entry in &session.branch {
        match &entry.body {
            Body::Request(request) if request.source.is_conversation() => {
                asked = Some((view.size(), request.model.to_string()));
            }
            Body::Response(response) if response.source.is_conversation() => {
                if let Some((size, model)) = asked.take() {
                    let estimator = view.estimator().corrected(learnt.factor());
                    let call = call(calls.len() + 1, model, &size, estimator, &response.usage);
                    call.teach(&mut learnt);
                    calls.push(call);
                }
            }
            _ => {}
        }
        view.push(entry.clone());
    }
    let limits = Limits::new(&card, &settings.window_for(&model));
    if arguments.json {
        print_json(&view, &limits, &calls, &learnt, out)?;
    } else {
        for problem in &session.problems {
            writeln!(out, "{}", yellow(problem))?;
        }
        print_size(&view, &limits, &learnt, out)?;
        print_calls(&calls, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A call as it looked before it was made: with what the calls before it taught about the estimator.
fn call(number: usize, model: String, size: &Size, estimator: Estimator, usage: &Usage) -> Call {
    let anchor = size.anchor.as_ref().map(|anchor| anchor.tokens);
    let expected = match anchor {
        Some(anchor) => (anchor + estimator.total(size.estimated)).saturating_sub(size.freed),
        None => size.tokens,
    };
    let reported = usage.has_prompt().then(|| usage.prompt_tokens());
    Call { number, model, expected, anchor, growth: size.estimated, reported }
}

impl Call {
    /// The growth since the anchor, estimated and reported, is a lesson.
    fn teach(&self, learnt: &mut Calibration) {
        if let (Some(anchor), Some(reported)) = (self.anchor, self.reported)
            && reported > anchor
        {
            learnt.observe(self.growth, reported - anchor);
        }
    }

    fn error_percent(&self) -> Option<f64> {
        let reported = self.reported? as f64;
        Some(100.0 * (self.expected as f64 - reported) / reported)
    }
}

/// The error at a share of all calls that rest on an anchor.
fn error_at(calls: &[Call], share: f64) -> Option<f64> {
    let anchored = calls.iter().filter(|call| call.anchor.is_some());
    let mut errors: Vec<f64> = anchored.filter_map(Call::error_percent).map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    errors.get(((errors.len() as f64 - 1.0) * share).round().max(0.0) as usize).copied()
}

fn print_size(
    view: &View,
    limits: &Limits,
    learnt: &Calibration,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let size = view.size();
    let Ledger { by_category, wasted_on_rereads } = view.ledger();
    let total: f64 = by_category.iter().map(|(_, tokens)| tokens).sum();
    writeln!(
        out,
        "{}",
        bold(&format!("Context: {} tokens for {}", thousands(size.tokens), view.lens().card.model))
    )?;
    match &size.anchor {
        Some(anchor) => writeln!(
            out,
            "  anchor: response {} reported {}; {} estimated after it, {} freed since",
            anchor.response,
            thousands(anchor.tokens),
            thousands(view.estimator().total(size.estimated)),
            thousands(size.freed)
        )?,
        None => {
            writeln!(out, "  no response behind the last boundary reports usage: everything is estimated")?
        }
    }
    writeln!(
        out,
        "  factor learnt from this session's reports, and used below: {:.3}",
        learnt.factor().as_f64()
    )?;
    writeln!(out)?;
    let mut table = Table::new(&["category", "estimated", "share", ""], &[0, 3]);
    for (category, tokens) in by_category.iter().filter(|(_, tokens)| *tokens > 0.0) {
        let share = tokens / total.max(1.0);
        table.row(vec![
            category.name().into(),
            rounded(*tokens),
            format!("{:.1} %", share * 100.0),
            bar(share),
        ]);
    }
    table.row(vec!["all".into(), rounded(total), String::new(), String::new()]);
    table.row(vec![
        "of it wasted on re-reads".into(),
        rounded(wasted_on_rereads),
        String::new(),
        String::new(),
    ]);
    table.write(out)?;
    writeln!(out)?;
    print_limits(&size, limits, out)
}

fn print_limits(size: &Size, limits: &Limits, out: &mut dyn Write) -> Result<(), Failure> {
    let fill = limits.fill(size.tokens);
    let state = |reached: bool| String::from(if reached { "reached" } else { "" });
    let mut table = Table::new(&["threshold", "tokens", "state"], &[0, 2]);
    table.row(vec!["warning, error".into(), thousands(limits.warning), state(fill.warning)]);
    match limits.auto_compact {
        Some(threshold) => {
            table.row(vec!["auto-compact".into(), thousands(threshold), state(fill.auto_compact)])
        }
        None => table.row(vec!["auto-compact".into(), "off".into(), String::new()]),
    }
    table.row(vec!["blocking".into(), thousands(limits.blocking), state(fill.blocking)]);
    table.row(vec!["effective window".into(), thousands(limits.effective), String::new()]);
    table.row(vec!["window".into(), thousands(limits.window), String::new()]);
    table.write(out)?;
    writeln!(out, "{:.0} % left", fill.percent_left)?;
    Ok(())
}

fn print_calls(calls: &[Call], out: &mut dyn Write) -> Result<(), Failure> {
    if calls.is_empty() {
        writeln!(out, "\nThe session has no responses.")?;
        return Ok(());
    }
    writeln!(out)?;
    let mut table = Table::new(&["call", "expected", "reported", "error", "rests on", "model"], &[4, 5]);
    for call in calls {
        table.row(vec![
            call.number.to_string(),
            thousands(call.expected),
            call.reported.map_or("–".into(), thousands),
            call.error_percent().map_or(String::new(), |error| format!("{error:+.1} %")),
            if call.anchor.is_some() { "usage".into() } else { "estimate".into() },
            call.model.clone(),
        ]);
    }
    table.write(out)?;
    if let (Some(half), Some(most)) = (error_at(calls, 0.5), error_at(calls, 0.9)) {
        writeln!(out, "error where usage was known: p50 {half:.1} %, p90 {most:.1} %")?;
    }
    Ok(())
}

fn print_json(
    view: &View,
    limits: &Limits,
    calls: &[Call],
    learnt: &Calibration,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let size = view.size();
    let fill = limits.fill(size.tokens);
    let Ledger { by_category, wasted_on_rereads } = view.ledger();
    let ledger: serde_json::Map<String, serde_json::Value> = by_category
        .iter()
        .map(|(category, tokens)| (category.name().replace(' ', "_"), json!(tokens.round())))
        .collect();
    let report = json!({
        "model": view.lens().card.model,
        "tokens": size.tokens,
        "anchor": size.anchor.as_ref().map(|anchor| json!({"response": anchor.response, "tokens": anchor.tokens})),
        "estimated": size.estimated.round(),
        "freed": size.freed,
        "factor": learnt.factor().as_f64(),
        "ledger": ledger,
        "wasted_on_rereads": wasted_on_rereads.round(),
        "limits": {"window": limits.window, "effective": limits.effective, "auto_compact": limits.auto_compact,
                   "warning": limits.warning, "blocking": limits.blocking},
        "state": {"percent_left": fill.percent_left, "warning": fill.warning, "auto_compact": fill.auto_compact,
                  "blocking": fill.blocking},
        "calls": calls.iter().map(|call| json!({
            "number": call.number, "model": call.model, "expected": call.expected, "reported": call.reported,
            "anchored": call.anchor.is_some(),
        })).collect::<Vec<_>>(),
    });
    writeln!(out, "{report}")?;
    Ok(())
}
