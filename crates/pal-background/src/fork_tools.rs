//! The tools of a background fork: calls are parsed, checked on real paths, and executed.

use std::time::Instant;

use pal_model::{BlockType, ContentBlock, SharedText, ToolUseId};
use pal_permissions::{Confinement, SandboxLevel, ToolAccess};
use pal_process::CancelToken;
use pal_run::{ToolCall, ToolCallResult};
use pal_tools::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};
use smol_str::SmolStr;

/// Checks one access of a call; the error is text for the model.
pub(crate) type AccessCheck = Box<dyn Fn(&ToolAccess, &Workspace) -> Result<(), String> + Send>;

/// Tools and access of a fork.
pub(crate) struct ForkTools<'a> {
    pub(crate) tools: &'a [Box<dyn ToolHandler>],
    pub(crate) workspace: &'a Workspace,
    pub(crate) access: &'a AccessCheck,
    pub(crate) cancel: &'a CancelToken,
}

impl<'a> ForkTools<'a> {
    /// Parses a call of an answer; none without an id.
    pub(crate) fn parse_call(&self, block: &ContentBlock) -> Option<ToolCall> {
        if block.kind() != BlockType::ToolUse {
            return None;
        }
        let id = block.tool_use_id()?.clone();
        let name = SmolStr::new(block.string("name").unwrap_or_default());
        let input = SharedText::from(block.field("input").unwrap_or("{}"));
        let tool = pal_tools::find_tool(self.tools, &name);
        let is_read_only = tool.is_some_and(|tool| tool.is_read_only(&ToolInput(input.clone())));
        Some(ToolCall { id, name, input, is_read_only, problem: None })
    }

    /// Grants a call that needs nothing beyond the fork's access.
    pub(crate) fn authorize(&self, call: &ToolCall) -> Result<GrantedCall<'a>, CallRefusal> {
        let name = &call.name;
        let Some(tool) = pal_tools::find_tool(self.tools, name) else {
            let text = String::from("This tool is not available here.");
            return Err(CallRefusal { summary: name.to_string(), text });
        };
        let input = ToolInput(call.input.clone());
        let checked = tool.required_access(&input, self.workspace).and_then(|needs| match needs.is_empty() {
            // A tool that declares no access cannot be checked.
            true => Err(String::from("this tool is not available here.")),
            false => needs.iter().try_for_each(|need| (self.access)(need, self.workspace)).map(|()| needs),
        });
        match checked {
            Ok(needs) => Ok(GrantedCall { id: call.id.clone(), tool, input, needs }),
            Err(why) => {
                let summary = format!("{name}: {why}");
                Err(CallRefusal { summary, text: format!("Not carried out: {why}") })
            }
        }
    }

    /// Executes calls in parallel; returns their results in order.
    pub(crate) fn execute(&self, calls: &[GrantedCall<'_>]) -> Vec<ToolCallResult> {
        let ForkTools { workspace, cancel, .. } = *self;
        std::thread::scope(|scope| {
            let running: Vec<_> =
                calls.iter().map(|call| scope.spawn(move || call.execute(workspace, cancel))).collect();
            let results = calls.iter().zip(running).map(|(call, running)| {
                let crashed = |_| ToolCallResult::failed(&call.id, "The tool broke down.");
                running.join().unwrap_or_else(crashed)
            });
            results.collect()
        })
    }
}

/// A call outside of the fork's access.
pub(crate) struct CallRefusal {
    /// One line for the report.
    pub(crate) summary: String,
    /// Text for the model.
    pub(crate) text: String,
}

/// An authorized call.
pub(crate) struct GrantedCall<'a> {
    id: ToolUseId,
    tool: &'a dyn ToolHandler,
    input: ToolInput,
    needs: Vec<ToolAccess>,
}

impl GrantedCall<'_> {
    pub(crate) fn changes_files(&self) -> bool {
        self.needs.iter().any(|need| matches!(need, ToolAccess::Write(_)))
    }

    pub(crate) fn execute(&self, workspace: &Workspace, cancel: &CancelToken) -> ToolCallResult {
        // A fork cannot ask.
        let confinement = &Confinement::whole(SandboxLevel::ReadOnly);
        let (granted, call, progress) = (&self.needs, &self.id, &|_: &str| {});
        let context = ToolContext { workspace, granted, confinement, call, cancel, progress };
        let started = Instant::now();
        let ToolOutput { content, is_error, .. } = self.tool.run(&self.input, &context);
        ToolCallResult { took: started.elapsed(), ..ToolCallResult::plain(call, content, is_error) }
    }
}
