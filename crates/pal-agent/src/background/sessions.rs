//! A narrow search in earlier sessions: passages around words, never a session as a whole.

use std::path::PathBuf;
use std::time::SystemTime;

use pal_model::{Block, BlockType, Body, Content, Entry, Origin};
use pal_permissions::Need;
use pal_process::Cancel;
use pal_prompt::{ToolOrigin, ToolSpec};
use pal_store::Reader;
use pal_tools::{Input, Output, Running, Tool, Workspace};
use serde::Deserialize;
use smol_str::SmolStr;

/// The tool's name.
const NAME: &str = "SearchSessions";
/// Most passages of one search, and of one session in it.
const PASSAGES_MOST: usize = 20;
const PASSAGES_OF_SESSION: usize = 4;
/// Characters around what was found.
const AROUND: usize = 200;
/// Sessions that are gone through, the newest first, and bytes of them.
const SESSIONS_MOST: usize = 60;
const BYTES_MOST: u64 = 128 << 20;

/// Searches the sessions of a project.
pub(super) struct SearchSessions {
    /// The folder of all sessions.
    pub(super) sessions: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    query: String,
}

/// What a model is told of the tool.
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

impl Tool for SearchSessions {
    fn name(&self) -> &str {
        NAME
    }

    fn only_looks(&self, _: &Input) -> bool {
        true
    }

    fn needs(&self, input: &Input, _: &Workspace) -> Result<Vec<Need>, String> {
        input.read::<Fields>().map(|_| vec![Need::Use])
    }

    fn run(&self, input: &Input, running: &Running<'_>) -> Output {
        match input.read::<Fields>() {
            Ok(fields) => Output::text(&self.search(&fields.query, running.cancel)),
            Err(wrong) => Output::error(&wrong),
        }
    }
}

impl SearchSessions {
    fn search(&self, query: &str, cancel: &Cancel) -> String {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        // A word of one letter is everywhere.
        if words.iter().all(|word| word.chars().count() < 3) {
            return String::from("Look for at least one word of three letters.");
        }
        let (mut passages, mut bytes) = (Vec::new(), 0);
        for (log, length) in self.logs() {
            bytes += length;
            if bytes > BYTES_MOST || passages.len() >= PASSAGES_MOST || cancel.is_cancelled() {
                break;
            }
            let Ok(reader) = Reader::open(&log) else { continue };
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
        passages.truncate(PASSAGES_MOST);
        match passages.is_empty() {
            true => String::from("Nothing was found. Try fewer or other words."),
            false => passages.join("\n"),
        }
    }

    /// The logs with their sizes, the newest first.
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
        logs.into_iter().rev().take(SESSIONS_MOST).map(|(_, log, length)| (log, length)).collect()
    }
}

/// What stands around the words in an entry, if all of them are in it.
fn passage(entry: &Entry, words: &[String]) -> Option<String> {
    let (who, content) = match &entry.body {
        Body::User(user) if user.origin == Origin::Person => ("the user", &user.content),
        Body::User(user) => ("a tool", &user.content),
        Body::Assistant(assistant) => ("the agent", &assistant.content),
        _ => return None,
    };
    let text = texts(content);
    let letters: Vec<char> = text.chars().collect();
    let small: String = text.to_lowercase();
    if !words.iter().all(|word| small.contains(word.as_str())) {
        return None;
    }
    let longest = words.iter().max_by_key(|word| word.len())?;
    // Small letters may be of other lengths; then the passage begins a little beside.
    let at = small[..small.find(longest.as_str())?].chars().count();
    let from = at.saturating_sub(AROUND).min(letters.len());
    let to = (at + longest.chars().count() + AROUND).min(letters.len());
    let shown: String = letters[from..to].iter().collect();
    Some(format!("{who}: …{}…", shown.trim()))
}

fn texts(content: &Content) -> String {
    let words = |block: &Block| match block.kind() {
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
