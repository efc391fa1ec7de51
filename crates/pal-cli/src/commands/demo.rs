//! `pal demo`: a real session in a scratch repository, with the simulator for a model, told while it runs.
//!
//! Everything that is said of it comes from what the program printed, from its log, and from what the simulator recorded;
//! what was promised and not seen is named, and the exit code says so.

mod exact;
mod happened;
mod project;
mod provider;
mod run;
mod saved;
mod scene;
mod stage;
mod story;
mod teller;

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pal_context::Ledger;
use serde_json::{Value, json};

use self::happened::{Called, Cleared, Happened, Spilled};
use self::provider::Provider;
use self::scene::Play;
use self::stage::{LIKE, Stage, WINDOW};
use self::teller::Teller;
use super::cost::chart;
use crate::arguments::Demo;
use crate::aside;
use crate::colour::{Colours, columns};
use crate::failure::Failure;
use crate::session::Session;
use crate::table::{counted, money, percent, thousands};

const SCRIPT: &str = include_str!("demo/script.toml");

pub(crate) fn demo(arguments: &Demo, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let begun = Instant::now();
    let stage = Stage::set()?;
    let script = SCRIPT.replace("ROOT", &stage.project().display().to_string());
    let provider = Provider::start(&script, &stage.cards, &stage.record())?;
    let colours = Colours::of(arguments.colour);
    let mut teller = Teller { out, colours, columns: columns(), is_quiet: arguments.json };
    greet(&mut teller)?;
    let mut play = Play {
        stage: &stage,
        provider: &provider,
        teller: &mut teller,
        happened: Happened::default(),
        ahead: Duration::ZERO,
    };
    let played = play.all();
    let (rested, happened) = (play.rested(), play.happened);
    let ended = Ended { stage: &stage, happened: &happened, rested, took: begun.elapsed() };
    let done = played.and_then(|()| ended.report(&mut teller));
    let kept = arguments.keep.then(|| stage.keep());
    let missing = happened.missing();
    match done {
        Ok(mut figures) if arguments.json => {
            figures["folder"] = json!(kept);
            writeln!(teller.out, "{figures}")?;
        }
        Ok(_) => part(&mut teller, &missing, kept.as_deref())?,
        Err(failure) => {
            if let Some(folder) = kept {
                aside::tell(format_args!("everything is in {}", folder.display()));
            }
            return Err(failure);
        }
    }
    Ok(if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn greet(teller: &mut Teller<'_>) -> Result<(), Failure> {
    let title = teller.colours.bold("Palimpsest: one session, everything that keeps it alive");
    teller.line(&title)?;
    teller.paragraph(&format!(
        "A real session of `pal -p` in a scratch repository: real files, real commands, a real log. Only the model is a \
         script, behind a simulated provider on this machine, at the prices of {LIKE} and with a window of {} tokens. \
         Nothing leaves this machine.",
        thousands(WINDOW)
    ))
}

fn part(teller: &mut Teller<'_>, missing: &[&str], kept: Option<&std::path::Path>) -> Result<(), Failure> {
    teller.line("")?;
    for what in missing {
        teller.proved(false, &format!("Not seen: {what}."))?;
    }
    match kept {
        Some(folder) => teller.line(&format!("Everything is in {}", folder.display())),
        None => teller
            .line(&teller.colours.dim("The scratch folder is gone; --keep leaves it for you to look at.")),
    }
}

/// What the play has come to.
struct Ended<'a> {
    stage: &'a Stage,
    happened: &'a Happened,
    rested: String,
    took: Duration,
}

impl Ended<'_> {
    /// The table and the chart; returns all figures.
    fn report(&self, teller: &mut Teller<'_>) -> Result<Value, Failure> {
        let session =
            Session::read_log(&self.happened.log).map_err(|error| Failure::new(error.to_string()))?;
        let ledger = Ledger::of(&session.branch, &self.stage.cards);
        let saved = saved::by_layer(&ledger, &session.branch, self.happened, &self.stage.cards);
        if !teller.is_quiet {
            teller.line("")?;
            teller.line(&teller.colours.bold("What each layer saved"))?;
            saved::table(&saved, teller.out)?;
            self.summary(&ledger, teller)?;
            for line in chart::lines(&ledger, teller.columns, teller.colours) {
                teller.line(&line)?;
            }
        }
        Ok(self.figures(&ledger, &saved))
    }

    fn summary(&self, ledger: &Ledger, teller: &mut Teller<'_>) -> Result<(), Failure> {
        let all = &ledger.all;
        let (extending, pairs) = self.happened.extending;
        teller.line("")?;
        teller.paragraph(&format!(
            "{} cost {}; {} of all that they carried was read from the cache. Without it: {}.",
            counted(all.requests as usize, "request"),
            money(all.cost),
            percent(all.share_read().unwrap_or(0.0)),
            money(all.cost + all.saved),
        ))?;
        teller.paragraph(&format!(
            "{extending} of {pairs} requests begin with every byte of the one before; the others follow the clearing and the \
             compaction. All of this took {:.1} s.",
            self.took.as_secs_f64()
        ))
    }

    fn figures(&self, ledger: &Ledger, saved: &[saved::Saved]) -> Value {
        let happened = self.happened;
        let row = |row: &pal_context::LedgerRow| {
            let prompt = row.prompt.unwrap_or_default();
            json!({
                "source": row.source.as_str(), "read": prompt.read, "written": prompt.written + prompt.written_1h,
                "uncached": prompt.uncached, "output": row.output, "context": row.context, "cost_usd": row.cost,
            })
        };
        let boundary = happened.boundary.as_ref();
        let killed = happened.killed.as_ref();
        json!({
            "missing": happened.missing(),
            "seconds": self.took.as_secs_f64(),
            "window": WINDOW,
            "session": happened.session,
            "calls": happened.calls.iter().map(call).collect::<Value>(),
            "spills": happened.spills.iter().map(spill).collect::<Value>(),
            "cold_return": {
                "rested": self.rested, "read": happened.read_after_rest,
                "falls": happened.falls.iter().map(fall).collect::<Value>(),
            },
            "clears": happened.clears.iter().map(clear).collect::<Value>(),
            "compaction": boundary.map(|boundary| json!({
                "how": boundary.how, "tokens_before": boundary.tokens_before, "tokens_after": boundary.tokens_after,
                "messages": boundary.messages_summarised, "audit": boundary.audit, "restored": happened.restored(),
                "summary_read": happened.summary.map(|(read, _)| read),
            })),
            "resume": killed.map(|killed| json!({
                "is_exact": killed.shared.is_exact(), "blocks": killed.shared.blocks, "bytes": killed.shared.bytes,
                "blocks_before": killed.shared.blocks_before, "blocks_after": killed.shared.blocks_after,
                "read": killed.read, "runs": killed.runs, "signal": killed.signal,
            })),
            "prefixes": {"exact": happened.extending.0, "pairs": happened.extending.1},
            "layers": saved::json(saved),
            "requests": ledger.rows.iter().map(row).collect::<Value>(),
            "cost_usd": ledger.all.cost,
        })
    }
}

fn call(call: &Called) -> Value {
    json!({"tool": call.name, "is_error": call.is_error})
}

fn spill(spill: &Spilled) -> Value {
    json!({
        "characters": spill.whole, "shown": spill.shown, "is_condensed": spill.is_condensed, "reason": spill.reason,
        "tokens_freed": spill.tokens_freed,
    })
}

fn fall((tokens, reason): &(u64, String)) -> Value {
    json!({"tokens": tokens, "reason": reason})
}

fn clear(clear: &Cleared) -> Value {
    json!({"results": clear.results, "tokens_freed": clear.tokens_freed, "reason": clear.reason})
}
