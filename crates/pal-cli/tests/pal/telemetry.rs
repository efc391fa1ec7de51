//! Telemetry of the program: the export of a real run, as a collector receives it, and the diagnostic log.

use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use pal_testkit::{Collector, Manner};
use prost::Message;

use crate::program::{CommandOutput, TestHome};
use crate::simulator::RunningSimulator;

const SCRIPT: &str = r#"
[[turn]]
thinking = "canary-thought"
text = "canary-answer"
tools = [
    { name = "Read", input = { file_path = "canary-file.txt" } },
    { name = "Write", input = { file_path = "canary-new.txt", content = "canary-written" } },
]

[default]
text = "canary-done"
"#;

#[test]
fn a_run_exports_figures_without_content() {
    let collector = Collector::start(Manner::Takes);
    let said = run(&[("PAL_TELEMETRY", "1"), ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address())]);
    assert_eq!((said.code, said.out.as_str(), is_told(&said)), (0, "canary-done\n", false), "{}", said.err);
    let spans = spans(&collector);
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(
        names,
        ["chat claude-opus-5-5", "execute_tool Read", "chat claude-opus-5-5", "invoke_agent pal"]
    );
    let run = spans.last().unwrap();
    assert!(spans[..3].iter().all(|span| span.parent_span_id == run.span_id));
    let input = |span: &Span| number(span, "gen_ai.usage.input_tokens");
    assert!(input(&spans[0]) > 100, "{spans:?}");
    assert_eq!(input(&spans[0]) + input(&spans[2]), input(run));
    assert!(number(&spans[2], "gen_ai.usage.cache_read.input_tokens") > 0, "the cache is part of the input");
    let metrics = metrics(&collector);
    for name in [
        "gen_ai.client.token.usage",
        "gen_ai.client.operation.duration",
        "pal.tokens",
        "pal.cost.usd",
        "pal.cache.hit_ratio",
        "pal.tool.calls",
        "pal.tool.denials",
        "pal.sessions",
    ] {
        assert!(metrics.contains(&name.to_owned()), "{name}: {metrics:?}");
    }
    assert!(!has_canary(&collector), "something that was said left");
}

#[test]
fn content_is_exported_on_request() {
    let collector = Collector::start(Manner::Takes);
    let endpoint = ("PAL_TELEMETRY_ENDPOINT", collector.address());
    let said = run(&[("PAL_TELEMETRY", "1"), endpoint, ("PAL_TELEMETRY_CONTENT", "1")]);
    assert_eq!(said.code, 0, "{}", said.err);
    let bytes: Vec<u8> = collector.posted().into_iter().flat_map(|posted| posted.body).collect();
    for words in ["canary-prompt", "canary-answer", "canary-text", "canary-file.txt", "canary-done"] {
        assert!(contains(&bytes, words), "{words}");
    }
}

#[test]
fn nothing_is_exported_by_default_or_if_switched_off() {
    let collector = Collector::start(Manner::Takes);
    let endpoint = ("PAL_TELEMETRY_ENDPOINT", collector.address());
    assert_eq!(run(&[endpoint]).code, 0);
    assert_eq!(run(&[endpoint, ("PAL_TELEMETRY", "1"), ("PAL_DISABLE_TELEMETRY", "1")]).code, 0);
    assert_eq!(collector.posted(), []);
}

#[test]
fn a_broken_collector_neither_fails_nor_delays_a_run() {
    let silent = Collector::start(Manner::Silent);
    let begun = Instant::now();
    let said = run(&[("PAL_TELEMETRY", "1"), ("PAL_TELEMETRY_ENDPOINT", silent.address())]);
    assert_eq!((said.code, said.out.as_str()), (0, "canary-done\n"), "{}", said.err);
    assert!(is_told(&said) && begun.elapsed() < Duration::from_secs(20), "{}", said.err);
    let said = run(&[("PAL_TELEMETRY", "1"), ("PAL_TELEMETRY_ENDPOINT", "http://127.0.0.1:9")]);
    assert_eq!((said.code, said.out.as_str(), is_told(&said)), (0, "canary-done\n", true), "{}", said.err);
    assert_eq!(said.err.matches("collector").count(), 1, "{}", said.err);
}

#[test]
fn the_diagnostic_log_contains_no_content() {
    let said = run(&[("PAL_LOG", "trace")]);
    assert_eq!((said.code, said.out.as_str()), (0, "canary-done\n"), "{}", said.err);
    for words in ["invoke_agent", "chat", "execute_tool", "exchanged", "sending", "tool=Read"] {
        assert!(said.err.contains(words), "{words}\n{}", said.err);
    }
    let logged = said.err.lines().filter(|line| line.contains("TRACE") || line.contains(" pal_"));
    let leaks: Vec<&str> = logged.filter(|line| line.contains("canary")).collect();
    assert_eq!(leaks, Vec::<&str>::new());
    let wrong = run(&[("PAL_LOG", "pal_agent=loud")]);
    assert!(wrong.code != 0 && wrong.err.contains("hint:"), "{}", wrong.err);
}

/// Works on a prompt in a directory of its own, with a model that reads a file and may not write one.
fn run(variables: &[(&str, &str)]) -> CommandOutput {
    let home = TestHome::new();
    let script = home.file("script.toml", SCRIPT);
    let simulator = RunningSimulator::start(&home, &["--model-script", &script]);
    let directory = home.path().join("project");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("canary-file.txt"), "canary-text\n").unwrap();
    let keys = [("ANTHROPIC_BASE_URL", simulator.address.as_str()), ("ANTHROPIC_API_KEY", "canary-key-1234")];
    let variables: Vec<(&str, &str)> = keys.into_iter().chain(variables.iter().copied()).collect();
    home.run_in_with(&directory, &["-p", "canary-prompt"], &variables)
}

fn is_told(said: &CommandOutput) -> bool {
    said.err.contains("figures do not reach the collector")
}

fn spans(collector: &Collector) -> Vec<Span> {
    let bodies = collector.bodies("/v1/traces");
    let requests = bodies.iter().map(|body| ExportTraceServiceRequest::decode(body.as_slice()).unwrap());
    let scopes = requests.flat_map(|request| request.resource_spans).flat_map(|spans| spans.scope_spans);
    scopes.flat_map(|scope| scope.spans).collect()
}

fn metrics(collector: &Collector) -> Vec<String> {
    let body = collector.bodies("/v1/metrics").pop().unwrap();
    let request = ExportMetricsServiceRequest::decode(body.as_slice()).unwrap();
    let scopes = request.resource_metrics.into_iter().flat_map(|metrics| metrics.scope_metrics);
    scopes.flat_map(|scope| scope.metrics).map(|metric| metric.name).collect()
}

fn number(span: &Span, key: &str) -> i64 {
    let found = span.attributes.iter().find(|attribute| attribute.key == key);
    match found.and_then(|found| found.value.clone()?.value) {
        Some(Value::IntValue(number)) => number,
        other => panic!("{key}: {other:?}"),
    }
}

fn has_canary(collector: &Collector) -> bool {
    let posted = collector.posted();
    assert!(posted.len() >= 2, "{}", posted.len());
    posted.iter().any(|posted| contains(&posted.body, "canary"))
}

fn contains(bytes: &[u8], words: &str) -> bool {
    bytes.windows(words.len()).any(|window| window == words.as_bytes())
}
