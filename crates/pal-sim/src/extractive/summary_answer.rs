//! Answer to a summary directive: nine sections, in the requested tags.

use pal_extract::{ConversationFacts, truncate};

/// Tags in which agents ask for the summary.
const TAGS: [&str; 2] = ["summary", "state_snapshot"];

/// Length of a summary: models write 4,000 to 24,000 characters, 15,000 in the mean of 20 recorded compactions.
const SUMMARY_BYTES: usize = 15_000;
/// Room for each message of the user: a conversation of many gets a longer summary.
const BYTES_PER_USER_MESSAGE: usize = 250;

/// Room for the summary that a client asked for, within `room` bytes. Lengths of the provider's own summaries are not recorded.
pub(crate) fn usual_room(facts: &ConversationFacts, room: usize) -> usize {
    room.min(SUMMARY_BYTES.max(BYTES_PER_USER_MESSAGE * facts.words.len()))
}

/// Answer to a summary directive: nine sections, in the requested tags.
pub(crate) fn answer(facts: &ConversationFacts, directive: &str, room: usize) -> String {
    let tag = TAGS.into_iter().find(|tag| directive.contains(&format!("<{tag}>")));
    let mut out = String::new();
    if directive.contains("<analysis>") {
        out.push_str(&format!(
            "<analysis>\n{} messages, {} calls of tools, {} files, {} errors; drawn from them word for word.\n</analysis>\n\n",
            facts.message_count,
            facts.call_count,
            facts.files.len(),
            facts.failures.len()
        ));
    }
    let room = room.saturating_sub(out.len() + 64);
    let body = truncate(&pal_extract::extractive_summary(facts, room), room);
    match tag {
        Some(tag) => out.push_str(&format!("<{tag}>\n{}\n</{tag}>", body.trim_end())),
        None => out.push_str(body.trim_end()),
    }
    out
}
