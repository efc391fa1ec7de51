//! The story: a bug, a pause, a long look at data, and a kill.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::exact::Sent;
use super::happened::{Killed, SIGKILL};
use super::scene::Play;
use crate::failure::Failure;
use crate::table::{counted, duration, thousands};

/// How long the session rests: longer than any provider keeps its cache.
const REST: Duration = Duration::from_secs(2 * 60 * 60);
/// How long a tool may take to get going.
const TOOL_BEGINS: Duration = Duration::from_secs(10);

impl Play<'_, '_> {
    /// Plays all of it.
    pub(super) fn all(&mut self) -> Result<(), Failure> {
        self.work()?;
        self.rest()?;
        self.fill()?;
        self.kill()?;
        self.happened.look()?;
        self.happened.extending = extending(&self.sent()?);
        Ok(())
    }

    fn work(&mut self) -> Result<(), Failure> {
        self.teller.chapter(1, "A bug is found and mended, by real tools on real files")?;
        self.scene("The test of this project fails. Find out why and mend it.", |_| false)?;
        let tests: Vec<bool> =
            self.happened.calls.iter().filter(|call| call.name == "Bash").map(|call| call.is_error).collect();
        let mean = fs::read_to_string(self.stage.project().join("src/mean.awk")).unwrap_or_default();
        self.happened.is_mended = tests == [true, false, false] && mean.contains("seen[$1]++; sum[$1] += $3");
        Ok(())
    }

    fn rest(&mut self) -> Result<(), Failure> {
        self.teller.chapter(2, "Two hours later the provider has forgotten everything")?;
        self.teller.paragraph(
            "(Both clocks are moved on.) All of it has to be sent and paid anew, so now it costs nothing to leave out what is \
             no longer needed.",
        )?;
        self.provider.advance(REST)?;
        self.ahead += REST;
        self.happened.rested_s = REST.as_secs();
        let scene = self.scene("Good morning. Do Coldharbour and Dunmore have gaps?", |_| false)?;
        self.happened.read_after_rest = scene.first_read;
        Ok(())
    }

    fn fill(&mut self) -> Result<(), Failure> {
        self.teller.chapter(3, "The window fills up, and the work goes on")?;
        self.scene("Look at three more, then write into the README what we know of gaps.", |_| false)?;
        Ok(())
    }

    fn kill(&mut self) -> Result<(), Failure> {
        self.teller.chapter(4, "The program is killed in the middle of a command")?;
        let runs = self.stage.project().join("runs.txt");
        let has_begun = |line: &Value| {
            let is_ours = line["state"] == "began" && line["input"]["command"] == "sh rebuild.sh";
            is_ours && is_soon(|| fs::metadata(&runs).is_ok_and(|data| data.len() > 0))
        };
        let signal = self.scene("Rebuild the table of the year.", has_begun)?.killed_by;
        let before = self.sent()?;
        if signal == Some(SIGKILL) {
            self.teller.decided("kill -9", "while `sh rebuild.sh` runs: the process is gone at once.")?;
        }
        let scene = self.scene("Something killed you. Go on.", |_| false)?;
        let after = self.sent()?;
        let (Some(last), Some(next)) = (before.last(), after.get(before.len())) else {
            return Err(Failure::new("no request left after the kill"));
        };
        let runs = fs::read_to_string(&runs).unwrap_or_default().lines().count();
        let killed = Killed { signal, shared: last.shared(next), runs, read: scene.first_read.unwrap_or(0) };
        self.tell_of_kill(&killed)?;
        self.happened.killed = Some(killed);
        Ok(())
    }

    fn tell_of_kill(&mut self, killed: &Killed) -> Result<(), Failure> {
        let shared = &killed.shared;
        self.teller.line("")?;
        let text = match shared.is_exact() {
            true => format!(
                "The first request of the new process begins with everything that the last one of the old had: {}, {} \
                 bytes, byte for byte. {} new.",
                counted(shared.blocks, "block"),
                thousands(shared.bytes as u64),
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
        self.teller.proved(shared.is_exact(), &text)?;
        let text = format!(
            "So the provider's cache still knows it: {} tokens were read from it.",
            thousands(killed.read)
        );
        self.teller.proved(killed.read > 0, &text)?;
        let text = format!(
            "The command was run {}.",
            if killed.runs == 1 { String::from("once, not twice") } else { format!("{} times", killed.runs) }
        );
        self.teller.proved(killed.runs == 1, &text)
    }

    /// The requests of the conversation so far, as the provider got them.
    fn sent(&self) -> Result<Vec<Sent>, Failure> {
        let bodies = self.provider.requests()?;
        Ok(bodies.iter().filter_map(|body| Sent::of(body)).filter(|sent| !sent.is_summary).collect())
    }

    /// How long the session rested, in words.
    pub(super) fn rested(&self) -> String {
        duration(self.happened.rested_s * 1_000)
    }
}

/// How many requests begin with all of the one before, of all that have one before them.
fn extending(sent: &[Sent]) -> (usize, usize) {
    let pairs = sent.windows(2);
    let all = pairs.len();
    (pairs.filter(|pair| pair[0].shared(&pair[1]).is_exact()).count(), all)
}

/// Whether something becomes true in a short time.
fn is_soon(is_true: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !is_true() {
        if begun.elapsed() > TOOL_BEGINS {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}
