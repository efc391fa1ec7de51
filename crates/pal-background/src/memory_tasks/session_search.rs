//! Narrow search in earlier sessions: passages around words, never a whole session.

use std::path::PathBuf;
use std::time::SystemTime;

use pal_model::{BlockType, Content, ContentBlock, EntryBody, LogEntry, MessageOrigin};
use pal_permissions::ToolAccess;
use pal_process::CancelToken;
use pal_prompt::{ToolOrigin, ToolSpec};
use pal_store::LogReader;
use pal_tools::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};
use serde::Deserialize;
use smol_str::SmolStr;

/// Tool name.
const NAME: &str = "SearchSessions";
/// Maximum passages per search and per session.
const PASSAGES_MAX: usize = 20;
const PASSAGES_OF_SESSION: usize = 4;
/// Characters around a match.
const AROUND: usize = 200;
/// Maximum sessions and bytes to search, newest first.
const SESSIONS_MAX: usize = 60;
const BYTES_MAX: u64 = 128 << 20;

/// Searches the sessions of a project.
pub(super) struct SearchSessionsTool {
    /// Directory of all sessions.
    pub(super) sessions: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchSessionsInput {
    query: String,
}

/// Tool specification. Text for the model.
pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: SmolStr::new_static(NAME),
        description: String::from(
            "Searches what was said in earlier sessions of this project: the user's words, the agent's answers, results of \
             tools. Gives short passages that hold all the words of the query, the newest sessions first. Ask for something \
             narrow, such as a name or a phrase that you suspect was said.",
        ),
        schema: r#"{"type":"object","properties":{"query":{"type":"string","description":"Words that all have to be there."}},"required":["query"],"additionalProperties":false}"#.into(),
        origin: ToolOrigin::BuiltIn,
        is_deferred: false,
    }
}

impl ToolHandler for SearchSessionsTool {
    fn name(&self) -> &str {
        NAME
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn required_access(&self, input: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        input.read::<SearchSessionsInput>().map(|_| vec![ToolAccess::Use])
    }

    fn run(&self, input: &ToolInput, running: &ToolContext<'_>) -> ToolOutput {
        match input.read::<SearchSessionsInput>() {
            Ok(fields) => ToolOutput::text(&self.search(&fields.query, running.cancel)),
            Err(wrong) => ToolOutput::error(&wrong),
        }
    }
}

impl SearchSessionsTool {
    fn search(&self, query: &str, cancel: &CancelToken) -> String {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        // One-letter words match everywhere.
        if words.iter().all(|word| word.chars().count() < 3) {
            return String::from("Look for at least one word of three letters.");
        }
        let (mut passages, mut bytes) = (Vec::new(), 0);
        for (log, length) in self.logs() {
            bytes += length;
            if bytes > BYTES_MAX || passages.len() >= PASSAGES_MAX || cancel.is_cancelled() {
                break;
            }
            let Ok(reader) = LogReader::open(&log) else { continue };
            let session = log.parent().and_then(|folder| folder.file_name());
            let session = session.map_or(String::new(), |name| name.to_string_lossy().into_owned());
            let mut of_session = 0;
            for line in reader.lines().filter_map(|line| line.ok()) {
                let Some(found) = passage(&line.entry, &words) else { continue };
                passages.push(format!("--- session {session}, {}\n{found}", line.entry.at));
                of_session += 1;
                if of_session >= PASSAGES_OF_SESSION || cancel.is_cancelled() {
                    break;
                }
            }
        }
        passages.truncate(PASSAGES_MAX);
        match passages.is_empty() {
            true => String::from("Nothing was found. Try fewer or other words."),
            false => passages.join("\n"),
        }
    }

    /// Logs and sizes, newest first.
    fn logs(&self) -> Vec<(PathBuf, u64)> {
        let folders = std::fs::read_dir(&self.sessions).into_iter().flatten().flatten();
        let mut logs: Vec<(SystemTime, PathBuf, u64)> = folders
            .filter_map(|folder| {
                let log = pal_store::log_path(&folder.path());
                let metadata = log.symlink_metadata().ok().filter(|metadata| metadata.is_file())?;
                Some((metadata.modified().ok()?, log, metadata.len()))
            })
            .collect();
        logs.sort();
        logs.into_iter().rev().take(SESSIONS_MAX).map(|(_, log, length)| (log, length)).collect()
    }
}

/// Passage around the words, if an entry contains all of them.
fn passage(entry: &LogEntry, words: &[String]) -> Option<String> {
    let (who, content) = match &entry.body {
        EntryBody::User(user) if user.origin == MessageOrigin::Person => ("the user", &user.content),
        EntryBody::User(user) => ("a tool", &user.content),
        EntryBody::Assistant(assistant) => ("the agent", &assistant.content),
        _ => return None,
    };
    let text = texts(content);
    let letters: Vec<char> = text.chars().collect();
    let small: String = text.to_lowercase();
    if !words.iter().all(|word| small.contains(word.as_str())) {
        return None;
    }
    let longest = words.iter().max_by_key(|word| word.len())?;
    // Lowercase may have another length; the passage is then slightly shifted.
    let at = small[..small.find(longest.as_str())?].chars().count();
    let from = at.saturating_sub(AROUND).min(letters.len());
    let to = (at + longest.chars().count() + AROUND).min(letters.len());
    let shown: String = letters[from..to].iter().collect();
    Some(format!("{who}: …{}…", shown.trim()))
}

fn texts(content: &Content) -> String {
    let words = |block: &ContentBlock| match block.kind() {
        BlockType::Text => block.string("text").map(|text| text.into_owned()),
        BlockType::ToolResult => {
            let inner = block.content();
            let texts = inner.blocks().iter().filter_map(|block| Some(block.string("text")?.into_owned()));
            Some(texts.collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    };
    content.blocks().iter().filter_map(words).collect::<Vec<_>>().join("\n")
}
