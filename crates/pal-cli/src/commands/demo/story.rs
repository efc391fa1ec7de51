//! The story of the demo: a bug, a pause, a full window, and a kill.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use pal_model::text::{count_noun, group_digits};
use pal_report::format_duration;

use super::request_prefix::DemoRequest;
use super::scene::DemoStage;
use super::session_events::{KillEvent, SIGKILL};
use crate::failure::Failure;

/// Pause of the session: longer than any cache lifetime.
const REST: Duration = Duration::from_secs(2 * 60 * 60);
/// Time limit for a tool to start.
const TOOL_BEGINS: Duration = Duration::from_secs(10);

impl DemoStage<'_, '_> {
    /// Plays all scenes.
    pub(super) fn play_all(&mut self) -> Result<(), Failure> {
        self.work()?;
        self.rest()?;
        self.fill()?;
        self.kill()?;
        self.events.read_new_entries()?;
        self.events.extending = count_exact_prefixes(&self.sent()?);
        Ok(())
    }

    fn work(&mut self) -> Result<(), Failure> {
        self.narrator.chapter(1, "A bug is found and fixed, with real tools on real files")?;
        self.scene("The test of this project fails. Find out why and fix it.", |_| false)?;
        let tests: Vec<bool> =
            self.events.calls.iter().filter(|call| call.name == "Bash").map(|call| call.is_error).collect();
        let mean = fs::read_to_string(self.scratch.project().join("src/mean.awk")).unwrap_or_default();
        self.events.is_mended = tests == [true, false, false] && mean.contains("seen[$1]++; sum[$1] += $3");
        Ok(())
    }

    fn rest(&mut self) -> Result<(), Failure> {
        self.narrator.chapter(2, "Two hours later the cache has expired")?;
        self.narrator.paragraph(
            "(Both clocks are advanced.) The whole context must be sent and paid for again, so now it costs nothing to drop \
             what is no longer needed.",
        )?;
        self.provider.advance(REST)?;
        self.ahead += REST;
        self.events.rested_s = REST.as_secs();
        let scene = self.scene("Good morning. Do Coldharbour and Dunmore have gaps?", |_| false)?;
        self.events.read_after_rest = scene.first_read;
        Ok(())
    }

    fn fill(&mut self) -> Result<(), Failure> {
        self.narrator.chapter(3, "The window fills up, and the work continues")?;
        self.scene("Look at three more, then write into the README what we know of gaps.", |_| false)?;
        Ok(())
    }

    fn kill(&mut self) -> Result<(), Failure> {
        self.narrator.chapter(4, "The program is killed in the middle of a command")?;
        let runs = self.scratch.project().join("runs.txt");
        let has_begun = |line: &Value| {
            let is_ours = line["state"] == "began" && line["input"]["command"] == "sh rebuild.sh";
            is_ours && wait_for(|| fs::metadata(&runs).is_ok_and(|data| data.len() > 0))
        };
        let signal = self.scene("Rebuild the table of the year.", has_begun)?.killed_by;
        let before = self.sent()?;
        if signal == Some(SIGKILL) {
            self.narrator.decision("kill -9", "while `sh rebuild.sh` runs: the process ends at once.")?;
        }
        let scene = self.scene("Something killed you. Continue.", |_| false)?;
        let after = self.sent()?;
        let (Some(last), Some(next)) = (before.last(), after.get(before.len())) else {
            return Err(Failure::new("no request was sent after the kill"));
        };
        let runs = fs::read_to_string(&runs).unwrap_or_default().lines().count();
        let killed =
            KillEvent { signal, shared: last.shared(next), runs, read: scene.first_read.unwrap_or(0) };
        self.tell_of_kill(&killed)?;
        self.events.killed = Some(killed);
        Ok(())
    }

    fn tell_of_kill(&mut self, killed: &KillEvent) -> Result<(), Failure> {
        let shared = &killed.shared;
        self.narrator.line("")?;
        let text = match shared.is_exact() {
            true => format!(
                "The first request of the new process starts with the whole last request of the old one: {}, {} \
                 bytes, byte for byte. {} new.",
                count_noun(shared.blocks, "block"),
                group_digits(shared.bytes as u64),
                match shared.blocks_after - shared.blocks {
                    1 => String::from("1 block is"),
                    count => format!("{count} blocks are"),
                },
            ),
            false => format!(
                "Only {} of the {} blocks that the old process sent are in the first request of the new one.",
                shared.blocks, shared.blocks_before
            ),
        };
        self.narrator.check(shared.is_exact(), &text)?;
        let text = format!(
            "So the provider's cache still matches: {} tokens were read from it.",
            group_digits(killed.read)
        );
        self.narrator.check(killed.read > 0, &text)?;
        let text = format!(
            "The command ran {}.",
            if killed.runs == 1 { String::from("once, not twice") } else { format!("{} times", killed.runs) }
        );
        self.narrator.check(killed.runs == 1, &text)
    }

    /// Reads the requests of the conversation so far.
    fn sent(&self) -> Result<Vec<DemoRequest>, Failure> {
        let bodies = self.provider.requests()?;
        Ok(bodies.iter().filter_map(|body| DemoRequest::of(body)).filter(|sent| !sent.is_summary).collect())
    }

    /// Formats the pause of the session.
    pub(super) fn rested(&self) -> String {
        format_duration(self.events.rested_s * 1_000)
    }
}

/// Counts the requests that start with all of the previous one, and all requests that have a previous one.
fn count_exact_prefixes(sent: &[DemoRequest]) -> (usize, usize) {
    let pairs = sent.windows(2);
    let all = pairs.len();
    (pairs.filter(|pair| pair[0].shared(&pair[1]).is_exact()).count(), all)
}

/// Waits briefly for a condition; tells whether it became true.
fn wait_for(is_true: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !is_true() {
        if begun.elapsed() > TOOL_BEGINS {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}
