//! Hooks around `pal compact`, as a running session has them (§4.4, §4.10).

use std::path::PathBuf;

use pal_engine::summary_text;
use pal_hooks::{HookContext, HookEvent, HookOutcome, HookSession, SessionHooks};
use pal_model::Boundary;
use pal_process::CancelToken;
use pal_report::sanitize;
use pal_settings::KillSwitch;

use crate::failure::Failure;
use crate::notices::print_notice;
use crate::open_session::OpenSession;
use crate::settings::Settings;

/// Trigger of the compaction, as hooks name it.
const MANUAL: &str = "manual";

/// Hooks of a stored session.
pub(super) struct CompactionHooks {
    hooks: SessionHooks,
    directory: PathBuf,
}

impl CompactionHooks {
    /// Returns the hooks of the settings; none if they are switched off.
    pub(super) fn new(stored: &OpenSession, settings: &Settings) -> CompactionHooks {
        let is_off = settings.switches.is_off(KillSwitch::Hooks);
        let configs = settings.hooks.iter().filter(|_| !is_off).map(|hooks| hooks.value.clone()).collect();
        let folder = stored.path.parent().map_or_else(PathBuf::new, PathBuf::from);
        let directory = stored.files.clone().or_else(|_| std::env::current_dir()).unwrap_or_default();
        let session = HookSession {
            session_id: folder.file_name().map_or_else(String::new, |id| id.to_string_lossy().into_owned()),
            transcript_path: stored.path.clone(),
            project: pal_project::find_project_root(&directory),
            folder,
        };
        CompactionHooks { hooks: SessionHooks::new(configs, session), directory }
    }

    /// Runs PreCompact; returns the instructions that hooks add, or an error if one forbids the compaction.
    pub(super) fn before(&self, instructions: Option<&str>) -> Result<Option<String>, Failure> {
        let instructions = instructions.unwrap_or_default();
        let outcome = self.run(&HookEvent::PreCompact { trigger: MANUAL, instructions });
        match outcome.blocked {
            Some(blocked) => Err(Failure::with_hint(
                format!("the hook `{}` forbids the compaction: {}", blocked.hook, blocked.reason),
                "change the hook, or run with `--settings 'disabled = [\"hooks\"]'`",
            )),
            None => Ok((!outcome.context.is_empty()).then(|| outcome.context.join("\n"))),
        }
    }

    /// Runs PostCompact; returns its texts for the model.
    pub(super) fn after(&self, boundary: &Boundary) -> Vec<String> {
        let summary = summary_text(boundary).unwrap_or_default();
        self.run(&HookEvent::PostCompact { trigger: MANUAL, summary: &summary }).context
    }

    fn run(&self, event: &HookEvent<'_>) -> HookOutcome {
        let outcome = self.hooks.run(event, &HookContext::new(&self.directory), &CancelToken::new());
        for failure in &outcome.failures {
            print_notice(format_args!("hook `{}`: {}", sanitize(&failure.hook), sanitize(&failure.reason)));
        }
        for message in &outcome.system_messages {
            print_notice(format_args!("{}", sanitize(message)));
        }
        outcome
    }
}
