//! Metrics derived from events.

use std::time::Duration;

use pal_events::ExchangeReport;
use pal_model::Usage;

use super::meter::{MetricLabel, MetricMeter};
use super::names as n;

/// Counts the tokens and duration of a request.
pub(super) fn count(exchanged: &ExchangeReport, meter: &mut MetricMeter) {
    let model = || (n::REQUEST_MODEL, MetricLabel::from(exchanged.model.as_str()));
    let source = || (n::SOURCE, MetricLabel::from(exchanged.source.as_str()));
    let mut labels = vec![
        (n::OPERATION, MetricLabel::from(n::CHAT)),
        (n::PROVIDER, MetricLabel::from(exchanged.provider)),
        model(),
        source(),
    ];
    if let Some(usage) = &exchanged.usage {
        for (kind, tokens) in [("input", usage.prompt_tokens()), ("output", usage.output_tokens)] {
            let labels = labels.iter().cloned().chain([(n::TOKEN_TYPE, MetricLabel::from(kind))]);
            meter.add(&n::TOKEN_USAGE, tokens as f64, labels);
        }
        for (kind, tokens) in kinds(usage).into_iter().filter(|(_, tokens)| *tokens > 0) {
            meter.add(
                &n::TOKENS_BY_KIND,
                tokens as f64,
                [(n::KIND, MetricLabel::from(kind)), model(), source()],
            );
        }
        let prompt = usage.prompt_tokens();
        if prompt > 0 {
            let ratio = usage.cache_read_input_tokens as f64 / prompt as f64;
            meter.add(&n::HIT_RATIO, ratio, [model(), source()]);
        }
    }
    if let Some(cost) = exchanged.cost {
        meter.add(&n::COST_USD, cost, [model(), source()]);
    }
    labels.extend(exchanged.failed.map(|why| (n::ERROR_TYPE, MetricLabel::from(why))));
    meter.add(&n::DURATION, exchanged.took.as_secs_f64(), labels);
}

/// Tokens by kind; each counts once.
fn kinds(usage: &Usage) -> [(&'static str, u64); 4] {
    [
        ("uncached", usage.input_tokens),
        ("cache_write", usage.cache_creation_input_tokens),
        ("cache_read", usage.cache_read_input_tokens),
        ("output", usage.output_tokens),
    ]
}

/// Counts a call that was carried out.
pub(super) fn count_tool(name: &str, is_error: bool, took: Duration, meter: &mut MetricMeter) {
    let outcome = if is_error { "error" } else { "ok" };
    let tool = || (n::TOOL, MetricLabel::from(name));
    meter.add(&n::TOOL_CALLS, 1.0, [tool(), (n::OUTCOME, MetricLabel::from(outcome))]);
    let labels = [(n::OPERATION, MetricLabel::from(n::EXECUTE_TOOL)), tool()];
    meter.add(&n::DURATION, took.as_secs_f64(), labels);
}

/// Counts a call that was refused.
pub(super) fn count_denial(name: &str, meter: &mut MetricMeter) {
    let tool = || (n::TOOL, MetricLabel::from(name));
    meter.add(&n::TOOL_DENIALS, 1.0, [tool()]);
    meter.add(&n::TOOL_CALLS, 1.0, [tool(), (n::OUTCOME, MetricLabel::from("denied"))]);
}
