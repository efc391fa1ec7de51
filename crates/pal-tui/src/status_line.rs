//! The status line.

use std::path::Path;
use std::time::{Duration, Instant};

use pal_events::AgentEvent;
use pal_model::UsageBasis;
use ratatui_core::text::{Line, Span};

use crate::styled_text::{columns, format_tokens, sanitize_line, truncate_columns};
use crate::theme::Theme;
use crate::ui_events::{ActiveSession, CacheClock};

/// Width of the bar, in cells.
const BAR: usize = 10;

/// State of the session for the status line.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct StatusLine {
    pub(crate) model: String,
    /// Version of the program.
    pub(crate) version: String,
    pub(crate) mode: String,
    /// Size of the context, in tokens.
    pub(crate) tokens: u64,
    /// Context size that triggers compaction, in tokens.
    pub(crate) goal: u64,
    /// Context window of the model, in tokens.
    pub(crate) window: u64,
    /// Cost in US dollars.
    pub(crate) cost: f64,
    /// Prompt tokens of all requests, and those read from the cache.
    pub(crate) prompt_tokens: u64,
    pub(crate) cached_tokens: u64,
    /// True if the last response reported no usage.
    pub(crate) is_unreported: bool,
    /// Number of background tasks.
    pub(crate) background: usize,
    /// True if a simulator answers: the cost is not spent.
    pub(crate) is_simulated: bool,
    /// Life of the provider's cache, between two actions.
    pub(crate) cache: Option<CacheClock>,
}

/// Remaining life of the cache from which on seconds are shown.
const SECONDS_FROM: Duration = Duration::from_secs(120);

impl StatusLine {
    /// Shows a session that was opened: its size, its compaction threshold and its cost so far.
    pub(crate) fn open_session(&mut self, session: &ActiveSession) {
        self.tokens = session.tokens;
        self.goal = session.compaction_tokens;
        self.window = session.window;
        self.set_earlier_cost(session.cost, session.is_simulated);
        self.prompt_tokens = 0;
        self.cached_tokens = 0;
    }

    fn set_earlier_cost(&mut self, cost: f64, is_simulated: bool) {
        self.cost = cost;
        self.is_simulated = is_simulated;
    }

    /// Applies an event.
    pub(crate) fn apply(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::SessionStarted(began) => {
                self.model = sanitize_line(&began.model);
                self.version = sanitize_line(&began.version);
                self.mode = began.permission_mode.to_string();
            }
            AgentEvent::Mode(mode) => self.mode = mode.to_string(),
            AgentEvent::ExchangeEnded(exchanged) => {
                self.cost += exchanged.cost.unwrap_or(0.0);
                self.is_simulated |=
                    exchanged.usage.as_ref().is_some_and(|usage| usage.basis == UsageBasis::Simulated);
                let Some(usage) = exchanged.usage.as_ref().filter(|_| exchanged.source.is_conversation())
                else {
                    return;
                };
                self.is_unreported = exchanged.answered.is_some() && !usage.is_reported();
                if self.is_unreported {
                    return;
                }
                let prompt = usage.prompt_tokens();
                self.prompt_tokens += prompt;
                self.cached_tokens += usage.cache_read_input_tokens;
                self.tokens = prompt + usage.output_tokens;
            }
            AgentEvent::Compacted(boundary) => {
                if let Some(tokens) = boundary.tokens_after {
                    self.tokens = tokens;
                }
            }
            _ => {}
        }
    }

    /// Notes that a keepalive request has extended the life of the cache.
    pub(crate) fn extend_cache(&mut self) {
        if let Some(cache) = &mut self.cache {
            cache.expires = Instant::now() + cache.ttl;
        }
    }

    /// Time until [`StatusLine::cache_text`] changes; none if it stays.
    pub(crate) fn until_cache_changes(&self) -> Option<Duration> {
        let left = self.cache?.expires.checked_duration_since(Instant::now())?;
        let unit = if left > SECONDS_FROM { 60_000 } else { 1_000 };
        let rest = u64::try_from(left.as_millis() % unit).unwrap_or(0);
        Some(Duration::from_millis(rest + 20))
    }

    /// Remaining life of the cache.
    fn cache_text(&self, now: Instant) -> Option<String> {
        let left = self.cache?.expires.saturating_duration_since(now);
        Some(match left.as_secs() {
            0 => String::from("cache cold"),
            seconds if left > SECONDS_FROM => format!("cache {} min", seconds.div_ceil(60)),
            seconds => format!("cache {}:{:02}", seconds / 60, seconds % 60),
        })
    }

    /// Remaining share of the context until compaction, from 0 to 1.
    fn left(&self) -> f64 {
        if self.goal == 0 { 1.0 } else { 1.0 - (self.tokens as f64 / self.goal as f64).min(1.0) }
    }

    /// The line in at most `width` columns; parts that do not fit are dropped from the end.
    pub(crate) fn line(&self, width: usize, theme: Theme) -> Line<'static> {
        let left = self.left();
        let style = if left < 0.1 {
            theme.bad()
        } else if left < 0.25 {
            theme.warning()
        } else {
            theme.good()
        };
        let full = ((1.0 - left) * BAR as f64).round() as usize;
        let bar = vec![
            Span::styled("█".repeat(full), style),
            Span::styled("░".repeat(BAR - full), theme.dim()),
            Span::styled(format!(" {:.0}% left", (left * 100.0).floor()), theme.dim()),
        ];
        let mut parts: Vec<Vec<Span<'static>>> =
            vec![vec![Span::styled(truncate_columns(&self.model, 24), theme.dim())]];
        let mode = match self.mode.as_str() {
            "" | "default" => None,
            "bypass" => Some(theme.bad()),
            "plan" => Some(theme.accent()),
            _ => Some(theme.warning()),
        };
        parts.extend(mode.map(|style| vec![Span::styled(self.mode.clone(), style)]));
        if self.is_unreported {
            parts.push(vec![Span::styled("the server reports no usage", theme.warning())]);
            return joined(parts, width, theme);
        }
        parts.push(bar);
        let mut quiet = |text: String| parts.push(vec![Span::styled(text, theme.dim())]);
        if self.prompt_tokens > 0 {
            quiet(format!("{:.0}% cached", self.cached_tokens as f64 / self.prompt_tokens as f64 * 100.0));
        }
        quiet(format!("${:.4}{}", self.cost, if self.is_simulated { " simulated" } else { "" }));
        if let Some(text) = self.cache_text(Instant::now()) {
            quiet(text);
        }
        if self.background > 0 {
            quiet(format!("{} in the background", self.background));
        }
        if self.tokens > 0 {
            quiet(format!("{} tokens", format_tokens(self.tokens)));
        }
        joined(parts, width, theme)
    }

    /// The status as the JSON object that a status command of the user reads, with the names that Claude Code uses.
    pub(crate) fn json(&self, log: &Path, project: &Path) -> String {
        let session = log.parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
        let used = if self.window == 0 { 0.0 } else { self.tokens as f64 / self.window as f64 * 100.0 };
        serde_json::json!({
            "hook_event_name": "Status",
            "session_id": session.unwrap_or_default(),
            "transcript_path": log,
            "cwd": project,
            "model": {"id": self.model, "display_name": self.model},
            "workspace": {"current_dir": project, "project_dir": project},
            "version": self.version,
            "permission_mode": self.mode,
            "cost": {"total_cost_usd": self.cost},
            "context_window": {
                "total_input_tokens": self.tokens,
                "context_window_size": self.window,
                "used_percentage": used.round(),
                "remaining_percentage": (100.0 - used).max(0.0).round(),
            },
        })
        .to_string()
    }

    /// The status as a sentence, for screen readers.
    pub(crate) fn sentence(&self) -> String {
        if self.is_unreported {
            return format!("{}: the server reports no usage", self.model);
        }
        format!(
            "{}: {:.0}% of the context left until compaction, ${:.4} {}{}",
            self.model,
            (self.left() * 100.0).floor(),
            self.cost,
            if self.is_simulated { "simulated, nothing spent" } else { "spent" },
            self.cache_text(Instant::now()).map_or(String::new(), |text| format!(", {text}")),
        )
    }
}

