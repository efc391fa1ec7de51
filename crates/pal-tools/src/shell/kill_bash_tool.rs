//! `KillBash` tool: ends a background command.

use std::sync::Arc;

use pal_permissions::ToolAccess;
use serde::Deserialize;

use super::bash_output_tool::{NEW_OUTPUT_BYTES_MAX, unknown};
use super::{Shell, command_report};
use crate::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

/// Ends a background command.
#[derive(Clone, Debug)]
pub struct KillBashTool(pub Arc<Shell>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KillBashInput {
    task_id: String,
}

impl ToolHandler for KillBashTool {
    fn name(&self) -> &'static str {
        "KillBash"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn required_access(&self, input: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        // Only commands of this session have an id.
        input.read::<KillBashInput>().map(|_| Vec::new())
    }

    fn run(&self, input: &ToolInput, _: &ToolContext<'_>) -> ToolOutput {
        let KillBashInput { task_id } = match input.read() {
            Ok(fields) => fields,
            Err(wrong) => return ToolOutput::error(&wrong),
        };
        self.0.background.kill(&task_id);
        match self.0.background.read_new_output(&task_id, NEW_OUTPUT_BYTES_MAX) {
            Some(news) => ToolOutput::text(command_report::render_output(&news).trim_end_matches('\n')),
            None => unknown(&self.0, &task_id),
        }
    }
}
