//! Recorded sessions of other agents, replayed answer by answer and summarized.

use std::borrow::Cow;
use std::collections::HashSet;

use pal_model::{BlockType, EntryBody, LogEntry, MessageOrigin, Role, ToolUseId};
use pal_sim::{
    ExtractiveModel, ModelOutput, ModelPrompt, OutputBlock, PromptMessage, RecordedModel, SimulatedModel,
};
use pal_view::ViewScope;

use crate::session::{asked, requests};
use pal_testkit::{recorded_entries, session_files};

/// Texts and call ids of a recorded response, as the replay must return them.
fn recorded(entries: &[LogEntry], from: usize) -> Option<(Vec<String>, HashSet<ToolUseId>)> {
    let first = entries.get(from..)?.iter().find_map(|entry| match &entry.body {
        EntryBody::Assistant(assistant) => Some(assistant),
        _ => None,
    })?;
    let response = first.response.as_ref()?;
    let (mut texts, mut calls) = (Vec::new(), HashSet::new());
    for entry in entries {
        if let EntryBody::Assistant(assistant) = &entry.body
            && assistant.response.as_ref() == Some(response)
        {
            for block in assistant.content.blocks() {
                match block.kind() {
                    BlockType::Text => texts.extend(block.string("text").map(|text| text.into_owned())),
                    BlockType::ToolUse => calls.extend(block.tool_use_id().cloned()),
                    _ => {}
                }
            }
        }
    }
    texts.retain(|text| !text.trim().is_empty());
    Some((texts, calls))
}

fn heard(answer: &ModelOutput) -> (Vec<String>, HashSet<ToolUseId>) {
    let (mut texts, mut calls) = (Vec::new(), HashSet::new());
    for block in &answer.blocks {
        match block {
            OutputBlock::Text(text) => texts.push(text.clone()),
            OutputBlock::ToolUse { id: Some(id), .. } => {
                calls.insert(ToolUseId::from(id.as_str()));
            }
            other => panic!("a recorded call has an id: {other:?}"),
        }
    }
    (texts, calls)
}

#[test]
fn recorded_session_replays_its_own_answers() {
    let (mut sessions, mut right, mut all) = (0, 0, 0);
    for file in session_files() {
        let entries = recorded_entries(&file);
        let mut replay = RecordedModel::new(&entries);
        let mut wrong = Vec::new();
        let before = all;
        requests(&entries, ViewScope::Current, |request, index| {
            let Some(wanted) = recorded(&entries, index) else { return };
            // A response with thinking only is not replayed.
            if wanted.0.is_empty() && wanted.1.is_empty() {
                return;
            }
            let ask = asked(request);
            let answer = replay.answer(&ask);
            assert_eq!(answer.blocks, replay.answer(&ask).blocks, "a second attempt hears the same");
            all += 1;
            if heard(&answer) == wanted { right += 1 } else { wrong.push(index) }
        });
        sessions += 1;
        if !wrong.is_empty() {
            println!("{}: {} of {} answers differ", file.display(), wrong.len(), all - before);
        }
    }
    println!("{sessions} sessions: {right} of {all} answers are those of the recording");
    assert_eq!(right, all);
}

#[test]
fn recorded_session_reports_its_end_and_ignores_directives() {
    let Some(file) = session_files().into_iter().next() else { return };
    let entries = recorded_entries(&file);
    let mut replay = RecordedModel::new(&entries);
    let count = replay.len();
    let user = |words: &str| PromptMessage {
        role: Role::User,
        blocks: vec![Cow::Owned(serde_json::json!({"type": "text", "text": words}).to_string())],
    };
    let ask = |words: &str| ModelPrompt {
        model: "m",
        system: vec![],
        tools: vec![],
        messages: vec![user(words)],
        max_tokens: 9_000,
        thinks: false,
        compaction: None,
    };
    for at in 0..count {
        let summary =
            replay.answer(&ask("Your task is to create a detailed summary of the conversation so far."));
        assert!(matches!(&summary.blocks[0], OutputBlock::Text(text) if text.starts_with("## 1.")));
        let answer = replay.answer(&ask(&format!("after compaction {at}")));
        assert!(
            !matches!(&answer.blocks[0], OutputBlock::Text(text) if text.starts_with("The recording ends"))
        );
    }
    let end = replay.answer(&ask("and now?"));
    assert!(
        matches!(&end.blocks[0], OutputBlock::Text(text) if text.contains(&format!("all of its {count} answers")))
    );
}

/// True if a summary contains a text, whole or truncated.
fn appears(summary: &str, words: &str) -> bool {
    let start: String = words.trim().lines().next().unwrap_or_default().trim().chars().take(60).collect();
    summary.contains(words.trim()) || summary.contains(&start)
}

#[test]
fn recorded_session_summary_contains_only_its_content() {
    let (mut sessions, mut words, mut whole, mut files) = (0, 0, 0, 0);
    for file in session_files() {
        let entries = recorded_entries(&file);
        let mut newest = None;
        requests(&entries, ViewScope::Current, |request, index| newest = Some((request.clone(), index)));
        let Some((request, index)) = newest else { continue };
        let mut ask = asked(&request);
        let inputs: String =
            ask.messages.iter().flat_map(|message| &message.blocks).map(|raw| raw.as_ref()).collect();
        ask.compaction = Some(Cow::Borrowed(""));
        let summary = match &ExtractiveModel.answer(&ask).blocks[..] {
            [OutputBlock::Text(text)] => text.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            ExtractiveModel.answer(&ask).blocks,
            [OutputBlock::Text(summary.clone())],
            "twice the same"
        );
        assert!(summary.len() <= 64_000);
        // User text since the last boundary is in the request, so it must be in the summary.
        let since = entries[..index]
            .iter()
            .rposition(|entry| matches!(entry.body, EntryBody::Boundary(_)))
            .unwrap_or(0);
        for entry in &entries[since..index] {
            let EntryBody::User(user) = &entry.body else { continue };
            if user.origin != MessageOrigin::Person {
                continue;
            }
            for block in user.content.blocks().iter().filter(|block| block.kind() == BlockType::Text) {
                let said = block.string("text").unwrap_or_default();
                if said.trim().is_empty()
                    || said.contains("<system-reminder>")
                    || said.contains("session is being continued")
                {
                    continue;
                }
                words += 1;
                whole += usize::from(summary.contains(said.trim()));
                assert!(appears(&summary, &said), "{}: {said}", file.display());
            }
        }
        let section = summary.split("## 3. Files and code").nth(1).unwrap().split("## 4.").next().unwrap();
        for line in
            section.lines().filter_map(|line| line.strip_prefix("- ")).filter(|line| !line.starts_with('…'))
        {
            let path = line.rsplit_once(" (").map_or(line, |(path, _)| path);
            let path = path.split(" (written").next().unwrap().split(" (read").next().unwrap();
            let escaped = serde_json::to_string(path).unwrap();
            assert!(
                inputs.contains(escaped.trim_matches('"')),
                "{}: {path} was never touched",
                file.display()
            );
            files += 1;
        }
        sessions += 1;
    }
    println!("{sessions} sessions: {words} texts of people, {whole} of them whole; {files} files named");
}
