//! Provider errors and their classification.

use std::time::Duration;

use pal_model::ContextOverflow;
use pal_wire::{FailureKind, ProviderFailure, classify_failure};

fn too_long(have: u64, limit: u64) -> FailureKind {
    FailureKind::TooLong(ContextOverflow {
        prompt: Some(have),
        window: Some(limit),
        ..ContextOverflow::UNKNOWN
    })
}

/// A refusal of a prompt with its answer.
fn too_long_together(prompt: u64, output: u64, window: u64) -> FailureKind {
    FailureKind::TooLong(ContextOverflow {
        prompt: Some(prompt),
        window: Some(window),
        output: Some(output),
        output_limit: None,
    })
}

/// A refusal of an answer that is too long for the model.
fn answer_too_long(output: Option<u64>, limit: u64) -> FailureKind {
    let output_limit = Some(limit);
    FailureKind::TooLong(ContextOverflow { output, output_limit, ..ContextOverflow::UNKNOWN })
}

const UNKNOWN_LENGTH: FailureKind = FailureKind::TooLong(ContextOverflow::UNKNOWN);

fn fail(status: u16, body: &str) -> ProviderFailure {
    classify_failure(status, |_| None, body.as_bytes())
}

fn with_headers(status: u16, headers: &[(&str, &str)]) -> ProviderFailure {
    let find = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    classify_failure(status, find, b"{}")
}

fn check(table: &[(u16, &str, FailureKind)]) {
    for (status, body, expected) in table {
        let failure = fail(*status, body);
        assert_eq!(failure.kind, *expected, "{status} {body}");
        assert_eq!(failure.status, Some(*status));
        assert!(!failure.message.is_empty());
    }
}

/// Returns an error body of the Messages dialect.
fn messages_error(kind: &str, message: &str) -> String {
    format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_1"}}"#)
}

