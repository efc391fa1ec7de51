//! What hooks and the model are told of what changed around the session: instruction files, the permission mode.

use pal_prompt::{Instruction, InstructionScope};

use crate::desk::Desk;
use crate::event::Event;
use crate::opening::PERMISSIONS;

impl Desk<'_> {
    /// Tells hooks which files of instructions the session begins with.
    pub(crate) fn tell_instructions(&mut self) {
        if !self.hooks.hears_instructions() {
            return;
        }
        for file in self.around.instructions.files.clone() {
            let why = if file.included_by.is_some() { "include" } else { "session_start" };
            self.tell_instruction(&file, why);
        }
    }

    /// Tells the user which includes of instruction files were refused, and how to allow them.
    pub(crate) fn tell_refused_includes(&mut self) {
        for refusal in self.around.instructions.take_refusals() {
            (self.sink)(Event::Warning(refusal));
        }
    }

    pub(crate) fn tell_instruction(&mut self, file: &Instruction, why: &str) {
        let whose = match file.scope {
            InstructionScope::Managed => "Managed",
            InstructionScope::User => "User",
            InstructionScope::Local => "Local",
            InstructionScope::Project | InstructionScope::Added => "Project",
        };
        self.hooks.instructions_loaded(file.path.as_ref(), whose, why, &self.gate, &self.handle.cancel());
        self.tell_notices();
    }

    /// What a person chose meanwhile holds from now on.
    pub(crate) fn heed_mode(&mut self) {
        if let Some(mode) = self.handle.take_mode() {
            self.gate.choose_mode(mode);
        }
    }

    /// The model is told of another mode with the next request, if it does not know of it.
    pub(crate) fn tell_mode(&mut self) {
        self.heed_mode();
        if self.told_mode != self.gate.mode {
            self.told_mode = self.gate.mode;
            self.notes.push((PERMISSIONS, self.prefixing.choose_mode(self.gate.mode)));
        }
    }
}
