//! `pal demo`: runs a real session in a scratch repository against the simulator, and narrates it.
//!
//! All figures come from the output of the program, its log, and the exchanges that the simulator recorded. A promise that was
//! not seen is reported, and the exit code tells.

mod demo_project;
mod demo_provider;
mod layer_savings;
mod narrator;
mod program_run;
mod request_prefix;
mod scene;
mod scratch_dir;
mod session_events;
mod story;

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pal_context::CostLedger;
use pal_model::text::{count_noun, group_digits};
use pal_report::{format_percent, format_usd};
use serde_json::{Value, json};

use self::demo_provider::DemoProvider;
use self::narrator::Narrator;
use self::scene::DemoStage;
use self::scratch_dir::{LIKE, ScratchDir, WINDOW};
use self::session_events::{CallEvent, ClearEvent, SessionEvents, SpillEvent};
use crate::arguments::DemoArgs;
use crate::failure::Failure;
use crate::loaded_session::LoadedSession;
use crate::notices::print_notice;
use crate::terminal_style::{columns, style_for};

const SCRIPT: &str = include_str!("demo/script.toml");

pub(crate) fn demo(arguments: &DemoArgs, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let begun = Instant::now();
    let scratch = ScratchDir::set()?;
    let script = SCRIPT.replace("ROOT", &scratch.project().display().to_string());
    let provider = DemoProvider::start(&script, &scratch.cards, &scratch.record())?;
    let colors = style_for(arguments.color);
    let mut narrator = Narrator { out, colors, columns: columns(), is_quiet: arguments.json };
    print_intro(&mut narrator)?;
    let mut play = DemoStage {
        scratch: &scratch,
        provider: &provider,
        narrator: &mut narrator,
        events: SessionEvents::default(),
        ahead: Duration::ZERO,
    };
    let played = play.play_all();
    let (rested, events) = (play.rested(), play.events);
    let ended = DemoOutcome { scratch: &scratch, events: &events, rested, took: begun.elapsed() };
    let done = played.and_then(|()| ended.report(&mut narrator));
    let kept = arguments.keep.then(|| scratch.keep());
    let missing = events.missing();
    match done {
        Ok(mut figures) if arguments.json => {
            figures["folder"] = json!(kept);
            writeln!(narrator.out, "{figures}")?;
        }
        Ok(_) => print_ending(&mut narrator, &missing, kept.as_deref())?,
        Err(failure) => {
            if let Some(folder) = kept {
                print_notice(format_args!("all files are in {}", folder.display()));
            }
            return Err(failure);
        }
    }
    Ok(if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(crate::exit_codes::ERROR) })
}

fn print_intro(narrator: &mut Narrator<'_>) -> Result<(), Failure> {
    let title = narrator.colors.bold("Palimpsest: one session, and everything that keeps it going");
    narrator.line(&title)?;
    narrator.paragraph(&format!(
        "A real session of `pal -p` in a scratch repository: real files, real commands, a real log. Only the model is \
         scripted, behind a simulated provider on this machine, at the prices of {LIKE} and with a window of {} tokens. \
         Nothing leaves this machine.",
        group_digits(WINDOW)
    ))
}

fn print_ending(
    narrator: &mut Narrator<'_>,
    missing: &[&str],
    kept: Option<&std::path::Path>,
) -> Result<(), Failure> {
    narrator.line("")?;
    for what in missing {
        narrator.check(false, &format!("Not seen: {what}."))?;
    }
    match kept {
        Some(folder) => narrator.line(&format!("All files are in {}", folder.display())),
        None => {
            narrator.line(&narrator.colors.dim("The scratch directory was removed; use --keep to keep it."))
        }
    }
}

/// Outcome of the demo.
struct DemoOutcome<'a> {
    scratch: &'a ScratchDir,
    events: &'a SessionEvents,
    rested: String,
    took: Duration,
}

