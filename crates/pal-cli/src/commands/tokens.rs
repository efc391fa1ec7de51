//! `pal tokens`: the context by category, and the accuracy of the estimates.

use std::io::Write;
use std::process::ExitCode;

use pal_model::text::group_digits;
use pal_model::{EntryBody, Usage};
use pal_report::{TextTable, draw_bar, format_tokens};
use pal_view::{Calibration, ContextBreakdown, ContextSize, Estimator, View, ViewScope, WindowLimits};
use serde_json::json;

use crate::arguments::TokensArgs;
use crate::failure::Failure;
use crate::loaded_session::{LoadedSession, card, lens};
use crate::notices::{Notices, print_notice};
use crate::session_lookup::find_or_newest;
use crate::settings::Settings;
use crate::terminal_style::{auto_style, bold, yellow};

/// A call: the estimated and the reported size of its prompt.
struct CallEstimate {
    number: usize,
    model: String,
    /// Usage reported by the previous response, plus the estimated growth since.
    expected: u64,
    /// Usage reported by the previous response.
    anchor: Option<u64>,
    /// Estimated growth since the anchor, uncorrected.
    growth: f64,
    /// None if the provider reported no usage.
    reported: Option<u64>,
}

pub(crate) fn tokens(
    arguments: &TokensArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let file = find_or_newest(arguments.session.as_deref(), settings)?;
    let session = LoadedSession::read(&file, settings)?;
    let model = arguments.model.clone().or_else(|| session.model_of_request(session.branch.len()));
    let model =
        model.ok_or_else(|| Failure::with_hint("the session names no model", "name one with --model"))?;
    let card = card(settings, &model, &Notices::to_stderr());
    let mut view = View::new(lens(
        &card,
        arguments.estimator.map_or(settings.estimator, Into::into),
        ViewScope::Current,
    ));
    let mut calls: Vec<CallEstimate> = Vec::new();
    let mut learnt = Calibration::default();
    let mut asked: Option<(ContextSize, String)> = None;
    for entry in &session.branch {
        match &entry.body {
            EntryBody::Request(request) if request.source.is_conversation() => {
                asked = Some((view.size(), request.model.to_string()));
            }
            EntryBody::Response(response) if response.source.is_conversation() => {
                if let Some((size, model)) = asked.take() {
                    let estimator = view.estimator().corrected(learnt.factor());
                    let call = call(calls.len() + 1, model, &size, estimator, &response.usage);
                    call.calibrate(&mut learnt);
                    calls.push(call);
                }
            }
            _ => {}
        }
        view.push(entry.clone());
    }
    let limits = WindowLimits::new(&card, &settings.window_for(&card.model));
    if arguments.json {
        session.problems.iter().for_each(print_notice);
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

/// Estimates a call as of before it was made, corrected by the calls before it.
fn call(
    number: usize,
    model: String,
    size: &ContextSize,
    estimator: Estimator,
    usage: &Usage,
) -> CallEstimate {
    let anchor = size.anchor.as_ref().map(|anchor| anchor.tokens);
    let expected = match anchor {
        Some(anchor) => (anchor + estimator.total(size.estimated)).saturating_sub(size.freed),
        None => size.tokens,
    };
    let reported = usage.has_prompt().then(|| usage.prompt_tokens());
    CallEstimate { number, model, expected, anchor, growth: size.estimated, reported }
}

impl CallEstimate {
    /// Adds estimated and reported growth to the calibration.
    fn calibrate(&self, learnt: &mut Calibration) {
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

/// Returns a quantile of the absolute error of anchored calls.
fn error_at(calls: &[CallEstimate], share: f64) -> Option<f64> {
    let anchored = calls.iter().filter(|call| call.anchor.is_some());
    let mut errors: Vec<f64> = anchored.filter_map(CallEstimate::error_percent).map(f64::abs).collect();
    errors.sort_by(f64::total_cmp);
    errors.get(((errors.len() as f64 - 1.0) * share).round().max(0.0) as usize).copied()
}

fn print_size(
    view: &View,
    limits: &WindowLimits,
    learnt: &Calibration,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let size = view.size();
    let ContextBreakdown { by_category, wasted_on_rereads } = view.breakdown();
    let total: f64 = by_category.iter().map(|(_, tokens)| tokens).sum();
    writeln!(
        out,
        "{}",
        bold(&format!("Context: {} tokens for {}", group_digits(size.tokens), view.lens().card.model))
    )?;
    match &size.anchor {
        Some(anchor) => writeln!(
            out,
            "  anchor: response {} reported {}; {} estimated after it, {} freed since",
            anchor.response,
            group_digits(anchor.tokens),
            group_digits(view.estimator().total(size.estimated)),
            group_digits(size.freed)
        )?,
        None => {
            writeln!(out, "  no response after the last boundary reports usage: everything is estimated")?
        }
    }
    writeln!(
        out,
        "  correction factor from this session's reports, applied below: {:.3}",
        learnt.factor().as_f64()
    )?;
    writeln!(out)?;
    let mut table = TextTable::new(&["category", "estimated", "share", ""], &[0, 3]);
    for (category, tokens) in by_category.iter().filter(|(_, tokens)| *tokens > 0.0) {
        let share = tokens / total.max(1.0);
        table.push_row(vec![
            category.name().into(),
            format_tokens(*tokens),
            format!("{:.1}%", share * 100.0),
            draw_bar(share),
        ]);
    }
    table.push_row(vec!["all".into(), format_tokens(total), String::new(), String::new()]);
    table.push_row(vec![
        "wasted on re-reads".into(),
        format_tokens(wasted_on_rereads),
        String::new(),
        String::new(),
    ]);
    table.write(auto_style(), out)?;
    writeln!(out)?;
    print_limits(&size, limits, out)
}

fn print_limits(size: &ContextSize, limits: &WindowLimits, out: &mut dyn Write) -> Result<(), Failure> {
    let fill = limits.fill(size.tokens);
    let state = |reached: bool| String::from(if reached { "reached" } else { "" });
    let mut table = TextTable::new(&["threshold", "tokens", "state"], &[0, 2]);
    table.push_row(vec!["warning, error".into(), group_digits(limits.warning), state(fill.warning)]);
    match limits.auto_compact {
        Some(threshold) => {
            table.push_row(vec!["auto-compact".into(), group_digits(threshold), state(fill.auto_compact)])
        }
        None => table.push_row(vec!["auto-compact".into(), "off".into(), String::new()]),
    }
    table.push_row(vec!["blocking".into(), group_digits(limits.blocking), state(fill.blocking)]);
    table.push_row(vec!["effective window".into(), group_digits(limits.effective), String::new()]);
    table.push_row(vec!["window".into(), group_digits(limits.window), String::new()]);
    table.write(auto_style(), out)?;
    writeln!(out, "{:.0}% left", fill.percent_left)?;
    Ok(())
}

fn print_calls(calls: &[CallEstimate], out: &mut dyn Write) -> Result<(), Failure> {
    if calls.is_empty() {
        writeln!(out, "\nThe session has no responses.")?;
        return Ok(());
    }
    writeln!(out)?;
    let mut table = TextTable::new(&["call", "expected", "reported", "error", "based on", "model"], &[4, 5]);
    for call in calls {
        table.push_row(vec![
            call.number.to_string(),
            group_digits(call.expected),
            call.reported.map_or("–".into(), group_digits),
            call.error_percent().map_or(String::new(), |error| format!("{error:+.1}%")),
            if call.anchor.is_some() { "usage".into() } else { "estimate".into() },
            call.model.clone(),
        ]);
    }
    table.write(auto_style(), out)?;
    if let (Some(half), Some(most)) = (error_at(calls, 0.5), error_at(calls, 0.9)) {
        writeln!(out, "error of calls based on usage: p50 {half:.1}%, p90 {most:.1}%")?;
    }
    Ok(())
}

fn print_json(
    view: &View,
    limits: &WindowLimits,
    calls: &[CallEstimate],
    learnt: &Calibration,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let size = view.size();
    let fill = limits.fill(size.tokens);
    let ContextBreakdown { by_category, wasted_on_rereads } = view.breakdown();
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
