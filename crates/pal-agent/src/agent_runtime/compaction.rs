//! Compactions of the session: their inputs from the project, and what they change around it.

use std::path::Path;

use pal_background::memory_index;
use pal_context::{
    CompactionRequest, CompactionTrigger, FileRequest, NamedText, RestoreSources, RestoredFile, SessionNotes,
};
use pal_engine::{CompactionFollowUp, CompactionInputs};
use pal_events::AgentEvent;
use pal_model::{Boundary, PromptPrefix};
use pal_permissions::PermissionMode;
use pal_project::take_project_snapshot;
use pal_prompt::{AssembledPrefix, ToolCatalog, ToolSpec};
use pal_settings::KillSwitch;
use pal_view::View;

use crate::agent_runtime::AgentRuntime;
use crate::approved_plan::approved_plan;
use crate::restored_files::restored_file;
use crate::subagents::SubagentStatus;

impl AgentRuntime<'_> {
    /// Runs the hooks and collects the inputs of a compaction.
    pub(crate) fn prepare_compaction(&mut self, order: &CompactionRequest, view: &View) -> CompactionInputs {
        let said = self.hooks.compacting(order, self.permissions.mode, &self.inbox.handle.cancel());
        self.report_notices();
        // One in the background may be cancelled without a trace.
        if said.blocked_by.is_none() && order.trigger != CompactionTrigger::Idle {
            self.events.send(AgentEvent::Compacting { tokens: view.size().tokens });
        }
        CompactionInputs {
            blocked_by: said.blocked_by,
            instructions: said.instructions,
            sources: self.world(view),
            notes: self.notes(),
        }
    }

    fn notes(&mut self) -> Option<SessionNotes> {
        let is_off = self.switches.is_off(KillSwitch::Notes);
        let (keeping, cancel) =
            (self.background.notes.as_mut().filter(|_| !is_off)?, self.inbox.handle.cancel());
        keeping.for_compaction(&cancel)
    }

    /// Context to restore besides files.
    pub(crate) fn world(&self, view: &View) -> RestoreSources {
        if self.switches.is_off(KillSwitch::Restoration) {
            return RestoreSources::default();
        }
        let state = view.state();
        let skill = |name: &String| {
            let text = pal_tools::skill_text(&self.tools.workspace, name)?;
            Some(NamedText { name: name.clone(), text })
        };
        let plan_mode = (self.permissions.mode == PermissionMode::Plan).then(|| {
            String::from("Plan mode is on: look at whatever you need, change nothing, and end with a plan.")
        });
        let mut running: Vec<String> = self.subagents.at_work().iter().map(described).collect();
        running.extend(self.tools.shell.running_commands());
        RestoreSources {
            skills: state.skills.iter().rev().filter_map(skill).collect(),
            plan_mode,
            plan: approved_plan(view),
            background: (!running.is_empty()).then(|| running.join("\n")),
            not_restored: self
                .permissions
                .notes
                .iter()
                .chain([&self.project.log])
                .map(|file| file.display().to_string())
                .collect(),
            ..RestoreSources::default()
        }
    }

    /// Reports a compaction, forgets the files that the model no longer sees, and runs the hooks.
    pub(crate) fn follow_compaction(&mut self, boundary: &Boundary, view: &View) -> CompactionFollowUp {
        self.events.send(AgentEvent::Compacted(Box::new(boundary.clone())));
        if let Some(keeping) = &mut self.background.notes {
            keeping.compacted(view.size().tokens);
        }
        self.tools.workspace.forget_seen();
        for (path, seen) in &boundary.snapshot.seen_files {
            self.tools.workspace.record_seen(Path::new(path), seen.clone());
        }
        let said = self.hooks.compacted(boundary, self.permissions.mode, &self.inbox.handle.cancel());
        self.report_notices();
        let prefix = self.renewed(view);
        self.announce_instructions("compact");
        CompactionFollowUp {
            prefix,
            notes: said.into_iter().map(|text| ("hook", text)).collect(),
            announcement: self.project.announcement(&view.state().announced, &self.tools.catalog),
        }
    }

    /// Returns the new prompt prefix if it differs from the current one: earlier notices of changes are hidden
    /// behind the summary, so the prefix must contain them (§4.14).
    pub(crate) fn renewed(&mut self, view: &View) -> Option<PromptPrefix> {
        let gathered = take_project_snapshot(&self.project.sources);
        let remembered = self.memory.as_ref();
        let memory = remembered.map_or(Vec::new(), |known| memory_index(&known.place, self.clock.now()).0);
        if let Some(window) = self.model.lowered_window {
            self.project.prompt.lower_window(window);
        }
        let AssembledPrefix { prefix: renewed, catalog, .. } =
            self.project.prompt.assembled(&gathered, memory);
        self.project.instructions = gathered.instructions;
        if catalog.profile() != self.tools.catalog.profile() {
            self.change_catalog(catalog);
        }
        let is_same = |prefix: &PromptPrefix| {
            (&prefix.system, &prefix.tools, prefix.context.to_json())
                == (&renewed.system, &renewed.tools, renewed.context.to_json())
        };
        (!view.prefix().is_some_and(is_same)).then_some(renewed)
    }

    /// Continues with the catalog of a new profile and the tools that servers offer now.
    fn change_catalog(&mut self, mut catalog: ToolCatalog) {
        let late: Vec<ToolSpec> =
            self.tools.catalog.late_tools().iter().map(|tool| tool.spec.clone()).collect();
        catalog.set_late_tools(&late);
        self.tools.catalog = catalog;
    }

    /// Reads a file for restoration, only inside of the directories that the session works in.
    pub(crate) fn read_again(&mut self, wanted: &FileRequest) -> RestoredFile {
        let target = self.tools.workspace.resolve(&wanted.path);
        // Files that need permission are not restored.
        let may_look = self.permissions.may_look(&target, &self.tools.workspace);
        let root = self.tools.workspace.roots.iter().find(|root| may_look && target.real.starts_with(root));
        let path = target.real.display().to_string();
        let restored = root.and_then(|root| restored_file(root, &path, wanted.bytes_max).ok());
        let (text, seen) = restored.unzip();
        RestoredFile { path: wanted.path.clone(), text, first_line: 1, seen: seen.flatten() }
    }
}

/// One line about a running subagent.
fn described(status: &SubagentStatus) -> String {
    let SubagentStatus { name, kind, is_teammate, rests, doing, .. } = status;
    let what = if *is_teammate { "teammate" } else { "subagent" };
    let activity = match (rests, doing.as_str()) {
        (true, _) => String::from("idle"),
        (false, "") => String::from("at work"),
        (false, doing) => format!("at work: {doing}"),
    };
    format!("{what} `{name}` ({kind}), {activity}; it reports to you when it ends")
}
