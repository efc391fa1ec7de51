//! The answer to a directive for a summary: nine sections, in the tags that it asks for.

use pal_extract::{Facts, cut};

/// Tags in which other agents and we ask for the summary.
const TAGS: [&str; 2] = ["summary", "state_snapshot"];

/// The answer to a directive for a summary.
pub(crate) fn answer(facts: &Facts, directive: &str, room: usize) -> String {
    let tag = TAGS.into_iter().find(|tag| directive.contains(&format!("<{tag}>")));
    let mut out = String::new();
    if directive.contains("<analysis>") {
        out.push_str(&format!(
            "<analysis>\n{} messages, {} calls of tools, {} files, {} errors; drawn from them word for word.\n</analysis>\n\n",
            facts.messages,
            facts.calls,
            facts.files.len(),
            facts.troubles.len()
        ));
    }
    let room = room.saturating_sub(out.len() + 64);
    let body = cut(&pal_extract::summary(facts, room), room);
    match tag {
        Some(tag) => out.push_str(&format!("<{tag}>\n{}\n</{tag}>", body.trim_end())),
        None => out.push_str(body.trim_end()),
    }
    out
}
