//! `BashOutput` tool: shows new output of a background command.

use std::sync::Arc;
use std::time::Duration;

use pal_permissions::ToolAccess;
use serde::Deserialize;

use super::{Shell, command_report};
use crate::tool_input::lenient;
use crate::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

/// Maximum wait in milliseconds.
const WAIT_MS_MAX: u64 = 600_000;

/// Maximum bytes shown at once.
pub(super) const NEW_OUTPUT_BYTES_MAX: usize = 32_000;

/// Shows new output of a background command.
#[derive(Clone, Debug)]
pub struct BashOutputTool(pub Arc<Shell>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BashOutputInput {
    task_id: String,
    #[serde(default, deserialize_with = "lenient::whole_number")]
    wait_ms: Option<u64>,
}

impl ToolHandler for BashOutputTool {
    fn name(&self) -> &'static str {
        "BashOutput"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn required_access(&self, input: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        input.read::<BashOutputInput>().map(|_| Vec::new())
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>) -> ToolOutput {
        let BashOutputInput { task_id, wait_ms } = match input.read() {
            Ok(fields) => fields,
            Err(wrong) => return ToolOutput::error(&wrong),
        };
        let background = &self.0.background;
        if let Some(wait_ms) = wait_ms {
            let time = Duration::from_millis(wait_ms.min(WAIT_MS_MAX));
            background.wait_for_output(&task_id, time, context.cancel);
        }
        match background.read_new_output(&task_id, NEW_OUTPUT_BYTES_MAX) {
            Some(news) => ToolOutput::text(command_report::render_output(&news).trim_end_matches('\n')),
            None => unknown(&self.0, &task_id),
        }
    }
}

/// Error for an unknown task id.
pub(super) fn unknown(shell: &Shell, id: &str) -> ToolOutput {
    let known: Vec<String> = shell.background.list().into_iter().map(|task| task.id).collect();
    let known = if known.is_empty() {
        "There is none.".to_owned()
    } else {
        format!("There are: {}.", known.join(", "))
    };
    ToolOutput::error(&format!("No background task is called {id}. {known}"))
}