#[test]
fn prompt_too_long_is_recognized_for_every_provider() {
    let invalid = |message: &str| messages_error("invalid_request_error", message);
    let openai = |message: &str| {
        format!(
            r#"{{"error":{{"message":"{message}","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}}}"#
        )
    };
    let openai_invalid = |message: &str| {
        format!(
            r#"{{"error":{{"message":"{message}","type":"invalid_request_error","param":"max_tokens","code":"invalid_value"}}}}"#
        )
    };
    let vllm = |message: &str| {
        format!(r#"{{"error":{{"message":"{message}","type":"BadRequestError","param":null,"code":400}}}}"#)
    };
    let table = [
        // Anthropic: current and older messages, variants, and other hosts.
        (invalid("prompt is too long: 1048233 tokens > 1000000 maximum"), too_long(1_048_233, 1_000_000)),
        (invalid("Prompt is too long: 1,048,233 tokens > 1,000,000 maximum"), too_long(1_048_233, 1_000_000)),
        (invalid("prompt is too long"), UNKNOWN_LENGTH),
        (
            invalid(
                "input length and `max_tokens` exceed context limit: 190000 + 21000 > 200000, decrease input length or `max_tokens` and try again",
            ),
            too_long_together(190_000, 21_000, 200_000),
        ),
        (
            invalid("input length and `max_tokens` exceed context limit: 5 + 21000 > 20000, decrease"),
            too_long_together(5, 21_000, 20_000),
        ),
        (
            invalid(
                "max_tokens: 8000 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku",
            ),
            answer_too_long(Some(8_000), 4_096),
        ),
        (
            openai_invalid(
                "max_tokens is too large: 8000. This model supports at most 4096 completion tokens, whereas you provided 8000.",
            ),
            answer_too_long(Some(8_000), 4_096),
        ),
        (
            String::from(
                r#"{"message":"The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096."}"#,
            ),
            answer_too_long(None, 4_096),
        ),
        (String::from(r#"{"message":"Input is too long for requested model."}"#), UNKNOWN_LENGTH),
        (
            String::from(
                r#"{"__type":"com.amazon#ValidationException","message":"Model says: Prompt Is Too Long: 210000 tokens > 200000 maximum"}"#,
            ),
            too_long(210_000, 200_000),
        ),
        (
            format!("[{}]", invalid("prompt is too long: 210000 tokens > 200000 maximum")),
            too_long(210_000, 200_000),
        ),
        (invalid("capability_rejected: prompt_too_long"), UNKNOWN_LENGTH),
        (String::from("capability_rejected: prompt_too_long"), UNKNOWN_LENGTH),
        // OpenAI, current and older.
        (
            openai(
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
            ),
            UNKNOWN_LENGTH,
        ),
        (
            openai(
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.",
            ),
            too_long(9001, 8192),
        ),
        (
            openai(
                "This model's maximum context length is 8192 tokens. However, you requested 9192 tokens (8092 in the messages, 1100 in the completion). Please reduce the length of the messages or completion.",
            ),
            too_long_together(8092, 1100, 8192),
        ),
        // Local servers.
        (
            vllm(
                "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion). Please reduce the length.",
            ),
            too_long_together(4000, 1000, 4096),
        ),
        (
            vllm(
                "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.",
            ),
            too_long(5000, 4096),
        ),
        (
            vllm(
                "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 4096 tokens and your request has 3500 input tokens (1000 > 4096 - 3500).",
            ),
            too_long_together(3500, 1000, 4096),
        ),
        (
            vllm(
                "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens: 4000 tokens from the input messages and 1000 tokens for the completion.",
            ),
            too_long_together(4000, 1000, 4096),
        ),
        (
            vllm("The input (5000 tokens) is longer than the model's context length (4096 tokens)."),
            too_long(5000, 4096),
        ),
        (
            String::from(
                r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it","n_prompt_tokens":5000,"n_ctx":4096}}"#,
            ),
            too_long(5000, 4096),
        ),
        (
            String::from(
                r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"","n_prompt_tokens":5000,"n_ctx":4096}}"#,
            ),
            too_long(5000, 4096),
        ),
        (String::from(r#"{"error":"input length exceeds the context length"}"#), UNKNOWN_LENGTH),
        (
            String::from(
                r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            ),
            too_long(1_200_000, 1_048_576),
        ),
    ];
    for (body, expected) in &table {
        assert_eq!(fail(400, body).kind, *expected, "{body}");
    }
    // Numbers out of range are ignored.
    let huge = invalid("prompt is too long: 99999999999999999999999 tokens > 1000 maximum");
    assert_eq!(fail(400, &huge).kind, UNKNOWN_LENGTH);
}

#[test]
fn other_wordings_of_a_long_prompt_are_recognized_with_their_numbers() {
    let window = |window: u64| {
        FailureKind::TooLong(ContextOverflow { window: Some(window), ..ContextOverflow::UNKNOWN })
    };
    let table = [
        (
            "The decoder prompt (length 51234) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.",
            too_long(51_234, 32_768),
        ),
        (
            "Prompt contains 51234 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            too_long(51_234, 32_768),
        ),
        (
            "This model's maximum prompt length is 131072 but the request contains 151234 tokens.",
            too_long(151_234, 131_072),
        ),
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`",
            too_long_together(5000, 100, 4096),
        ),
        (
            "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
            too_long(9000, 4096),
        ),
        ("Context size has been exceeded.", UNKNOWN_LENGTH),
        ("litellm.ContextWindowExceededError: the model refused the request", UNKNOWN_LENGTH),
        (
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
            too_long(5000, 4081),
        ),
        ("Requested tokens (9000) exceed context window of 8192", too_long(9000, 8192)),
        ("Requested tokens (9,000) exceed context window of 8,192", too_long(9000, 8192)),
        ("The prompt exceeds the context window of 8192 tokens", window(8192)),
        ("Request exceeds model limits", UNKNOWN_LENGTH),
    ];
    for (message, expected) in table {
        let body =
            serde_json::json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string();
        assert_eq!(fail(400, &body).kind, expected, "{message}");
        let body = serde_json::json!({"error": {"message": message, "type": "server_error"}}).to_string();
        assert_eq!(fail(500, &body).kind, expected, "{message}");
    }
}

#[test]
fn other_refusals_with_similar_words_are_no_long_prompts() {
    for message in [
        "Invalid 'input[3].name': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
        "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
        "input_schema: maximum nesting depth exceeded",
        "max_tokens must be at least 1",
        "messages: at least one message is required",
        "Unsupported value: 'temperature' does not support 0.5 with this model.",
        "Invalid 'input': array too long. Expected an array with maximum length 2048, but got an array with length 3000 instead.",
        "thinking.budget_tokens: must be greater than or equal to 1024",
        "The maximum number of tools is 128",
    ] {
        let body =
            serde_json::json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string();
        assert_eq!(fail(400, &body).kind, FailureKind::Invalid, "{message}");
    }
}

#[test]
fn code_overrides_type_and_type_overrides_status() {
    use FailureKind::*;
    let coded = |kind: &str, code: &str| {
        format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":"m","details":{{"error_code":"{code}"}}}}}}"#
        )
    };
    check(&[
        (429, &coded("rate_limit_error", "enforced_spend_limit_reached"), Billing),
        (429, &coded("rate_limit_error", "ramp_limit_exceeded"), RateLimited),
        (529, &coded("overloaded_error", "compaction_unavailable"), Overloaded),
        (413, &coded("invalid_request_error", "request_body_too_large_after_decoding"), TooLarge),
        (400, &coded("invalid_request_error", "compaction_nothing_to_summarize"), Invalid),
        (404, &coded("not_found_error", "thread_not_found"), NotFound),
        (403, &coded("permission_error", "organization_on_hold"), Permission),
        (500, &messages_error("overloaded_error", "m"), Overloaded),
        (
            500,
            &messages_error("server_error", "image input is not supported - hint: provide the mmproj"),
            Invalid,
        ),
        (500, &messages_error("server_error", "m"), Server),
        (500, &messages_error("timeout_error", "m"), Timeout),
        (400, &messages_error("billing_error", "m"), Billing),
        // Ambiguous types are decided by the status.
        (
            401,
            r#"{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":null}}"#,
            Authentication,
        ),
        (
            404,
            r#"{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}"#,
            NotFound,
        ),
        (529, &messages_error("api_error", "m"), Overloaded),
        (
            429,
            r#"{"error":{"message":"quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Billing,
        ),
        (503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#, Overloaded),
        (400, r#"{"__type":"ThrottlingException","message":"slow down"}"#, RateLimited),
    ]);
}

#[test]
fn status_alone_determines_the_kind() {
    use FailureKind::*;
    for body in [
        "",
        "{}",
        "null",
        "<html>",
        "{\"error\":null}",
        "[]",
        "[1]",
        "{\"error\":7}",
        "{\"detail\":[{\"msg\":\"x\"}]}",
    ] {
        check(&[
            (400, body, Invalid),
            (401, body, Authentication),
            (402, body, Billing),
            (403, body, Permission),
            (404, body, NotFound),
            (405, body, Invalid),
            (408, body, Timeout),
            (409, body, Conflict),
            (413, body, TooLarge),
            (422, body, Invalid),
            (429, body, RateLimited),
            (500, body, Server),
            (502, body, Server),
            (503, body, Overloaded),
            (504, body, Timeout),
            (524, body, Timeout),
            (529, body, Overloaded),
            (599, body, Server),
            (302, body, Invalid),
            (200, body, Malformed),
        ]);
    }
}

#[test]
fn overflow_message_does_not_override_a_certain_kind() {
    use FailureKind::*;
    let words = "prompt is too long: 10 tokens > 5 maximum";
    check(&[
        (401, &messages_error("authentication_error", words), Authentication),
        (429, &messages_error("rate_limit_error", words), RateLimited),
        (404, &messages_error("not_found_error", words), NotFound),
        (413, &messages_error("request_too_large", "Request exceeds the maximum size"), TooLarge),
        (413, &messages_error("request_too_large", words), too_long(10, 5)),
        (500, &messages_error("api_error", words), too_long(10, 5)),
    ]);
}

#[test]
fn messages_are_short_clean_and_free_of_keys() {
    let page = "<!DOCTYPE html><html><head><style>b{color:red}</style><title>\n 502  Bad Gateway </title></head><body><h1>502</h1></body></html>";
    let untitled = "<html><script>let x = '<b>';</script><body><h1>503</h1>\n<p>come  back</p> later";
    let secret = r#"{"error":{"message":"Incorrect API key provided: sk-ant-api03-AbCdEf_123-xyz. Sent Authorization: Bearer abc.DEF-123456 and https://h/?key=Zyxwvut9 by the task-force with sk-live-000000"}}"#;
    let table = [
        (page, "502 Bad Gateway"),
        (untitled, "503 come back later"),
        ("upstream connect error\r\n\tor reset\u{0}", "upstream connect error or reset"),
        ("", "the provider answered with status 502 and no message"),
        (r#"{"error":{"message":""}}"#, r#"{"error":{"message":""}}"#),
        (r#"{"error":"model 'x' not found"}"#, "model 'x' not found"),
        (
            secret,
            "Incorrect API key provided: sk-… Sent Authorization: Bearer … and https://h/?key=… by the task-force with sk-…",
        ),
        ("key sk-1 is short; Bearer of news", "key sk-1 is short; Bearer of news"),
    ];
    for (body, expected) in table {
        assert_eq!(fail(502, body).message, expected, "{body}");
    }
    let long = fail(500, &"é".repeat(1 << 20));
    assert_eq!(long.message.chars().count(), 602);
    let code = format!(r#"{{"error":{{"message":"m","code":"{}"}}}}"#, "c".repeat(500));
    assert_eq!(fail(400, &code).code.map(|code| code.chars().count()), Some(98));
    // Truncation must not leave the beginning of a key.
    let late = format!("{} sk-{}", "a".repeat(590), "b".repeat(64));
    assert!(!fail(500, &late).message.contains("bb"));
}

#[test]
fn codes_and_ids_are_kept() {
    let failure = fail(400, &messages_error("invalid_request_error", "m"));
    assert_eq!(
        (failure.code.as_deref(), failure.request_id.as_deref()),
        (Some("invalid_request_error"), Some("req_1"))
    );
    let coded =
        r#"{"error":{"type":"x","details":{"error_code":"compaction_block_misplaced"},"code":"other"}}"#;
    assert_eq!(fail(400, coded).code.as_deref(), Some("compaction_block_misplaced"));
    let failure = with_headers(500, &[("x-request-id", "req_2"), ("request-id", "req_3")]);
    assert_eq!(failure.request_id.as_deref(), Some("req_3"));
    assert_eq!(with_headers(500, &[("x-request-id", "req_2")]).request_id.as_deref(), Some("req_2"));
}

#[test]
fn retry_headers_are_read() {
    let wait = |headers: &[(&str, &str)]| with_headers(429, headers).retry_after;
    assert_eq!(wait(&[]), None);
    assert_eq!(wait(&[("retry-after", "12")]), Some(Duration::from_secs(12)));
    assert_eq!(wait(&[("retry-after", " 1.5 ")]), Some(Duration::from_millis(1500)));
    assert_eq!(wait(&[("retry-after", "12"), ("retry-after-ms", "250")]), Some(Duration::from_millis(250)));
    assert_eq!(wait(&[("retry-after", "12"), ("retry-after-ms", "soon")]), Some(Duration::from_secs(12)));
    for odd in ["-1", "NaN", "soon", ""] {
        assert_eq!(wait(&[("retry-after", odd)]), None, "{odd}");
    }
    assert_eq!(wait(&[("retry-after", "inf")]), wait(&[("retry-after", "1e300")]));
    let date = ("date", "Sun, 15 Nov 2026 23:59:30 GMT");
    assert_eq!(
        wait(&[("retry-after", "Mon, 16 Nov 2026 00:00:10 GMT"), date]),
        Some(Duration::from_secs(40))
    );
    assert_eq!(
        wait(&[("retry-after", "Wed, 01 Mar 2028 00:00:00 GMT"), ("date", "Mon, 28 Feb 2028 00:00:00 GMT")]),
        Some(Duration::from_secs(2 * 86_400))
    );
    assert_eq!(wait(&[("retry-after", "Sun, 15 Nov 2026 20:00:00 GMT"), date]), Some(Duration::ZERO));
    assert_eq!(wait(&[("retry-after", "Mon, 16 Nov 2026 00:00:10 GMT")]), None);
    assert_eq!(wait(&[("retry-after", "Mon, 99 Nov 2026 00:00:10 GMT"), date]), None);
    let should = |value: &str| with_headers(400, &[("x-should-retry", value)]).should_retry;
    assert_eq!((should("true"), should("false"), should("perhaps")), (Some(true), Some(false), None));
}
