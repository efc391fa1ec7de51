//! `Recall` (§7.8): searches all sessions of the project for content that is no longer visible, and shows it
//! verbatim.
//!
//! It uses the index of `pal recall`. A log elsewhere is indexed for the call only.

use std::path::Path;

use pal_model::Timestamp;
use pal_process::CancelToken;
use pal_recall::{Recall, RecallRequest, answer_request, project_and_session};

/// Runs a recall query; returns the text for the model.
pub(crate) fn recall(
    log: &Path,
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
    answer_request(&mut [recall], Some(&own), &asked, now, &mut |_| !cancel.is_cancelled())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use pal_model::{EntryDraft, EntryId, IdSource, MessageOrigin, escape_into};
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
        recall(log, input, now(), &CancelToken::new())
    }

    #[test]
    fn this_session_is_searched_and_earlier_ones_if_asked_for() {
        let home = tempfile::tempdir().unwrap();
        let log =
            |id: &str| -> PathBuf { home.path().join("projects/p/sessions").join(id).join("log.jsonl") };
        let long = format!("{}\nthe Parser fails on empty input\nafter", "line\n".repeat(50));
        let ids = log_of(&log("one"), 1, &["hello", &long, "a parser without the rest"]);
        log_of(&log("two"), 2, &["Ports of the parser", "the parser has its input from port 4010"]);
        let found = asked(&log("one"), r#"{"query":"parser INPUT"}"#).unwrap();
        assert!(found.contains("the Parser fails on empty input\nafter"), "{found}");
        assert!(
            found.starts_with("1 place in this session") && found.contains(&ids[1].to_string()),
            "{found}"
        );
        let all = asked(&log("one"), r#"{"query":"parser INPUT","scope":"project"}"#).unwrap();
        assert!(all.starts_with("2 places"), "{all}");
        assert!(
            all.contains("; this session)") && all.contains("; session two \"Ports of the parser\")"),
            "{all}"
        );
        let nothing = asked(&log("one"), r#"{"query":"nowhere"}"#).unwrap();
        assert!(nothing.starts_with("Nothing in this session") && nothing.contains("`project`"), "{nothing}");
        for wrong in
            ["{}", r#"{"query":" "}"#, r#"{"entry":"x"}"#, r#"{"query":7}"#, r#"{"query":"a","scope":"b"}"#]
        {
            assert!(asked(&log("one"), wrong).is_err(), "{wrong}");
        }
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
