//! `StructuredOutput` tool: the model ends a prompt with a JSON object that fits the schema which the user asks for.

use std::sync::{Arc, Mutex, PoisonError};

use pal_model::SharedText;
use pal_permissions::ToolAccess;
use pal_prompt::{ToolOrigin, ToolSpec};
use pal_tools::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};
use smol_str::SmolStr;

use crate::options::OutputSchema;

/// Name of the tool.
pub(crate) const STRUCTURED_OUTPUT: &str = "StructuredOutput";

/// Maximum reminders per prompt.
const REMINDERS_MAX: u32 = 5;

/// Description of the tool. Text for the model.
const DESCRIPTION: &str = "Gives the final answer of this task as data. Call it exactly once, when the work is done, with an \
                           object that fits the schema; a program reads it. Text beside it reaches no program.";

/// Reminder for a model that ends without it. Text for the model.
const REMINDER: &str = "The task is not finished: a program waits for its result. Call StructuredOutput now, with an object \
                        that fits its schema.";

/// Structured output of a session: the schema, and the output of the current prompt.
#[derive(Clone)]
pub(crate) struct StructuredOutput {
    wanted: OutputSchema,
    accepted: Arc<Mutex<Option<String>>>,
    /// Reminders since the prompt.
    reminders: u32,
}

impl StructuredOutput {
    pub(crate) fn new(wanted: OutputSchema) -> StructuredOutput {
        StructuredOutput { wanted, accepted: Arc::default(), reminders: 0 }
    }

    /// Specification of the tool.
    pub(crate) fn spec(wanted: &OutputSchema) -> ToolSpec {
        ToolSpec {
            name: SmolStr::new_static(STRUCTURED_OUTPUT),
            description: DESCRIPTION.to_owned(),
            schema: wanted.schema.clone(),
            origin: ToolOrigin::BuiltIn,
            is_deferred: false,
        }
    }

    /// The executable tool.
    pub(crate) fn tool(&self) -> Box<dyn ToolHandler> {
        Box::new(StructuredOutputTool(self.clone()))
    }

    /// Forgets the last prompt.
    pub(crate) fn begin_prompt(&mut self) {
        self.reminders = 0;
        *self.accepted.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Lets the model stop if its output is there or it was reminded often enough; else returns the reminder.
    pub(crate) fn check_stop(&mut self) -> Result<(), String> {
        if self.output().is_some() || self.reminders >= REMINDERS_MAX {
            return Ok(());
        }
        self.reminders += 1;
        Err(REMINDER.to_owned())
    }

    /// Output of the current prompt: raw JSON.
    pub(crate) fn output(&self) -> Option<String> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Accepts the output.
struct StructuredOutputTool(StructuredOutput);

impl ToolHandler for StructuredOutputTool {
    fn name(&self) -> &str {
        STRUCTURED_OUTPUT
    }

    /// Several outputs in one response are taken in order.
    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn required_access(&self, _: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        Ok(Vec::new())
    }

    fn run(&self, input: &ToolInput, _: &ToolContext<'_>) -> ToolOutput {
        let output: &SharedText = &input.0;
        match (self.0.wanted.check)(output) {
            Ok(()) => {
                *self.0.accepted.lock().unwrap_or_else(PoisonError::into_inner) = Some(output.to_string());
                ToolOutput::text("The output is accepted. End your turn.")
            }
            Err(why) => ToolOutput::error(&format!("The output does not fit the schema: {why}")),
        }
    }
}
