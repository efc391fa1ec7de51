//! `Recall` (§7.8): searches all sessions of the project for content that is no longer visible, and shows it
//! verbatim.
//!
//! It uses the index of `pal recall`. A log elsewhere is indexed for the call only.

use std::path::Path;

use pal_model::{EntryId, Timestamp};
use pal_process::CancelToken;
use pal_recall::{Recall, RecallCaller, RecallRequest, answer_request, project_and_session};

/// Runs a recall query; returns the text for the model. The `ignored` entries are not searched.
pub(crate) fn recall(
    (log, ignored): (&Path, &[EntryId]),
    input: &str,
    now: Timestamp,
    cancel: &CancelToken,
) -> Result<String, String> {
    let asked: RecallRequest =
        serde_json::from_str(input).map_err(|error| format!("the input does not fit: {error}"))?;
    let log = log.canonicalize().map_err(|error| format!("the log cannot be read: {error}"))?;
    let (recall, own) = match project_and_session(&log) {
        Some((project, session)) => (Recall::of_project(&project), session),
        None => {
            let folder = log.parent().and_then(Path::file_name).unwrap_or_default();
            (Recall::of_log(&log), folder.to_string_lossy().into_owned())
        }
    };
    let caller = RecallCaller { session: &own, ignored };
    answer_request(&mut [recall], Some(caller), &asked, now, &mut |_| !cancel.is_cancelled())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use pal_model::{EntryDraft, IdSource, MessageOrigin, escape_into};
    use pal_store::Log;

    /// Characters per page.
    const PAGE: usize = 40_000;

    fn now() -> Timestamp {
        Timestamp::from_milliseconds(1_800_000_000_000)
    }

    fn log_of(path: &Path, seed: u64, texts: &[&str]) -> Vec<EntryId> {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut log = Log::create(path, IdSource::seeded(seed)).unwrap();
        let ids = texts.iter().map(|text| {
            let mut content = String::new();
            escape_into(&mut content, text);
            log.append(EntryDraft::user(MessageOrigin::Person, &content), now()).unwrap().id
        });
        ids.collect()
    }

    fn asked(log: &Path, input: &str) -> Result<String, String> {
        recall((log, &[]), input, now(), &CancelToken::new())
    }

    #[test]
    fn all_sessions_are_searched_or_only_this_one_if_asked_for() {
        let home = tempfile::tempdir().unwrap();
        let log =
            |id: &str| -> PathBuf { home.path().join("projects/p/sessions").join(id).join("log.jsonl") };
        let long = format!("{}\nthe Parser fails on empty input\nafter", "line\n".repeat(50));
        let ids = log_of(&log("one"), 1, &["hello", &long, "a parser without the rest"]);
        log_of(&log("two"), 2, &["Ports of the parser", "the parser has its input from port 4010"]);
        let found = asked(&log("one"), r#"{"query":"parser INPUT","scope":"session"}"#).unwrap();
        assert!(found.contains("the Parser fails on empty input\nafter"), "{found}");
        assert!(
            found.starts_with("1 place in this session") && found.contains(&ids[1].to_string()),
            "{found}"
        );
        let all = asked(&log("one"), r#"{"query":"parser INPUT"}"#).unwrap();
        assert!(all.starts_with("2 places"), "{all}");
        assert!(
            all.contains("; this session)") && all.contains("; session two \"Ports of the parser\")"),
            "{all}"
        );
        let nothing = asked(&log("one"), r#"{"query":"nowhere","scope":"session"}"#).unwrap();
        assert!(nothing.starts_with("Nothing in this session") && nothing.contains("`project`"), "{nothing}");
        for wrong in
            ["{}", r#"{"query":" "}"#, r#"{"entry":"x"}"#, r#"{"query":7}"#, r#"{"query":"a","scope":"b"}"#]
        {
            assert!(asked(&log("one"), wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_search_does_not_find_itself_or_its_prompt() {
        let home = tempfile::tempdir().unwrap();
        let log =
            |id: &str| -> PathBuf { home.path().join("projects/p/sessions").join(id).join("log.jsonl") };
        log_of(&log("one"), 1, &["Ports", "We chose port 4010 for the gateway, because 4000 was taken."]);
        let path = log("two");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut open = Log::create(&path, IdSource::seeded(2)).unwrap();
        let mut append = |draft: EntryDraft| open.append(draft, now()).unwrap().id;
        let call =
            r#"[{"type":"tool_use","id":"a","name":"Recall","input":{"query":"gateway port reason"}}]"#;
        append(EntryDraft::assistant(None, None, call));
        let nothing = asked(&path, r#"{"query":"gateway port reason zebra","scope":"session"}"#).unwrap();
        let mut content = String::new();
        escape_into(&mut content, &nothing);
        let result = format!(r#"[{{"type":"tool_result","tool_use_id":"a","content":{content}}}]"#);
        append(EntryDraft::user(MessageOrigin::Tool, &result));
        let asks = "\"What was the reason for the gateway port?\"";
        let prompt = append(EntryDraft::user(MessageOrigin::Person, asks));
        append(EntryDraft::assistant(None, None, &call.replace("\"a\"", "\"b\"")));
        let input = r#"{"query":"gateway port reason"}"#;
        let found = recall((&path, &[prompt]), input, now(), &CancelToken::new()).unwrap();
        assert!(found.contains("We chose port 4010") && !found.contains("this session)"), "{found}");
        // A later turn sees the question, but not the calls.
        let found = asked(&path, input).unwrap();
        assert!(found.contains("What was the reason") && !found.contains("a call of Recall"), "{found}");
    }

    #[test]
    fn quoted_phrases_must_stand_in_the_text() {
        let home = tempfile::tempdir().unwrap();
        let log = home.path().join("projects/p/sessions/one/log.jsonl");
        log_of(&log, 1, &["the gateway of the old port", "the old\n  Gateway port is closed", "nothing"]);
        let found = asked(&log, r#"{"query":"\"old gateway port\" closed"}"#).unwrap();
        assert!(found.starts_with("1 place") && found.contains("port is closed"), "{found}");
        let loose = asked(&log, r#"{"query":"\"gateway of the new port\""}"#).unwrap();
        assert!(loose.starts_with("Nothing in") && loose.contains("search again without them"), "{loose}");
    }

    #[test]
    fn an_entry_is_shown_exactly_and_page_by_page() {
        let long = "äb".repeat(PAGE);
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("session.jsonl");
        let ids = log_of(&log, 1, &["before it", &long, "after it"]);
        let page =
            |offset: usize| asked(&log, &format!(r#"{{"entry":"{}","offset":{offset}}}"#, ids[1])).unwrap();
        let first = page(0);
        let second = page(PAGE);
        let note = first.rfind("\n[").unwrap();
        assert_eq!(format!("{}{second}", &first[..note]), long);
        let around = asked(&log, &format!(r#"{{"entry":"{}","before":1}}"#, ids[2])).unwrap();
        assert!(around.contains("äbäb") && around.contains("more characters") && around.contains("after it"));
        assert!(!around.contains("before it"));
    }
}