/// Joins as many parts as fit.
fn joined(parts: Vec<Vec<Span<'static>>>, width: usize, theme: Theme) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    let mut taken = 0;
    for part in parts {
        let wide: usize = part.iter().map(|span| columns(&span.content)).sum();
        let gap = if spans.is_empty() { "" } else { " · " };
        if taken + wide + columns(gap) > width {
            break;
        }
        taken += wide + columns(gap);
        if !gap.is_empty() {
            spans.push(Span::styled(gap, theme.dim()));
        }
        spans.extend(part);
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_resumed_session_is_marked_as_simulated_at_once() {
        let mut status = StatusLine { goal: 1, ..StatusLine::default() };
        status.set_earlier_cost(0.0838, true);
        assert!(status.line(80, Theme::default()).to_string().contains("$0.0838 simulated"));
        assert!(status.sentence().contains("$0.0838 simulated, nothing spent"));
        status.set_earlier_cost(0.5, false);
        assert!(!status.line(80, Theme::default()).to_string().contains("simulated"));
    }

    #[test]
    fn the_status_command_reads_the_window_of_the_model() {
        let status =
            StatusLine { tokens: 250_000, goal: 967_000, window: 1_000_000, ..StatusLine::default() };
        let json = status.json(Path::new("/s/log.jsonl"), Path::new("/p"));
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let context = &json["context_window"];
        assert_eq!(
            (&context["context_window_size"], &context["used_percentage"], &context["remaining_percentage"]),
            (&1_000_000.into(), &25.0.into(), &75.0.into())
        );
    }

    #[test]
    fn the_life_of_the_cache_counts_down() {
        let now = Instant::now();
        let text = |seconds: u64| {
            let expires = now + Duration::from_secs(seconds);
            let cache = Some(CacheClock { expires, ttl: Duration::from_secs(300) });
            StatusLine { cache, ..StatusLine::default() }.cache_text(now)
        };
        assert_eq!(text(3_500).as_deref(), Some("cache 59 min"));
        assert_eq!(text(299).as_deref(), Some("cache 5 min"));
        assert_eq!(text(85).as_deref(), Some("cache 1:25"));
        assert_eq!(text(0).as_deref(), Some("cache cold"));
        assert_eq!(StatusLine::default().cache_text(now), None);
    }
}
