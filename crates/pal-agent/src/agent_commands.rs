//! Commands of the user on the session of an agent, between two prompts.

use pal_context::{CompactionRange, FileRequest, RestoredFile, SummaryQuestion, SummaryReply};
use pal_engine::{
    CompactionObserver, CompactionResult, EngineError, FileReader, ModelClient, Notifier, OutgoingRequest,
    RequestOutcome, SummaryExchange, TimeSource,
};
use pal_memory::MemorySummary;
use pal_model::{Boundary, Content, SharedText, Timestamp, ToolUseId};
use pal_project::InstructionSet;
use pal_prompt::OutputStyle;
use pal_run::{CallRuling, ToolCall};
use pal_store::LogReader;
use pal_tools::{ToolContext, ToolInput};
use pal_view::View;
use smol_str::SmolStr;

use crate::agent_runtime::AgentRuntime;
use crate::{Agent, AgentError};

/// Preview of a compaction.
#[derive(Debug)]
pub struct CompactionPreview {
    /// View before the compaction.
    pub before: View,
    /// Boundary that would be written.
    pub boundary: Box<Boundary>,
    /// Files that would not be restored.
    pub not_read: Vec<String>,
}

impl Agent<'_> {
    /// Previews a compaction of a range with an extracted summary: no model, no hooks, no changes.
    pub fn preview_compaction(&mut self, range: CompactionRange) -> Result<CompactionPreview, AgentError> {
        let before = self.session.view().clone();
        let world = self.runtime.world(&before);
        let now = self.runtime.clock.now();
        let mut looking = PreviewHost { runtime: &mut self.runtime, not_read: Vec::new() };
        match self.session.preview(range, world, &self.config, now, &mut looking)? {
            CompactionResult::Done { boundary, .. } => {
                Ok(CompactionPreview { before, boundary, not_read: looking.not_read })
            }
            CompactionResult::Refused(why) | CompactionResult::Blocked(why) => {
                Err(AgentError::Other(format!("nothing would come of it: {why}")))
            }
        }
    }

    /// Content of an MCP server's prompt with these arguments, a JSON object. Interrupting the agent cancels
    /// the wait.
    pub fn prompt_of_server(
        &mut self,
        server: &str,
        name: &str,
        arguments: &str,
    ) -> Result<Content, AgentError> {
        self.runtime.inbox.handle.renew();
        let cancel = self.runtime.inbox.handle.cancel();
        let blocks = self.runtime.mcp.servers.get_prompt(server, name, arguments, &cancel);
        let blocks = blocks.map_err(AgentError::Other)?;
        if blocks.is_empty() {
            return Err(AgentError::Other(format!("the server {server} says nothing under {name}")));
        }
        let raw: Vec<&str> = blocks.iter().map(|block| block.raw().as_str()).collect();
        Ok(Content::parse(&SharedText::from(format!("[{}]", raw.join(",")))))
    }

    /// Allows calls until the next prompt ends, as a command of the user wants. Rules that do not parse are ignored; they
    /// are returned.
    pub fn allow_for_prompt(&mut self, rules: &[String]) -> Vec<String> {
        let mut unknown = Vec::new();
        for rule in rules {
            match rule.parse() {
                Ok(rule) => self.runtime.permissions.rules.allow_for_prompt(rule),
                Err(_) => unknown.push(rule.clone()),
            }
        }
        unknown
    }

    /// Runs a tool for a command of the user and returns its output. Rules, hooks and questions apply as to a call of the
    /// model; the error says why it did not run.
    pub fn run_tool_for_user(&mut self, name: &str, input: &str) -> Result<String, String> {
        self.runtime.inbox.handle.renew();
        let cancel = self.runtime.inbox.handle.cancel();
        let call = ToolCall {
            id: ToolUseId::from("command"),
            name: SmolStr::new(name),
            input: SharedText::from(input),
            is_read_only: false,
            problem: None,
        };
        let AgentRuntime { permissions, tools, hooks, .. } = &mut self.runtime;
        let judged = permissions.judge(&call, &tools.all, &tools.workspace, hooks, &cancel);
        let input = match judged.ruling {
            CallRuling::Allowed { input } => input.unwrap_or_else(|| call.input.clone()),
            CallRuling::Refused(why) | CallRuling::Stop(why) => return Err(why),
        };
        let tool =
            pal_tools::find_tool(&tools.all, name).ok_or_else(|| format!("there is no tool {name}"))?;
        let output = tool.run(
            &ToolInput(input),
            &ToolContext {
                workspace: &tools.workspace,
                granted: &judged.needs,
                confinement: &judged.confinement,
                call: &call.id,
                cancel: &cancel,
                progress: &|_| {},
            },
        );
        self.runtime.report_notices();
        let texts: Vec<_> = output.content.iter().filter_map(|block| block.string("text")).collect();
        Ok(texts.join("\n"))
    }

    /// Makes the next request miss the prompt cache, for debugging (§5.3): the prefix is rendered again from the current
    /// project, with a text that no request had before.
    pub fn break_cache(&mut self) -> Result<(), AgentError> {
        let now = self.runtime.clock.now();
        self.runtime.background.end_pause(&mut self.session, &mut self.runtime.events)?;
        self.runtime.project.prompt.break_cache(pal_background::random_ids().next_id(now).to_string());
        if let Some(prefix) = self.runtime.renewed(self.session.view()) {
            self.session.append(pal_model::EntryDraft::prefix(&prefix), now)?;
        }
        Ok(())
    }

    /// Chooses the output style for the rest of the session; none for the default. The next request misses the cache.
    pub fn choose_output_style(&mut self, name: Option<&str>) -> Result<(), AgentError> {
        let style = match name {
            None => None,
            Some(name) => {
                let mut styles = pal_tools::output_styles(&self.runtime.tools.workspace);
                let text = styles.remove(name).ok_or_else(|| {
                    let names: Vec<String> = styles.into_keys().collect();
                    AgentError::Other(format!(
                        "no output style is named \"{name}\"; there are: default {}",
                        names.join(" ")
                    ))
                })?;
                Some(OutputStyle { name: name.to_owned(), text })
            }
        };
        self.runtime.background.end_pause(&mut self.session, &mut self.runtime.events)?;
        self.runtime.project.prompt.choose_output_style(style);
        if let Some(prefix) = self.runtime.renewed(self.session.view()) {
            self.session.append(pal_model::EntryDraft::prefix(&prefix), self.runtime.clock.now())?;
        }
        Ok(())
    }

    /// Compacts the whole conversation, with optional instructions for the summary.
    pub fn compact(&mut self, instructions: Option<String>) -> Result<(), AgentError> {
        self.compact_range(CompactionRange::Whole, instructions)
    }

    /// Compacts a range of the conversation, with optional instructions for the summary. Results are reported as
    /// events; a refusal is an error.
    pub fn compact_range(
        &mut self,
        range: CompactionRange,
        instructions: Option<String>,
    ) -> Result<(), AgentError> {
        self.runtime.inbox.handle.renew();
        let now = self.runtime.clock.now();
        self.runtime.background.end_pause(&mut self.session, &mut self.runtime.events)?;
        let compacted =
            self.session.compact_manually(range, instructions, &self.config, now, &mut self.runtime)?;
        match compacted {
            CompactionResult::Done { .. } => Ok(()),
            CompactionResult::Refused(why) | CompactionResult::Blocked(why) => {
                Err(AgentError::Other(format!("nothing came of it: {why}")))
            }
        }
    }

    /// Undoes the last compaction.
    pub fn uncompact(&mut self) -> Result<(), AgentError> {
        self.runtime.background.end_pause(&mut self.session, &mut self.runtime.events)?;
        let lens = self.session.view().lens().clone();
        let failed = |error: pal_store::OpenError| AgentError::Engine(EngineError::from(error));
        let branch =
            LogReader::open(&self.runtime.project.log).map_err(failed)?.whole_branch().map_err(failed)?;
        let whole = View::from_branch(lens, branch.entries);
        self.session.uncompact(&self.config, &whole, self.runtime.clock.now())?;
        Ok(())
    }

    /// Pins a text: every compaction preserves it word for word.
    pub fn pin(&mut self, text: &str) -> Result<(), AgentError> {
        self.session.pin(text, &self.config, self.runtime.clock.now())?;
        Ok(())
    }

    /// Removes a pin by its number, counted from 1.
    pub fn unpin(&mut self, number: usize) -> Result<(), AgentError> {
        let pins = &self.session.view().state().pins;
        let pin = number.checked_sub(1).and_then(|at| pins.keys().nth(at).copied());
        let pin = pin.ok_or_else(|| AgentError::Other(format!("there is no pin {number}")))?;
        self.session.unpin(pin, self.runtime.clock.now())?;
        Ok(())
    }

    /// Instruction files of the session.
    pub fn instructions(&self) -> &InstructionSet {
        &self.runtime.project.instructions
    }

    /// Memories of the session, most relevant first; none if unreadable.
    pub fn memories(&self) -> Vec<MemorySummary> {
        let place = self.runtime.memory.as_ref().map(|remembering| &remembering.place);
        let memory = place.and_then(|place| place.open_existing(self.runtime.clock.now()).ok().flatten());
        memory.and_then(|mut memory| memory.list().ok()).unwrap_or_default()
    }

    /// Pinned texts.
    pub fn pins(&self) -> Vec<String> {
        self.session.view().state().pins.values().cloned().collect()
    }
}

/// Host that only reads the files a compaction would restore.
struct PreviewHost<'a, 'b> {
    runtime: &'a mut AgentRuntime<'b>,
    not_read: Vec<String>,
}

impl ModelClient for PreviewHost<'_, '_> {
    fn send(&mut self, _outgoing: &OutgoingRequest<'_>) -> RequestOutcome {
        RequestOutcome::Failed(String::from("a preview sends no requests"))
    }

    fn ask(&mut self, _question: &SummaryQuestion, _betas: &[SmolStr], _now: Timestamp) -> SummaryExchange {
        SummaryExchange {
            reply: SummaryReply::Failed(String::from("a preview asks no model")),
            answered: None,
        }
    }
}

impl FileReader for PreviewHost<'_, '_> {
    fn read_file(&mut self, wanted: &FileRequest) -> RestoredFile {
        let read = self.runtime.read_again(wanted);
        if read.text.is_none() {
            self.not_read.push(wanted.path.clone());
        }
        read
    }
}

impl Notifier for PreviewHost<'_, '_> {
    fn notice(&mut self, _line: &str) {}
}

impl TimeSource for PreviewHost<'_, '_> {}

impl CompactionObserver for PreviewHost<'_, '_> {}
