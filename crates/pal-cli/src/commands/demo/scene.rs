//! One run of the program, narrated line by line.

use std::collections::HashMap;
use std::time::Duration;

use pal_model::SummaryAudit;
use pal_model::text::group_digits;
use serde_json::Value;

use super::demo_provider::DemoProvider;
use super::narrator::Narrator;
use super::program_run::{LineReaction, ProgramRun};
use super::scratch_dir::ScratchDir;
use super::session_events::{CallEvent, ContextDecision, SessionEvents};
use crate::failure::Failure;

/// State shared by all scenes.
pub(super) struct DemoStage<'a, 'b> {
    pub(super) scratch: &'a ScratchDir,
    pub(super) provider: &'a DemoProvider,
    pub(super) narrator: &'a mut Narrator<'b>,
    pub(super) events: SessionEvents,
    /// Offset of the program's clock.
    pub(super) ahead: Duration,
}

/// Observations of one run.
#[derive(Default)]
pub(super) struct SceneResult {
    /// Cache-read tokens of the first answer.
    pub(super) first_read: Option<u64>,
    /// Signal that ended the program.
    pub(super) killed_by: Option<i32>,
    /// Descriptions of running tool calls, by id.
    descriptions: HashMap<String, String>,
    /// Text of an answer whose usage is not yet known.
    words: String,
}

impl DemoStage<'_, '_> {
    /// Runs the program on a prompt in the same session. `is_time_to_kill` sees every line of output.
    pub(super) fn scene(
        &mut self,
        prompt: &str,
        mut is_time_to_kill: impl FnMut(&Value) -> bool,
    ) -> Result<SceneResult, Failure> {
        self.narrator.line("")?;
        self.narrator.message("user", prompt, "")?;
        let session = self.events.session.clone();
        let address = self.provider.address();
        let run = ProgramRun {
            scratch: self.scratch,
            address: &address,
            session: (!session.is_empty()).then_some(session.as_str()),
            ahead: self.ahead,
            prompt,
        };
        let mut scene = SceneResult::default();
        scene.killed_by = run.execute(|line| {
            self.line(line, &mut scene)?;
            Ok(if is_time_to_kill(line) { LineReaction::Kill } else { LineReaction::GoOn })
        })?;
        Ok(scene)
    }

    fn line(&mut self, line: &Value, scene: &mut SceneResult) -> Result<(), Failure> {
        let string = |name: &str| line[name].as_str().unwrap_or_default();
        match (string("type"), string("subtype"), string("state")) {
            ("system", "init", _) => self.events.read_init(line),
            ("assistant", ..) => {
                self.decisions()?;
                self.narrate_answer(line, scene)?;
            }
            ("tool_progress", _, "began") => {
                scene.descriptions.insert(string("tool_use_id").to_owned(), self.description(&line["input"]));
            }
            ("tool_progress", _, "ended") => self.narrate_call(line, scene)?,
            ("system", "cache_break", _) => {
                let tokens = line["tokens"].as_u64().unwrap_or(0);
                self.events.falls.push((tokens, string("reason").to_owned()));
                if !line["expected"].as_bool().unwrap_or(false) {
                    let text = format!("{} tokens: {}", group_digits(tokens), string("reason"));
                    self.narrator.decision("cache break", &text)?;
                }
            }
            ("result", ..) if line["is_error"].as_bool().unwrap_or(true) => {
                return Err(Failure::new(format!("the session failed: {}", string("error"))));
            }
            _ => {}
        }
        Ok(())
    }

    /// Narrates an answer of the model once its usage is known.
    fn narrate_answer(&mut self, line: &Value, scene: &mut SceneResult) -> Result<(), Failure> {
        let blocks = line["message"]["content"].as_array().map_or(&[][..], Vec::as_slice);
        blocks.iter().filter_map(|block| block["text"].as_str()).for_each(|text| scene.words.push_str(text));
        let usage = &line["message"]["usage"];
        if usage.is_null() {
            return Ok(());
        }
        let count = |name: &str| usage[name].as_u64().unwrap_or(0);
        let read = count("cache_read_input_tokens");
        let all = read + count("cache_creation_input_tokens") + count("input_tokens");
        scene.first_read.get_or_insert(read);
        let share = 100 * read / all.max(1);
        let remark = format!("{:.1}k in, {share}% cached", all as f64 / 1e3);
        self.narrator.message("model", &std::mem::take(&mut scene.words), &remark)
    }

