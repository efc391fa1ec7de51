//! One run of the program, told line by line.

use std::collections::HashMap;
use std::time::Duration;

use pal_model::Audit;
use serde_json::Value;

use super::happened::{Called, Decided, Happened};
use super::provider::Provider;
use super::run::{Next, Run};
use super::stage::Stage;
use super::teller::Teller;
use crate::failure::Failure;
use crate::table::thousands;

/// Everything that the scenes share.
pub(super) struct Play<'a, 'b> {
    pub(super) stage: &'a Stage,
    pub(super) provider: &'a Provider,
    pub(super) teller: &'a mut Teller<'b>,
    pub(super) happened: Happened,
    /// How much the program's clock is ahead.
    pub(super) ahead: Duration,
}

/// What was seen of one run.
#[derive(Default)]
pub(super) struct Scene {
    /// Tokens of the prompt that the first answer reports as read from the cache.
    pub(super) first_read: Option<u64>,
    /// The signal that ended the program.
    pub(super) killed_by: Option<i32>,
    /// What calls are about, until they end.
    gists: HashMap<String, String>,
    /// Words of an answer whose usage did not come yet.
    words: String,
}

impl Play<'_, '_> {
    /// Lets the program work on a prompt, in the same session as before. `is_time_to_kill` looks at every line.
    pub(super) fn scene(
        &mut self,
        prompt: &str,
        mut is_time_to_kill: impl FnMut(&Value) -> bool,
    ) -> Result<Scene, Failure> {
        self.teller.line("")?;
        self.teller.said("user", prompt, "")?;
        let session = self.happened.session.clone();
        let address = self.provider.address();
        let run = Run {
            stage: self.stage,
            address: &address,
            session: (!session.is_empty()).then_some(session.as_str()),
            ahead: self.ahead,
            prompt,
        };
        let mut scene = Scene::default();
        scene.killed_by = run.go(|line| {
            self.line(line, &mut scene)?;
            Ok(if is_time_to_kill(line) { Next::Kill } else { Next::GoOn })
        })?;
        Ok(scene)
    }

    fn line(&mut self, line: &Value, scene: &mut Scene) -> Result<(), Failure> {
        let string = |name: &str| line[name].as_str().unwrap_or_default();
        match (string("type"), string("subtype"), string("state")) {
            ("system", "init", _) => self.happened.began(line),
            ("assistant", ..) => {
                self.decisions()?;
                self.answer(line, scene)?;
            }
            ("tool_progress", _, "began") => {
                scene.gists.insert(string("tool_use_id").to_owned(), self.gist(&line["input"]));
            }
            ("tool_progress", _, "ended") => self.called(line, scene)?,
            ("system", "cache_break", _) => {
                let tokens = line["tokens"].as_u64().unwrap_or(0);
                self.happened.falls.push((tokens, string("reason").to_owned()));
                if !line["expected"].as_bool().unwrap_or(false) {
                    let text = format!("{} tokens: {}", thousands(tokens), string("reason"));
                    self.teller.decided("cache lost", &text)?;
                }
            }
            ("result", ..) if line["is_error"].as_bool().unwrap_or(true) => {
                return Err(Failure::new(format!("the session stopped: {}", string("error"))));
            }
            _ => {}
        }
        Ok(())
    }

    /// An answer of the model, once its usage is known.
    fn answer(&mut self, line: &Value, scene: &mut Scene) -> Result<(), Failure> {
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
        let remark = format!("{:.1}k in, {share} % cached", all as f64 / 1e3);
        self.teller.said("model", &std::mem::take(&mut scene.words), &remark)
    }

    fn called(&mut self, line: &Value, scene: &mut Scene) -> Result<(), Failure> {
        let name = line["tool_name"].as_str().unwrap_or_default();
        let is_error = line["is_error"].as_bool().unwrap_or(false);
        let gist = scene.gists.remove(line["tool_use_id"].as_str().unwrap_or_default()).unwrap_or_default();
        self.happened.calls.push(Called { name: name.to_owned(), is_error });
        let size = kilobytes(line["bytes"].as_u64().unwrap_or(0) as usize);
        let remark = if is_error { format!("failed, {size}") } else { size };
        self.teller.said(&format!("  {name}"), &gist, &remark)
    }