impl DemoOutcome<'_> {
    /// Prints the table and the chart; returns all figures.
    fn report(&self, narrator: &mut Narrator<'_>) -> Result<Value, Failure> {
        let session =
            LoadedSession::read_log(&self.events.log).map_err(|error| Failure::new(error.to_string()))?;
        let ledger = CostLedger::from_entries(&session.branch, &self.scratch.cards);
        let saved = layer_savings::by_layer(&ledger, &session.branch, self.events, &self.scratch.cards);
        if !narrator.is_quiet {
            narrator.line("")?;
            narrator.line(&narrator.colors.bold("What each layer saved"))?;
            layer_savings::table(&saved, narrator.out)?;
            self.summary(&ledger, narrator)?;
            for line in pal_report::chart_lines(&ledger, narrator.columns, narrator.colors) {
                narrator.line(&line)?;
            }
        }
        Ok(self.figures(&ledger, &saved))
    }

    fn summary(&self, ledger: &CostLedger, narrator: &mut Narrator<'_>) -> Result<(), Failure> {
        let all = &ledger.all;
        let (extending, pairs) = self.events.extending;
        narrator.line("")?;
        narrator.paragraph(&format!(
            "{} cost {}; {} of their prompt tokens were read from the cache. Without a cache: {}.",
            count_noun(all.requests as usize, "request"),
            format_usd(all.cost),
            format_percent(all.share_read().unwrap_or(0.0)),
            format_usd(all.cost + all.saved),
        ))?;
        narrator.paragraph(&format!(
            "{extending} of {pairs} requests start with every byte of the previous one; the others follow the clearing and the \
             compaction. The demo took {:.1} s.",
            self.took.as_secs_f64()
        ))
    }

    fn figures(&self, ledger: &CostLedger, saved: &[layer_savings::LayerSavings]) -> Value {
        let events = self.events;
        let row = |row: &pal_context::LedgerRow| {
            let prompt = row.prompt.unwrap_or_default();
            json!({
                "source": row.source.as_str(), "read": prompt.read, "written": prompt.written + prompt.written_1h,
                "uncached": prompt.uncached, "output": row.output, "context": row.context, "cost_usd": row.cost,
            })
        };
        let boundary = events.boundary.as_ref();
        let killed = events.killed.as_ref();
        json!({
            "missing": events.missing(),
            "seconds": self.took.as_secs_f64(),
            "window": WINDOW,
            "session": events.session,
            "calls": events.calls.iter().map(call).collect::<Value>(),
            "spills": events.spills.iter().map(spill).collect::<Value>(),
            "cold_return": {
                "rested": self.rested, "read": events.read_after_rest,
                "falls": events.falls.iter().map(fall).collect::<Value>(),
            },
            "clears": events.clears.iter().map(clear).collect::<Value>(),
            "compaction": boundary.map(|boundary| json!({
                "how": boundary.method, "tokens_before": boundary.tokens_before, "tokens_after": boundary.tokens_after,
                "messages": boundary.messages_summarised, "audit": boundary.audit, "restored": events.restored(),
                "summary_read": events.summary.map(|(read, _)| read),
            })),
            "resume": killed.map(|killed| json!({
                "is_exact": killed.shared.is_exact(), "blocks": killed.shared.blocks, "bytes": killed.shared.bytes,
                "blocks_before": killed.shared.blocks_before, "blocks_after": killed.shared.blocks_after,
                "read": killed.read, "runs": killed.runs, "signal": killed.signal,
            })),
            "prefixes": {"exact": events.extending.0, "pairs": events.extending.1},
            "layers": layer_savings::json(saved),
            "requests": ledger.rows.iter().map(row).collect::<Value>(),
            "cost_usd": ledger.all.cost,
        })
    }
}

fn call(call: &CallEvent) -> Value {
    json!({"tool": call.name, "is_error": call.is_error})
}

fn spill(spill: &SpillEvent) -> Value {
    json!({
        "characters": spill.whole, "shown": spill.shown, "is_condensed": spill.is_condensed, "reason": spill.reason,
        "tokens_freed": spill.tokens_freed,
    })
}

fn fall((tokens, reason): &(u64, String)) -> Value {
    json!({"tokens": tokens, "reason": reason})
}

fn clear(clear: &ClearEvent) -> Value {
    json!({"results": clear.results, "tokens_freed": clear.tokens_freed, "reason": clear.reason})
}
