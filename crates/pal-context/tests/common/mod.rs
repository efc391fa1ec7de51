//! Shared test helpers: a layer context from a script, and readable actions.

use std::fmt::Write;

use pal_context::{ActionKind, ContextPolicy, LAYERS, Layer, LayerAction, LayerContext, SessionPaths};
use pal_model::{
    DecisionKind, EntryDraft, EntryId, IdSource, LogEntry, ModelCard, ModelCatalog, SharedText, Timestamp,
    ToolUseId,
};
use pal_testkit::script;
use pal_view::{Estimator, Lens, PushOutcome, RenderOptions, View, ViewScope, WindowLimits, WindowSettings};
use pal_wire::{Beta, BetaSet, RequestRules, check_request};

pub(crate) const OPTIONS: RenderOptions =
    RenderOptions { max_tokens: 8_000, stream: true, spell_out_unseen: false };

/// A session that is about to send a request.
pub(crate) struct LayerFixture {
    pub(crate) view: View,
    pub(crate) policy: ContextPolicy,
    pub(crate) limits: WindowLimits,
    pub(crate) now: Timestamp,
    pub(crate) blocked_by: Option<&'static str>,
    pub(crate) place: SessionPaths,
}

impl LayerFixture {
    /// The session that a script tells, one second after its last line. `~400~` in the script stands for 400
    /// characters of text in short lines.
    pub(crate) fn of(model: &str, log: &str) -> LayerFixture {
        let entries = script(&spelled_out(log)).unwrap();
        LayerFixture::from_entries(ModelCatalog::built_in().find(model).card, entries)
    }

    pub(crate) fn from_entries(card: ModelCard, entries: Vec<LogEntry>) -> LayerFixture {
        let now = entries.last().map_or(Timestamp::default(), |entry| entry.at);
        let now = now.after(std::time::Duration::from_secs(1));
        let limits = WindowLimits::new(&card, &WindowSettings::STANDARD);
        let lens = Lens { estimator: Estimator::shipped(card.generation), card, scope: ViewScope::Current };
        let place = SessionPaths { directory: "/s".into(), transcript: "/s/log.jsonl".into() };
        let view = View::from_branch(lens, entries);
        LayerFixture { view, policy: ContextPolicy::threshold(), limits, now, blocked_by: None, place }
    }

    pub(crate) fn later(mut self, minutes: u64) -> LayerFixture {
        self.now = self.now.after(std::time::Duration::from_secs(60 * minutes));
        self
    }

    pub(crate) fn with_policy(mut self, change: impl FnOnce(&mut ContextPolicy)) -> LayerFixture {
        change(&mut self.policy);
        self
    }

    pub(crate) fn with_window(mut self, window: u64) -> LayerFixture {
        let settings = WindowSettings { max_context_tokens: Some(window), ..WindowSettings::STANDARD };
        self.limits = WindowLimits::new(&self.view.lens().card, &settings);
        self
    }

    pub(crate) fn context(&self) -> LayerContext<'_> {
        LayerContext {
            view: &self.view,
            now: self.now,
            limits: &self.limits,
            policy: &self.policy,
            paths: &self.place,
            blocked_by: self.blocked_by,
            size: self.view.size().tokens,
        }
    }

    pub(crate) fn act(&self, layer: &str) -> LayerAction {
        layer_named(layer).act(&self.context())
    }

    /// Carries out what a layer does, as entries of the log.
    pub(crate) fn apply_action(&mut self, act: &LayerAction) {
        let ActionKind::Decide(proposals) = &act.kind else { return };
        for proposal in proposals {
            let at = self.view.branch().last().map_or(self.now, |entry| entry.at);
            let id = IdSource::seeded(1_000_000 + self.view.branch().len() as u64).next_id(at);
            let line =
                EntryDraft::decision(&proposal.decision).into_line(id, self.view.newest_id(), at, None);
            self.view.push(LogEntry::parse(SharedText::from(line)).unwrap());
        }
    }

    /// Appends an entry of another log.
    pub(crate) fn append(&mut self, entry: &LogEntry) {
        let parent = |id: Option<EntryId>| match id {
            Some(id) => format!("\"parent\":\"{id}\""),
            None => String::from("\"parent\":null"),
        };
        let line = entry.line.replacen(&parent(entry.parent), &parent(self.view.newest_id()), 1);
        assert_eq!(self.view.push(LogEntry::parse(SharedText::from(line)).unwrap()), PushOutcome::Added);
    }

    /// The request as it stands, with what the layers ask the provider for, taken by the validator.
    pub(crate) fn checked(&self) -> Result<String, String> {
        let card = &self.view.lens().card;
        let mut rules =
            RequestRules { betas: BetaSet::none().with(Beta::Compaction), ..RequestRules::from(card) };
        if card.can.cache_edits {
            rules.betas = rules.betas.with(Beta::CacheEdits);
        }
        let mut request = self.view.render(OPTIONS);
        if card.can.provider_compaction {
            rules.betas = rules.betas.with(Beta::Compaction);
        }
        if let ActionKind::AskProvider { member, value } = self.act("microcompact").kind {
            request = request.with_member(member, &value);
            rules.betas = rules.betas.with(Beta::ContextManagement);
        }
        let body = request.body();
        match check_request(body.as_bytes(), &rules) {
            Ok(_) => Ok(body),
            Err(error) => Err(format!("{}\n{}", error.message, &body[..body.floor_char_boundary(8_000)])),
        }
    }

    pub(crate) fn checked_body(&self) -> String {
        self.checked().unwrap_or_else(|error| panic!("{error}"))
    }
}