    fn narrate_call(&mut self, line: &Value, scene: &mut SceneResult) -> Result<(), Failure> {
        let name = line["tool_name"].as_str().unwrap_or_default();
        let is_error = line["is_error"].as_bool().unwrap_or(false);
        let description =
            scene.descriptions.remove(line["tool_use_id"].as_str().unwrap_or_default()).unwrap_or_default();
        self.events.calls.push(CallEvent { name: name.to_owned(), is_error });
        let size = kilobytes(line["bytes"].as_u64().unwrap_or(0) as usize);
        let remark = if is_error { format!("failed, {size}") } else { size };
        self.narrator.message(&format!("  {name}"), &description, &remark)
    }

    /// Describes a call in a few words.
    fn description(&self, input: &Value) -> String {
        let description = ["file_path", "command", "pattern"].iter().find_map(|name| input[*name].as_str());
        let root = format!("{}/", self.scratch.project().display());
        description.unwrap_or_default().replace(&root, "")
    }

    /// Narrates new decisions.
    fn decisions(&mut self) -> Result<(), Failure> {
        let clears = self.events.clears.len();
        for decided in self.events.read_new_entries()? {
            match decided {
                ContextDecision::Spilled => self.narrate_spill()?,
                // Narrated together, below.
                ContextDecision::Cleared => {}
                ContextDecision::Compacted => self.narrate_compaction()?,
            }
        }
        self.narrate_clears(clears)
    }

    fn narrate_spill(&mut self) -> Result<(), Failure> {
        let Some(spill) = self.events.spills.last() else { return Ok(()) };
        let (whole, shown) = (kilobytes(spill.whole), kilobytes(spill.shown));
        let (word, text) = match spill.is_condensed {
            true => (
                "condensed",
                format!("{whole} to {shown}: errors stay, repetitions go. The full output is on disk."),
            ),
            false => {
                ("to disk", format!("{whole} go to a file; the model sees {shown} and the path of the rest."))
            }
        };
        self.narrator.decision(word, &text)
    }

    /// Narrates the clears after the first `before` ones.
    fn narrate_clears(&mut self, before: usize) -> Result<(), Failure> {
        let fresh = self.events.clears.get(before..).unwrap_or_default();
        let Some(first) = fresh.first() else { return Ok(()) };
        let tokens: u64 = fresh.iter().map(|clear| clear.tokens_freed).sum();
        let text = format!("{}, {} tokens. They stay in the log.", first.reason, group_digits(tokens));
        self.narrator.decision("cleared", &text)
    }

    fn narrate_compaction(&mut self) -> Result<(), Failure> {
        let restored = self.events.restored();
        let Some(boundary) = &self.events.boundary else { return Ok(()) };
        let tokens = |count: Option<u64>| group_digits(count.unwrap_or(0));
        let mut text = format!(
            "{} tokens become {}: a summary replaces {} messages.",
            tokens(boundary.tokens_before),
            tokens(boundary.tokens_after),
            tokens(boundary.messages_summarised)
        );
        if let Some((read, all)) = self.events.summary.filter(|(read, _)| *read > 0) {
            let share = 100 * read / all.max(1);
            text.push_str(&format!(
                " The summary request repeats the conversation, so {share}% came from the cache."
            ));
        }
        let mut texts = vec![("compacted", text)];
        texts.extend(boundary.audit.as_ref().map(|audit| ("checked", checked(audit))));
        if !restored.is_empty() {
            texts.push(("restored", format!("{}, in their current version.", restored.join(", "))));
        }
        texts.iter().try_for_each(|(word, text)| self.narrator.decision(word, text))
    }
}

/// Describes the audit of a summary.
fn checked(audit: &SummaryAudit) -> String {
    let kept = audit.user_messages_verbatim + audit.user_messages_repaired;
    let mut text = format!(
        "{kept} of {} user messages are in it word for word ({} had to be added), {} of {} edited files are \
         mentioned.",
        audit.user_messages,
        audit.user_messages_repaired,
        audit.paths_kept + audit.paths_repaired,
        audit.paths,
    );
    if audit.invented.is_empty() {
        text.push_str(" No path is invented.");
    }
    text
}

/// Formats a size in bytes or kilobytes.
pub(super) fn kilobytes(bytes: usize) -> String {
    if bytes < 1_000 { format!("{bytes} bytes") } else { format!("{:.1} KB", bytes as f64 / 1e3) }
}
