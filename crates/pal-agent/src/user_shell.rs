//! Shell commands that the user runs by their own hand, between two prompts.

use std::sync::Arc;

use pal_model::{Content, EntryDraft, MessageOrigin, SharedText, ToolUseId};
use pal_permissions::{Confinement, SandboxLevel, ToolAccess};
use pal_tools::{BashTool, ToolContext, ToolHandler, ToolInput, ToolOutput};

use crate::{Agent, AgentError};

/// Time limit of a command, in milliseconds; the longest that the tool allows.
const TIME_MS: u64 = 600_000;

/// Output of a command of the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserCommandOutput {
    /// What it printed, with notes about how it ended.
    pub text: String,
    /// True if it failed.
    pub is_error: bool,
}

impl Agent<'_> {
    /// Runs a command of the user in the working directory, without permission check and sandbox, and adds the command
    /// with its output to the conversation. Interrupting the agent cancels it; the working directory stays.
    pub fn run_user_command(
        &mut self,
        command: &str,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<UserCommandOutput, AgentError> {
        let runtime = &mut self.runtime;
        runtime.inbox.handle.renew();
        let now = runtime.clock.now();
        let workspace = &runtime.tools.workspace;
        let directory = workspace.directory();
        let call = ToolUseId::from(format!("user_{}", now.milliseconds()).as_str());
        let context = ToolContext {
            workspace,
            granted: &[ToolAccess::Run(command.to_owned())],
            confinement: &Confinement::whole(SandboxLevel::Full),
            call: &call,
            cancel: &runtime.inbox.handle.cancel(),
            progress,
        };
        let input = serde_json::json!({ "command": command, "timeout": TIME_MS }).to_string();
        let ToolOutput { content, is_error, .. } =
            BashTool(Arc::clone(&runtime.tools.shell)).run(&ToolInput(SharedText::from(input)), &context);
        // The log does not record where a command of the user has moved to.
        workspace.change_directory(&directory);
        let words = content.iter().filter_map(|block| block.string("text"));
        let text = words.collect::<Vec<_>>().join("\n");
        let said = format!(
            "The user ran this command themselves, in {}:\n$ {command}\nIts output:\n{text}",
            directory.display()
        );
        runtime.background.end_pause(&mut self.session, &mut runtime.events)?;
        let content = Content::from_text(&said).to_json();
        self.session.append(EntryDraft::user(MessageOrigin::Agent, &content), runtime.clock.now())?;
        Ok(UserCommandOutput { text, is_error })
    }
}
