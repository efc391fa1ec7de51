//! What a compaction takes from the world around the session, and what it leaves for it.

use std::path::Path;

use pal_context::{FileRead, FileWanted, Notes, Order, Restorable, World};
use pal_engine::{AfterCompaction, BeforeCompaction};
use pal_model::{Boundary, Prefix};
use pal_permissions::Mode;
use pal_settings::Switch;
use pal_sources::gather;
use pal_view::View;

use crate::desk::Desk;
use crate::event::Event;
use crate::remembering::memory_index;
use crate::restoring::text_inside;

impl Desk<'_> {
    /// Hooks are heard, and what is to be put back is put together.
    pub(crate) fn prepare_compaction(&mut self, order: &Order, view: &View) -> BeforeCompaction {
        let said = self.hooks.compacting(order, &self.gate, &self.handle.cancel());
        self.tell_notices();
        if said.blocked_by.is_none() {
            (self.sink)(Event::Compacting { tokens: view.size().tokens });
        }
        BeforeCompaction {
            blocked_by: said.blocked_by,
            instructions: said.instructions,
            world: self.world(view),
            notes: self.notes(),
        }
    }

    fn notes(&mut self) -> Option<Notes> {
        let is_off = self.switched.is_off(Switch::Notes);
        let (keeping, cancel) = (self.note_keeping.as_mut().filter(|_| !is_off)?, self.handle.cancel());
        keeping.for_compaction(&cancel)
    }

    /// What may be put back into sight besides files.
    pub(crate) fn world(&self, view: &View) -> World {
        if self.switched.is_off(Switch::Restoration) {
            return World::default();
        }
        let state = view.state();
        let skill = |name: &String| {
            let text = pal_tools::skill_text(&self.workspace, name)?;
            Some(Restorable { name: name.clone(), text })
        };
        let plan = (self.gate.mode == Mode::Plan).then(|| {
            String::from("Plan mode is on: look at whatever you need, change nothing, and end with a plan.")
        });
        let running: Vec<String> = self.shell.running();
        World {
            skills: state.skills.iter().rev().filter_map(skill).collect(),
            plan,
            agents: (!running.is_empty()).then(|| running.join("\n")),
            not_restored: self
                .gate
                .notes
                .iter()
                .chain([&self.log])
                .map(|file| file.display().to_string())
                .collect(),
            ..World::default()
        }
    }

    /// What the model saw before is behind the summary now; what it can draw on is told again, and hooks are heard.
    pub(crate) fn follow_compaction(&mut self, boundary: &Boundary, view: &View) -> AfterCompaction {
        (self.sink)(Event::Compacted(Box::new(boundary.clone())));
        if let Some(keeping) = &mut self.note_keeping {
            keeping.compacted(view.size().tokens);
        }
        self.workspace.forget_seen();
        for (path, seen) in &boundary.snapshot.seen_files {
            self.workspace.note_seen(Path::new(path), seen.clone());
        }
        let said = self.hooks.compacted(boundary, &self.gate, &self.handle.cancel());
        self.tell_notices();
        AfterCompaction {
            prefix: self.renewed(view),
            notes: said.into_iter().map(|text| ("hook", text)).collect(),
            announcement: self.around.announcement(&view.state().announced, &self.catalogue),
        }
    }

    /// What stands before the messages from now on, if it is not what it was: notices of changes are behind the summary
    /// now, so what they were about has to be told where it belongs (§4.14).
    fn renewed(&mut self, view: &View) -> Option<Prefix> {
        let gathered = gather(&self.sources);
        let remembered = self.remembering.as_ref();
        let memory = remembered.map_or(Vec::new(), |known| memory_index(&known.place, self.clock.now()).0);
        let renewed = self.prefixing.assembled(&gathered, memory).prefix;
        self.around.instructions = gathered.instructions;
        let is_same = |prefix: &Prefix| {
            (&prefix.system, &prefix.tools, prefix.context.raw())
                == (&renewed.system, &renewed.tools, renewed.context.raw())
        };
        (!view.prefix().is_some_and(is_same)).then_some(renewed)
    }

    /// A file that was in sight, as it is now. Only inside of the directories that the session works in.
    pub(crate) fn read_again(&mut self, wanted: &FileWanted) -> FileRead {
        let target = self.workspace.resolve(&wanted.path);
        // What may not be looked at is not put before the model by another way.
        let may_look = self.gate.may_look(&target, &self.workspace);
        let root = self.workspace.roots.iter().find(|root| may_look && target.real.starts_with(root));
        let path = target.real.display().to_string();
        let text = root.and_then(|root| text_inside(root, &path, wanted.bytes_max).ok());
        let seen = text.as_ref().and_then(|_| pal_tools::file_seen(&target.real)).map(|seen| (path, seen));
        FileRead { path: wanted.path.clone(), text, seen }
    }
}
