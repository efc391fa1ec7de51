//! `pal cost` over many sessions: every sum equals one that this file computes from the raw files by itself.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{CommandOutput, TestHome};

#[track_caller]
fn good(said: CommandOutput) -> String {
    assert_eq!(said.code, 0, "{}\n{}", said.out, said.err);
    said.out
}

fn parsed(out: &str) -> Value {
    serde_json::from_str(out).unwrap()
}

/// One response as this file reads it: day, project, model, and tokens.
#[derive(Clone, Debug, Default, PartialEq)]
struct RawResponse {
    day: String,
    project: String,
    model: String,
    input: u64,
    read: u64,
    written: u64,
    written_1h: u64,
    output: u64,
}

/// Sums of a group: requests, tokens and dollars.
#[derive(Clone, Debug, Default, PartialEq)]
struct RawSums {
    requests: u64,
    input: u64,
    read: u64,
    written: u64,
    output: u64,
    cost: f64,
}

/// Dollars per million tokens: input, output, 5-minute write, 1-hour write, read.
fn prices(model: &str, day: &str) -> Option<[f64; 5]> {
    let opus = [5.0, 25.0, 6.25, 10.0, 0.5];
    let sonnet = [3.0, 15.0, 3.75, 6.0, 0.3];
    let (sol_before, sol) = ([5.0, 30.0, 6.25, 6.25, 0.5], [4.0, 20.0, 5.0, 5.0, 0.4]);
    Some(match model {
        "claude-opus-4-5-20251101" | "claude-opus-4-5" | "claude-opus-4-6" | "claude-opus-5" => opus,
        "claude-sonnet-4-5-20250929" | "claude-sonnet-4-5" => sonnet,
        "gpt-5.5" => [5.0, 30.0, 5.0, 5.0, 0.5],
        "gpt-5.6-sol" if day < "2026-08-21" => sol_before,
        "gpt-5.6-sol" => sol,
        "gpt-5.1-codex" => [1.25, 10.0, 1.25, 1.25, 0.125],
        "gpt-5.3-codex-spark" => return None,
        other => panic!("no price in this test for {other}"),
    })
}

impl RawResponse {
    fn cost(&self) -> Option<f64> {
        let [mut input, mut output, write, write_1h, mut read] = prices(&self.model, &self.day)?;
        if self.model.starts_with("gpt-5.5") || self.model.starts_with("gpt-5.6") {
            let is_long = self.input + self.read + self.written > 272_000;
            (input, read, output) =
                if is_long { (2.0 * input, 2.0 * read, 1.5 * output) } else { (input, read, output) };
        }
        let short = self.written - self.written_1h;
        Some(
            (self.input as f64 * input
                + short as f64 * write
                + self.written_1h as f64 * write_1h
                + self.read as f64 * read
                + self.output as f64 * output)
                / 1e6,
        )
    }
}