pub(crate) fn layer_named(name: &str) -> &'static dyn Layer {
    LAYERS.into_iter().find(|layer| layer.name() == name).unwrap()
}

/// What a layer does in a session, checks that it does nothing more afterwards and that the request is valid, and
/// compares with what was expected.
#[track_caller]
pub(crate) fn check(layer: &str, mut setting: LayerFixture, expected: &[&str]) -> LayerFixture {
    let act = setting.act(layer);
    let shown = shown(&setting.view, &act);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines, expected);
    let size = setting.view.estimate();
    setting.apply_action(&act);
    assert!(setting.view.estimate() <= size, "it grew");
    if matches!(act.kind, ActionKind::Decide(_)) {
        let again = setting.act(layer);
        assert!(!matches!(again.kind, ActionKind::Decide(_)), "acts twice: {again:?}");
    }
    setting.checked_body();
    setting
}

fn shown(view: &View, act: &LayerAction) -> String {
    let mut text = String::new();
    match &act.kind {
        ActionKind::Decide(proposals) => {
            for proposal in proposals {
                let decision = &proposal.decision;
                let what = match &decision.kind {
                    DecisionKind::Spill { tool_use_id, entry, path, .. } => {
                        let name = tool_use_id.as_ref().map(ToolUseId::to_string);
                        let name = name.or(entry.map(|entry| place_of(view, entry))).unwrap();
                        let written = if proposal.file.is_some() { "" } else { " (there already)" };
                        format!("spill {name} to {}{written}", path.replace(&entry_name(*entry), "ENTRY"))
                    }
                    DecisionKind::Keep { tool_use_ids } => format!("keep {}", list(tool_use_ids)),
                    DecisionKind::Clear { tool_use_ids, .. } => format!("clear {}", list(tool_use_ids)),
                    DecisionKind::CacheEdit { tool_use_ids } => format!("edit cache {}", list(tool_use_ids)),
                    DecisionKind::Snip { entries } => format!(
                        "snip {}",
                        entries.iter().map(|entry| place_of(view, *entry)).collect::<Vec<_>>().join(" ")
                    ),
                    DecisionKind::Strip { entry, .. } => format!("strip {}", place_of(view, *entry)),
                    DecisionKind::Latch { name, value } => format!("latch {name} {value}"),
                    other => format!("{other:?}"),
                };
                writeln!(text, "{what}: {}", decision.reason).unwrap();
            }
        }
        ActionKind::AskProvider { member, value } => writeln!(text, "ask {member} {value}").unwrap(),
        ActionKind::Fold(stretch) => {
            let urgent = if stretch.is_urgent { " at once" } else { "" };
            let (head, tail) = (place_of(view, stretch.head), place_of(view, stretch.tail));
            writeln!(text, "fold {head} to {tail}{urgent}: {}", act.reason).unwrap();
        }
        ActionKind::Nothing => writeln!(text, "nothing: {}", act.reason).unwrap(),
        ActionKind::Compact => writeln!(text, "compact: {}", act.reason).unwrap(),
        ActionKind::Stop => writeln!(text, "stop: {}", act.reason).unwrap(),
    }
    text
}

fn list(ids: &[ToolUseId]) -> String {
    ids.iter().map(ToolUseId::to_string).collect::<Vec<_>>().join(" ")
}

fn entry_name(entry: Option<EntryId>) -> String {
    entry.map_or(String::from("no entry"), |entry| entry.to_string())
}

/// The line of the script that an entry stands on.
fn place_of(view: &View, entry: EntryId) -> String {
    let at = view.branch().iter().find(|known| known.id == entry).unwrap().at;
    ((at.milliseconds() - 1_800_000_000_000) / 1000).to_string()
}

/// Replaces every `~n~` in a script by `n` characters of text.
pub(crate) fn spelled_out(log: &str) -> String {
    let mut parts = log.split('~');
    let mut text = String::from(parts.next().unwrap());
    while let (Some(count), Some(rest)) = (parts.next(), parts.next()) {
        let count: usize = count.parse().unwrap();
        let line = r"a line of plain words in it\n";
        // A line end is one character in the log and two in the script.
        let characters = line.len() - 1;
        text.push_str(&line.repeat(count / characters));
        text.push_str(&"x".repeat(count % characters));
        text.push_str(rest);
    }
    text
}
