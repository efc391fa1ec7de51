//! Exported spans and metrics of one finished prompt.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, Metric};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use pal_testkit::{Collector, Manner};
use prost::Message;

use crate::sample_events::{CANARY, SECRET, export};

#[test]
fn a_prompt_is_one_trace_with_its_requests_and_calls() {
    let (collector, spans) = traced(false);
    let (run, parts) = spans.split_last().unwrap();
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "chat claude-x",
            "execute_tool Bash",
            "chat claude-x",
            "chat claude-x",
            "chat claude-x",
            "invoke_agent pal"
        ]
    );
    assert_eq!((run.trace_id.len(), run.span_id.len(), run.parent_span_id.len()), (16, 8, 0));
    assert_eq!(run.end_time_unix_nano - run.start_time_unix_nano, 2_000_000_000);
    for part in parts {
        assert_eq!((&part.trace_id, &part.parent_span_id), (&run.trace_id, &run.span_id));
        assert!(part.start_time_unix_nano <= part.end_time_unix_nano);
    }
    let events: Vec<&str> = run.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(events, ["pal.compaction", "pal.cache.break"]);
    let headers = collector.posted()[0].headers.join("\n").to_lowercase();
    assert!(headers.contains("content-type: application/x-protobuf"), "{headers}");
    assert!(headers.contains("authorization: bearer abc"), "{headers}");
}

#[test]
fn spans_carry_the_names_of_generative_ai() {
    let (_, spans) = traced(false);
    let [chat, tool, summary, failed, ..] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!(chat.kind(), SpanKind::Client);
    assert_eq!(
        told(&chat.attributes),
        "gen_ai.conversation.id=session-1 gen_ai.operation.name=chat gen_ai.provider.name=anthropic \
         gen_ai.request.max_tokens=8000 gen_ai.request.model=claude-x gen_ai.response.finish_reasons=[tool_use] \
         gen_ai.response.id=answer gen_ai.response.model=claude-x-1 \
         gen_ai.usage.cache_creation.input_tokens=90 gen_ai.usage.cache_read.input_tokens=0 \
         gen_ai.usage.input_tokens=100 gen_ai.usage.output_tokens=5 pal.cost.usd=0.25 pal.source=main \
         pal.time_to_start_s=0.1"
    );
    assert_eq!(tool.kind(), SpanKind::Internal);
    assert_eq!(
        told(&tool.attributes),
        "error.type=tool_error gen_ai.conversation.id=session-1 gen_ai.operation.name=execute_tool \
         gen_ai.tool.call.id=call-1 gen_ai.tool.name=Bash gen_ai.tool.type=function pal.tool.result_bytes=17"
    );
    assert!(told(&summary.attributes).contains("pal.source=compact"));
    assert!(told(&failed.attributes).contains("error.type=overloaded"));
    assert_eq!(failed.status.as_ref().unwrap().code(), StatusCode::Error);
    let run = told(&spans.last().unwrap().attributes);
    for words in ["gen_ai.usage.input_tokens=207", "pal.turns=3", "pal.end=failed", "pal.cost.usd=0.875"] {
        assert!(run.contains(words), "{words}: {run}");
    }
}

#[test]
fn figures_are_counted_by_what_they_are_asked_for() {
    let collector = Collector::start(Manner::Takes);
    assert_eq!(export(collector.address(), false), None);
    let body = collector.bodies("/v1/metrics").pop().unwrap();
    let request = ExportMetricsServiceRequest::decode(body.as_slice()).unwrap();
    let resource = request.resource_metrics[0].resource.as_ref().unwrap();
    assert!(told(&resource.attributes).contains("service.name=tested service.version=1.2.3"));
    let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
    let figures: Vec<String> = metrics.iter().flat_map(figures).collect();
    let labels = "gen_ai.operation.name=chat gen_ai.provider.name=anthropic gen_ai.request.model=claude-x";
    let wanted = [
        format!("gen_ai.client.token.usage {labels} gen_ai.token.type=input pal.source=compact: 1 of 7"),
        format!("gen_ai.client.token.usage {labels} gen_ai.token.type=input pal.source=main: 2 of 200"),
        format!("gen_ai.client.token.usage {labels} gen_ai.token.type=output pal.source=compact: 1 of 3"),
        format!("gen_ai.client.token.usage {labels} gen_ai.token.type=output pal.source=main: 2 of 10"),
        format!("gen_ai.client.operation.duration {labels} pal.source=compact: 1 of 0.3"),
        format!("gen_ai.client.operation.duration {labels} pal.source=main: 2 of 0.6"),
        format!("gen_ai.client.operation.duration error.type=overloaded {labels} pal.source=main: 1 of 0.3"),
        "gen_ai.client.operation.duration gen_ai.operation.name=execute_tool gen_ai.tool.name=Bash: 1 of 0.02".into(),
        "pal.tokens gen_ai.request.model=claude-x pal.source=main pal.token.kind=cache_read: 100".into(),
        "pal.tokens gen_ai.request.model=claude-x pal.source=main pal.token.kind=cache_write: 90".into(),
        "pal.tokens gen_ai.request.model=claude-x pal.source=main pal.token.kind=output: 10".into(),
        "pal.tokens gen_ai.request.model=claude-x pal.source=main pal.token.kind=uncached: 10".into(),
        "pal.tokens gen_ai.request.model=claude-x pal.source=compact pal.token.kind=output: 3".into(),
        "pal.tokens gen_ai.request.model=claude-x pal.source=compact pal.token.kind=uncached: 7".into(),
        "pal.cost.usd gen_ai.request.model=claude-x pal.source=main: 0.375".into(),
        "pal.cost.usd gen_ai.request.model=claude-x pal.source=compact: 0.5".into(),
        "pal.cache.hit_ratio gen_ai.request.model=claude-x pal.source=main: 2 of 1".into(),
        "pal.cache.hit_ratio gen_ai.request.model=claude-x pal.source=compact: 1 of 0".into(),
        "pal.cache.breaks pal.cause=section: 1".into(),
        "pal.compactions pal.how=fork pal.trigger=auto: 1".into(),
        "pal.tool.calls gen_ai.tool.name=Bash pal.outcome=error: 1".into(),
        "pal.tool.calls gen_ai.tool.name=Write pal.outcome=denied: 1".into(),
        "pal.tool.denials gen_ai.tool.name=Write: 1".into(),
        "pal.sessions pal.resumed=false: 1".into(),
    ];
    let (mut figures, mut wanted) = (figures, wanted.to_vec());
    figures.sort();
    wanted.sort();
    assert_eq!(figures, wanted);
}