fn lines(file: &Path) -> Vec<Value> {
    let text = String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn day_of(at: &Value) -> String {
    at.as_str().unwrap_or_default().chars().take(10).collect()
}

/// Responses of all Claude Code transcripts: once per message and request id, with the largest output count.
fn claude_responses(files: &[PathBuf]) -> Vec<RawResponse> {
    let mut all: Vec<RawResponse> = Vec::new();
    let mut known: HashMap<(String, String), usize> = HashMap::new();
    for file in files {
        let lines = lines(file);
        let project = lines.iter().find_map(|line| line["cwd"].as_str()).unwrap_or("(unknown)").to_owned();
        for line in &lines {
            let (message, usage) = (&line["message"], &line["message"]["usage"]);
            let is_counted = line["type"] == "assistant"
                && usage.is_object()
                && message["model"] != "<synthetic>"
                && line["isApiErrorMessage"] != true;
            if !is_counted {
                continue;
            }
            let response = RawResponse {
                day: day_of(&line["timestamp"]),
                project: project.clone(),
                model: message["model"].as_str().unwrap().to_owned(),
                input: count(&usage["input_tokens"]),
                read: count(&usage["cache_read_input_tokens"]),
                written: count(&usage["cache_creation_input_tokens"]),
                written_1h: count(&usage["cache_creation"]["ephemeral_1h_input_tokens"]),
                output: count(&usage["output_tokens"]),
            };
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let key = (text(&message["id"]), text(&line["requestId"]));
            match known.get(&key) {
                Some(at) if response.output >= all[*at].output => {
                    let (day, project) = (all[*at].day.clone(), all[*at].project.clone());
                    all[*at] = RawResponse { day, project, ..response };
                }
                Some(_) => {}
                None => {
                    known.insert(key, all.len());
                    all.push(response);
                }
            }
        }
    }
    all
}

/// Responses of Codex rollouts: each count of tokens that changes the totals.
fn codex_responses(files: &[PathBuf]) -> Vec<RawResponse> {
    let mut all = Vec::new();
    for file in files {
        let lines = lines(file);
        let project =
            lines.iter().find_map(|line| line["payload"]["cwd"].as_str()).unwrap_or("(unknown)").to_owned();
        let (mut model, mut totals) = (String::new(), Value::Null);
        for line in &lines {
            let payload = &line["payload"];
            if line["type"] == "turn_context" {
                model = payload["model"].as_str().unwrap_or(&model).to_owned();
            }
            let (last, total) = (&payload["info"]["last_token_usage"], &payload["info"]["total_token_usage"]);
            let is_counted = payload["type"] == "token_count"
                && count(&last["input_tokens"]) + count(&last["output_tokens"]) > 0
                && *total != totals;
            if !is_counted {
                continue;
            }
            totals = total.clone();
            let (input, read) = (count(&last["input_tokens"]), count(&last["cached_input_tokens"]));
            all.push(RawResponse {
                day: day_of(&line["timestamp"]),
                project: project.clone(),
                model: model.clone(),
                input: input - read,
                read,
                output: count(&last["output_tokens"]),
                ..RawResponse::default()
            });
        }
    }
    all
}

/// Sums of responses by a key.
fn sums(responses: &[RawResponse], key: impl Fn(&RawResponse) -> String) -> BTreeMap<String, RawSums> {
    let mut groups: BTreeMap<String, RawSums> = BTreeMap::new();
    for response in responses {
        let sum = groups.entry(key(response)).or_default();
        sum.requests += 1;
        sum.input += response.input;
        sum.read += response.read;
        sum.written += response.written;
        sum.output += response.output;
        // Without prompt tokens, a response has no reported usage and no cost.
        if response.input + response.read + response.written > 0 {
            sum.cost += response.cost().unwrap_or(0.0);
        }
    }
    groups
}

/// Sums that the program reports, by the values of its keys.
fn reported(json: &Value, keys: &[&str]) -> BTreeMap<String, RawSums> {
    let mut groups = BTreeMap::new();
    for group in json["groups"].as_array().unwrap() {
        let name: Vec<&str> = keys.iter().map(|key| group[*key].as_str().unwrap()).collect();
        let sums = RawSums {
            requests: count(&group["requests"]),
            input: count(&group["input_tokens"]),
            read: count(&group["cache_read_tokens"]),
            written: count(&group["cache_write_tokens"]),
            output: count(&group["output_tokens_recorded"]),
            cost: group["cost_usd_recorded"].as_f64().unwrap_or(0.0),
        };
        groups.insert(name.join(" "), sums);
    }
    groups
}

#[track_caller]
fn assert_equal(reported: &BTreeMap<String, RawSums>, expected: &BTreeMap<String, RawSums>) {
    assert_eq!(reported.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (key, sums) in expected {
        let found = &reported[key];
        assert_eq!(RawSums { cost: 0.0, ..found.clone() }, RawSums { cost: 0.0, ..sums.clone() }, "{key}");
        assert!(
            (found.cost - sums.cost).abs() < 1e-6 * sums.cost.max(1.0),
            "{key}: {} {}",
            found.cost,
            sums.cost
        );
    }
}

/// A response of Claude Code.
fn response(session: &str, id: &str, at: &str, model: &str, (read, output): (u64, u64)) -> String {
    format!(
        r#"{{"type":"assistant","uuid":"{session}-{id}","sessionId":"{session}","cwd":"/src/{session}","timestamp":"{at}","requestId":"req-{id}","message":{{"id":"{id}","role":"assistant","model":"{model}","stop_reason":"end_turn","content":[{{"type":"text","text":"ok"}}],"usage":{{"input_tokens":100,"cache_creation_input_tokens":1000,"cache_read_input_tokens":{read},"output_tokens":{output}}}}}}}"#
    ) + "\n"
}

/// Two sessions, the second one resumed from the first, and a third in another month.
fn made_up(home: &TestHome) -> PathBuf {
    let directory = home.path().join("sessions");
    for name in ["one", "two"] {
        std::fs::create_dir_all(directory.join(name)).unwrap();
    }
    let first = response("app", "m1", "2026-10-30T10:00:00.000Z", "claude-opus-5", (0, 10))
        + &response("app", "m2", "2026-10-30T10:01:00.000Z", "claude-opus-5", (50_000, 20));
    let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
    write("one/a.jsonl", &first);
    let resumed = first.replace("\"sessionId\":\"app\"", "\"sessionId\":\"app2\"");
    // After eleven minutes the cache has expired.
    let more = response("app2", "m3", "2026-10-31T23:30:00.000Z", "claude-opus-5", (1_000, 30));
    write("one/b.jsonl", &(resumed + &more));
    write("two/c.jsonl", &response("lib", "m4", "2026-11-02T09:00:00.000Z", "mystery-1", (0, 5)));
    write("two/notes.json", "{\"not\": \"a session\"}");
    directory
}

#[test]
fn sessions_are_summed_by_any_key_and_copies_count_once() {
    let home = TestHome::new();
    let directory = made_up(&home);
    let folder = directory.to_str().unwrap();
    let json =
        parsed(&good(home.run(&["cost", folder, "--by", "day,project", "--timezone", "UTC", "--json"])));
    let raw = claude_responses(&["one/a.jsonl", "one/b.jsonl"].map(|name| directory.join(name)));
    let mut expected = sums(&raw, |response| format!("{} {}", response.day, response.project));
    expected.insert(
        "2026-11-02 /src/lib".into(),
        RawSums { requests: 1, input: 100, written: 1_000, output: 5, ..RawSums::default() },
    );
    assert_equal(&reported(&json, &["day", "project"]), &expected);
    assert_eq!(
        (&json["repeated_responses"], &json["sessions"], &json["unknown_files"]),
        (&2.into(), &3.into(), &1.into())
    );
    assert_eq!((&json["all"]["unpriced"], &json["unpriced_models"]["mystery-1"]), (&1.into(), &1.into()));
    assert_eq!(json["groups"][2]["cost_usd"], Value::Null, "an unknown price is not zero");
    let missed = &json["misses_by_cause"]["expired"];
    assert_eq!((&missed["count"], &missed["tokens"]), (&1.into(), &49_000.into()), "{json}");
    assert!(missed["cost_usd"].as_f64().unwrap() > 0.0);
    for (keys, groups) in [("week", 2), ("month", 2), ("model", 2), ("agent", 1), ("session", 3)] {
        let json = parsed(&good(home.run(&["cost", folder, "--by", keys, "--timezone", "UTC", "--json"])));
        assert_eq!(json["groups"].as_array().unwrap().len(), groups, "{keys}: {json}");
        assert_eq!(json["all"]["requests"], 4, "{keys}");
    }
}

#[test]
fn the_table_says_what_is_not_known_and_fits_the_screen() {
    let home = TestHome::new();
    let directory = made_up(&home);
    let folder = directory.to_str().unwrap();
    let out = good(home.run(&["cost", folder, "--by", "day,project", "--timezone", "UTC"]));
    let too_long = out.lines().find(|line| line.chars().count() > 80);
    assert_eq!(too_long, None, "{out}");
    for words in [
        "for 4 requests in 3 sessions, 2026-10-30 to 2026-11-02",
        "2026-10-31  /src/app ",
        "not known",
        "total",
        "price not known for 1 request of mystery-1 (1)",
        "49.0 K tokens",
        "the cache expired during a pause",
        "2 responses repeated in resumed or copied sessions counted once",
    ] {
        assert!(out.contains(words), "{words}\n{out}");
    }
    let csv = good(home.run(&["cost", folder, "--by", "day,project", "--timezone", "UTC", "--csv"]));
    let rows: Vec<&str> = csv.lines().collect();
    assert!(rows[0].starts_with("day,project,requests,cache_read_tokens,"), "{csv}");
    assert!(rows.len() == 4 && rows[3].starts_with("2026-11-02,/src/lib,1,0,1000,100,5,5,,0,1,"), "{csv}");
}

#[test]
fn days_are_chosen_and_follow_the_time_zone() {
    let home = TestHome::new();
    let directory = made_up(&home);
    let folder = directory.to_str().unwrap();
    let days = |arguments: &[&str]| -> Vec<String> {
        let json = parsed(&good(home.run(&[&["cost", folder, "--json", "--by", "day"], arguments].concat())));
        let groups = json["groups"].as_array().unwrap();
        groups.iter().map(|group| group["day"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(days(&["--timezone", "UTC", "--since", "2026-10-31"]), ["2026-10-31", "2026-11-02"]);
    assert_eq!(days(&["--timezone", "utc", "--until", "20261031"]), ["2026-10-30", "2026-10-31"]);
    for (arguments, words) in [
        (&["--since", "soon"][..], "--since soon: not a day"),
        (&["--since", "2026-11-02", "--until", "2026-11-01"], "is after --until"),
        (&["--timezone", "Mars/Olympus"], "no such time zone"),
        (&["--by", "day,week,month,model,agent"], "at most 4 keys"),
        (&["--all"], "--all already covers"),
        (&["--requests"], "name one session"),
        (&["--by", "hour"], "invalid value 'hour'"),
    ] {
        let said = home.run(&[&["cost", folder], arguments].concat());
        assert!(said.code == 2 && said.err.contains(words), "{arguments:?}: {}", said.err);
    }
    let said = home.run(&["cost", "/nowhere/*.jsonl"]);
    assert!(said.code == 1 && said.err.contains("no file matches"), "{}", said.err);
}

#[test]
fn all_agents_of_a_home_are_found_and_an_import_counts_once() {
    let home = TestHome::new();
    let user = home.path().join("user");
    let transcripts = user.join(".claude/projects/-src-app");
    std::fs::create_dir_all(&transcripts).unwrap();
    let session = response("app", "m1", "2026-10-30T10:00:00.000Z", "claude-opus-5", (0, 10));
    let file = transcripts.join("app.jsonl");
    std::fs::write(&file, &session).unwrap();
    let rollouts = user.join(".codex/sessions/2026/10/30");
    std::fs::create_dir_all(&rollouts).unwrap();
    let rollout = r#"{"timestamp":"2026-10-30T10:00:00.000Z","type":"session_meta","payload":{"id":"c1","cwd":"/src/app"}}
{"timestamp":"2026-10-30T10:00:00.000Z","type":"turn_context","payload":{"model":"gpt-5.6-sol"}}
{"timestamp":"2026-10-30T10:00:09.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1000},"last_token_usage":{"input_tokens":1000,"cached_input_tokens":400,"output_tokens":50}}}}
"#;
    std::fs::write(rollouts.join("rollout-c1.jsonl"), rollout).unwrap();
    let variables = [("HOME", user.to_str().unwrap())];
    let cost = || {
        let said = home.run_with_environment(&["cost", "--by", "agent", "--json"], &variables);
        parsed(&good(said))
    };
    let before = cost();
    let agents: Vec<&str> =
        before["groups"].as_array().unwrap().iter().map(|group| group["agent"].as_str().unwrap()).collect();
    assert_eq!(agents, ["claude-code", "codex"]);
    let sol = (600.0 * 4.0 + 400.0 * 0.4 + 50.0 * 20.0) / 1e6;
    assert!((before["groups"][1]["cost_usd"].as_f64().unwrap() - sol).abs() < 1e-9, "{before}");
    let imported = home.run_with_environment(&["import", file.to_str().unwrap()], &variables);
    assert_eq!(imported.code, 0, "{}", imported.err);
    assert_eq!(cost()["all"], before["all"], "an imported copy is not paid for again");
    std::fs::remove_file(&file).unwrap();
    let after = cost();
    assert_eq!(after["all"], before["all"], "what was deleted was paid for");
    assert_eq!(after["deleted_files"], 1);
}

#[test]
fn a_session_of_another_agent_is_found_by_the_start_of_its_id() {
    let home = TestHome::new();
    let user = home.path().join("user");
    let transcripts = user.join(".claude/projects/-src-app");
    std::fs::create_dir_all(&transcripts).unwrap();
    for (id, message) in [("aba9151e-0001", "m1"), ("aba9151e-0002", "m2")] {
        let session = response("app", message, "2026-10-30T10:00:00.000Z", "claude-opus-5", (0, 10));
        std::fs::write(transcripts.join(format!("{id}.jsonl")), session).unwrap();
    }
    let variables = [("HOME", user.to_str().unwrap())];
    let cost = |arguments: &[&str]| home.run_with_environment(&[&["cost"], arguments].concat(), &variables);
    let out = good(cost(&["aba9151e-0001", "--by", "session"]));
    assert!(out.contains("aba9151e-0001 ") && !out.contains("aba9151e-0002"), "{out}");
    assert_eq!(cost(&["aba9151e-0001"]).code, 0);
    let said = cost(&["aba9151e"]);
    assert!(said.code == 1 && said.err.contains("name the file"), "{}", said.err);
}

#[test]
fn sessions_of_the_simulator_are_never_money() {
    let home = TestHome::new();
    let line = r#"{"v":1,"id":"01a1ec21-5e73-7000-9022-d7f7f2fa76d0","parent":null,"at":"2026-11-18T00:49:32.275Z","kind":"session","program":"pal","cwd":"/src/app"}
{"v":1,"id":"01a1ec21-5e73-7000-9022-d7f7f2fa76d1","parent":"01a1ec21-5e73-7000-9022-d7f7f2fa76d0","at":"2026-11-18T00:49:33.275Z","kind":"response","response":"m1","source":"main","model":"claude-opus-5-5","usage":{"input_tokens":1000,"output_tokens":100,"basis":"simulated"},"cost":0.006}
"#;
    let file = home.file("log.jsonl", line);
    let out = good(home.run(&["cost", &file, "--by", "model"]));
    assert!(
        out.contains("1 request went to a simulator; $0.0060 not spent") && !out.contains("$0.0060 for"),
        "{out}"
    );
    assert!(out.starts_with("All agents: 1 request in 1 session, "), "{out}");
    let out = good(home.run(&["cost", &file]));
    assert!(out.contains("$0.0060 simulated for 1 request, nothing spent"), "{out}");
}

#[test]
fn own_recordings_equal_a_sum_of_their_entries() {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sessions").canonicalize().unwrap();
    let (mut expected, mut seen) = (RawSums::default(), std::collections::HashSet::new());
    for file in std::fs::read_dir(&directory).unwrap() {
        for entry in lines(&file.unwrap().path()).iter().filter(|entry| entry["kind"] == "response") {
            // A fork repeats the entries of its parent.
            if seen.insert((entry["response"].to_string(), entry["at"].to_string())) {
                let usage = &entry["usage"];
                expected.requests += 1;
                expected.input += count(&usage["input_tokens"]);
                expected.read += count(&usage["cache_read_input_tokens"]);
                expected.written += count(&usage["cache_creation_input_tokens"]);
                expected.output += count(&usage["output_tokens"]);
                expected.cost += entry["cost"].as_f64().unwrap();
            }
        }
    }
    assert!(expected.requests > 100);
    let home = TestHome::new();
    let json = parsed(&good(home.run(&["cost", directory.to_str().unwrap(), "--by", "agent", "--json"])));
    assert_equal(&reported(&json, &["agent"]), &BTreeMap::from([("pal".to_owned(), expected)]));
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_sessions_equal_a_sum_of_the_raw_files() {
    let data = pal_testkit::data_dir().unwrap().join("sessions");
    let home = TestHome::new();
    for (agent, read) in
        [("claude", claude_responses as fn(&[PathBuf]) -> Vec<RawResponse>), ("codex", codex_responses)]
    {
        let mut files: Vec<PathBuf> = pal_testkit::session_files()
            .into_iter()
            .filter(|file| file.starts_with(data.join(agent)))
            .collect();
        // The program counts a response for the session in which it occurs first.
        files.sort_by_key(|file| {
            let at = |line: &Value| line["timestamp"].as_str().map(str::to_owned);
            let counted = |line: &&Value| {
                line["message"]["usage"].is_object() || line["payload"]["type"] == "token_count"
            };
            (lines(file).iter().filter(counted).filter_map(at).min(), file.clone())
        });
        let raw = read(&files);
        let folder = data.join(agent);
        let by = |keys: &str| {
            let arguments = ["cost", folder.to_str().unwrap(), "--timezone", "UTC", "--json", "--by", keys];
            parsed(&good(home.run(&arguments)))
        };
        let json = by("day,project");
        assert_equal(
            &reported(&json, &["day", "project"]),
            &sums(&raw, |response| format!("{} {}", response.day, response.project)),
        );
        let json = by("model");
        let undated = |model: &str| {
            let (name, date) = model.rsplit_once('-').unwrap_or((model, ""));
            if date.len() == 8 { name.to_owned() } else { model.to_owned() }
        };
        assert_equal(&reported(&json, &["model"]), &sums(&raw, |response| undated(&response.model)));
        println!(
            "{agent}: {} files, {} responses, {} of recorded usage; misses {}",
            files.len(),
            json["all"]["requests"],
            json["all"]["cost_usd_recorded"],
            json["all"]["misses"]
        );
    }
}