    /// What a call is about, in a few words.
    fn gist(&self, input: &Value) -> String {
        let gist = ["file_path", "command", "pattern"].iter().find_map(|name| input[*name].as_str());
        let root = format!("{}/", self.stage.project().display());
        gist.unwrap_or_default().replace(&root, "")
    }

    /// Tells what was decided since the last look.
    fn decisions(&mut self) -> Result<(), Failure> {
        let clears = self.happened.clears.len();
        for decided in self.happened.look()? {
            match decided {
                Decided::Spilled => self.spilled()?,
                // Several together: told once, below.
                Decided::Cleared => {}
                Decided::Compacted => self.compacted()?,
            }
        }
        self.cleared(clears)
    }

    fn spilled(&mut self) -> Result<(), Failure> {
        let Some(spill) = self.happened.spills.last() else { return Ok(()) };
        let (whole, shown) = (kilobytes(spill.whole), kilobytes(spill.shown));
        let (word, text) = match spill.is_condensed {
            true => (
                "condensed",
                format!("{whole} to {shown}: errors stay, what repeats goes. The whole is on disk."),
            ),
            false => {
                ("to disk", format!("{whole} go to a file; the model reads {shown} and where the rest is."))
            }
        };
        self.teller.decided(word, &text)
    }

    /// Tells of the results that were cleared since there were so many decisions about them.
    fn cleared(&mut self, before: usize) -> Result<(), Failure> {
        let fresh = self.happened.clears.get(before..).unwrap_or_default();
        let Some(first) = fresh.first() else { return Ok(()) };
        let tokens: u64 = fresh.iter().map(|clear| clear.tokens_freed).sum();
        let text = format!("{}, {} tokens. The log keeps them.", first.reason, thousands(tokens));
        self.teller.decided("cleared", &text)
    }

    fn compacted(&mut self) -> Result<(), Failure> {
        let restored = self.happened.restored();
        let Some(boundary) = &self.happened.boundary else { return Ok(()) };
        let tokens = |count: Option<u64>| thousands(count.unwrap_or(0));
        let mut text = format!(
            "{} tokens become {}: a summary stands for {} messages.",
            tokens(boundary.tokens_before),
            tokens(boundary.tokens_after),
            tokens(boundary.messages_summarised)
        );
        if let Some((read, all)) = self.happened.summary.filter(|(read, _)| *read > 0) {
            let share = 100 * read / all.max(1);
            text.push_str(&format!(
                " Asking for it repeated the conversation, so {share} % came from the cache."
            ));
        }
        let mut texts = vec![("compacted", text)];
        texts.extend(boundary.audit.as_ref().map(|audit| ("checked", checked(audit))));
        if !restored.is_empty() {
            texts.push(("put back", format!("{}, as they are now.", restored.join(", "))));
        }
        texts.iter().try_for_each(|(word, text)| self.teller.decided(word, text))
    }
}

/// What the audit of a summary found.
fn checked(audit: &Audit) -> String {
    let kept = audit.user_messages_verbatim + audit.user_messages_repaired;
    let mut text = format!(
        "{kept} of {} messages of the user stand in it word for word ({} had to be put back), {} of {} edited files are \
         named.",
        audit.user_messages,
        audit.user_messages_repaired,
        audit.paths_kept + audit.paths_repaired,
        audit.paths,
    );
    if audit.invented.is_empty() {
        text.push_str(" No path is made up.");
    }
    text
}

/// A number of characters or bytes in a few of them.
pub(super) fn kilobytes(bytes: usize) -> String {
    if bytes < 1_000 { format!("{bytes} bytes") } else { format!("{:.1} KB", bytes as f64 / 1e3) }
}