#[test]
fn nothing_that_was_said_leaves_unless_asked_for() {
    let has_canary = |collector: &Collector| {
        let bodies = collector.posted().into_iter().map(|posted| posted.body);
        bodies.map(|body| count(&body, CANARY.as_bytes())).sum::<usize>()
    };
    let (quiet, _) = traced(false);
    assert_eq!((quiet.posted().len(), has_canary(&quiet)), (2, 0));
    let (loud, spans) = traced(true);
    assert!(has_canary(&loud) > 0);
    let attribute = |span: &Span, key: &str| {
        let found = span.attributes.iter().find(|attribute| attribute.key == key);
        found.map(|found| value(found.value.as_ref().unwrap())).unwrap_or_default()
    };
    let first = &spans.iter().find(|span| span.name.starts_with("chat")).unwrap();
    assert_eq!(
        attribute(first, "gen_ai.input.messages"),
        format!(
            r#"[{{"role":"user","parts":[{{"type":"text","content":"{CANARY} asked, with the token [secret: github token]"}}]}}]"#
        )
    );
    assert!(attribute(first, "gen_ai.output.messages").contains(&format!("{CANARY} answered")));
    let tool = spans.iter().find(|span| span.name == "execute_tool Bash").unwrap();
    assert_eq!(attribute(tool, "gen_ai.tool.call.arguments"), format!(r#"{{"command":"{CANARY} run"}}"#));
    let answered = spans.iter().find(|span| attribute(span, "gen_ai.input.messages").contains("printed"));
    assert!(answered.is_some(), "{spans:?}");
    assert!(span_with_secret(&spans).is_none(), "a secret leaves the machine: {spans:?}");
    // What fails and what is refused is told in words of ours alone.
    assert!(!told(&spans.last().unwrap().attributes).contains(CANARY));
}

/// A span that holds the token.
fn span_with_secret(spans: &[Span]) -> Option<&Span> {
    spans.iter().find(|span| told(&span.attributes).contains(SECRET))
}

fn traced(with_content: bool) -> (Collector, Vec<Span>) {
    let collector = Collector::start(Manner::Takes);
    assert_eq!(export(collector.address(), with_content), None);
    let bodies = collector.bodies("/v1/traces");
    let requests = bodies.iter().map(|body| ExportTraceServiceRequest::decode(body.as_slice()).unwrap());
    let scopes = requests.flat_map(|request| request.resource_spans).flat_map(|spans| spans.scope_spans);
    (collector, scopes.flat_map(|scope| scope.spans).collect())
}

fn count(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).filter(|window| *window == wanted).count()
}

/// A metric, figure by figure.
fn figures(metric: &Metric) -> Vec<String> {
    let cumulative = AggregationTemporality::Cumulative;
    let name = &metric.name;
    match metric.data.as_ref().unwrap() {
        Data::Sum(sum) => {
            assert!(sum.is_monotonic && sum.aggregation_temporality() == cumulative);
            let figure = |point: &opentelemetry_proto::tonic::metrics::v1::NumberDataPoint| {
                let amount = match point.value.as_ref().unwrap() {
                    Number::AsInt(amount) => amount.to_string(),
                    Number::AsDouble(amount) => amount.to_string(),
                };
                format!("{name} {}: {amount}", told(&point.attributes))
            };
            sum.data_points.iter().map(figure).collect()
        }
        Data::Histogram(histogram) => {
            assert_eq!(histogram.aggregation_temporality(), cumulative);
            let figure = |point: &opentelemetry_proto::tonic::metrics::v1::HistogramDataPoint| {
                assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
                assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
                assert!(point.start_time_unix_nano > 0 && point.start_time_unix_nano <= point.time_unix_nano);
                format!("{name} {}: {} of {}", told(&point.attributes), point.count, point.sum.unwrap())
            };
            histogram.data_points.iter().map(figure).collect()
        }
        other => panic!("{name}: {other:?}"),
    }
}

fn told(attributes: &[KeyValue]) -> String {
    let mut told: Vec<String> = attributes
        .iter()
        .map(|attribute| format!("{}={}", attribute.key, value(attribute.value.as_ref().unwrap())))
        .collect();
    told.sort();
    told.join(" ")
}

fn value(any: &AnyValue) -> String {
    match any.value.as_ref().unwrap() {
        Value::StringValue(text) => text.clone(),
        Value::BoolValue(yes) => yes.to_string(),
        Value::IntValue(number) => number.to_string(),
        Value::DoubleValue(number) => number.to_string(),
        Value::ArrayValue(list) => {
            format!("[{}]", list.values.iter().map(value).collect::<Vec<_>>().join(","))
        }
        other => panic!("{other:?}"),
    }
}
