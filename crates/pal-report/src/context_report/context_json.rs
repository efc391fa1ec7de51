//! The report as one JSON object.

use pal_view::{BreakpointPosition, CacheScope};
use serde_json::{Map, Value, json};

use super::breakpoint_list::{DescribedBreakpoint, describe_breakpoints};
use super::prompt_contents::{
    ListedTool, PromptContents, PromptSection, ReminderFile, SystemPromptBlock, TextSize,
};
use super::{ContextReport, ContextSubject, PlannedSession};

pub(super) fn context_object(report: &ContextReport) -> Value {
    let limits = &report.limits;
    let fill = limits.fill(report.tokens);
    let slices: Vec<Value> = report
        .slices
        .iter()
        .map(|slice| json!({"name": slice.kind.name, "tokens": slice.tokens.round()}))
        .collect();
    let PromptContents { tools, blocks, context } = &report.contents;
    let mut object = json!({
        "model": report.view.lens().card.model,
        "tokens": report.tokens,
        "profile": report.profile().name(),
        "categories": slices,
        "limits": {"window": limits.window, "reserve": limits.reserve, "effective": limits.effective,
            "auto_compact": limits.auto_compact, "warning": limits.warning, "blocking": limits.blocking},
        "state": {"percent_left": fill.percent_left, "warning": fill.warning, "auto_compact": fill.auto_compact,
            "blocking": fill.blocking},
        "tools": tools.iter().map(tool).collect::<Vec<_>>(),
        "system": blocks.iter().map(block).collect::<Vec<_>>(),
        "context": {
            "tokens": context.extent.tokens.round(), "bytes": context.extent.bytes,
            "files": context.files.iter().map(file).collect::<Vec<_>>(),
            "other_tokens": context.other_tokens.round(),
        },
        "marks": describe_breakpoints(report).iter().map(breakpoint).collect::<Vec<_>>(),
    });
    if let Some(members) = object.as_object_mut() {
        members.extend(report.outlook.as_ref().map(|next| (String::from("next"), Value::from(next.json()))));
        members.extend(subject(&report.subject));
    }
    object
}

/// Members that only a planned session has, or only a stored one.
fn subject(subject: &ContextSubject) -> Map<String, Value> {
    let members = match subject {
        ContextSubject::Planned(here) => start(here),
        ContextSubject::Stored { name, path, size } => json!({
            "session": path.to_string_lossy(), "name": name,
            "anchor": size.anchor.as_ref().map(|anchor| json!({"response": anchor.response, "tokens": anchor.tokens})),
        }),
    };
    members.as_object().cloned().unwrap_or_default()
}

fn start(here: &PlannedSession) -> Value {
    let gathered = &here.gathered;
    let found = &gathered.instructions;
    let left_out: Vec<_> = found.left_out.iter().chain(&here.assembled.left_out).collect();
    json!({
        "directory": here.directory.to_string_lossy(),
        "project": found.root,
        "environment": gathered.environment,
        "git": gathered.git,
        "left_out": left_out,
        "waiting": found.waiting,
        "questions": found.questions,
        "warnings": found.warnings,
        "took_ms": gathered.took.as_millis() as u64,
        "took_with_git_ms": gathered.took_with_git.as_millis() as u64,
    })
}

fn tool(tool: &ListedTool) -> Value {
    json!({
        "name": tool.name, "tokens": tool.extent.tokens.round(), "bytes": tool.extent.bytes,
        "mcp": tool.is_mcp, "deferred": tool.is_deferred,
    })
}

fn block(block: &SystemPromptBlock) -> Value {
    let section = |section: &PromptSection| {
        json!({"name": section.name, "tokens": section.extent.tokens.round(), "bytes": section.extent.bytes,
            "volatile": section.volatile})
    };
    json!({
        "static": block.is_static, "markable": block.can_hold_breakpoint, "tokens": block.extent.tokens.round(),
        "bytes": block.extent.bytes, "sections": block.sections.iter().map(section).collect::<Vec<_>>(),
    })
}

fn file(file: &ReminderFile) -> Value {
    let extent = |number: fn(TextSize) -> Value| file.extent.map_or(Value::Null, number);
    json!({
        "path": file.path, "scope": file.scope, "included_by": file.included_by, "reason": file.reason,
        "tokens": extent(|extent| json!(extent.tokens.round())), "bytes": extent(|extent| json!(extent.bytes)),
        "memory": file.is_memory,
    })
}

fn breakpoint(noted: &DescribedBreakpoint) -> Value {
    let (kind, at) = match noted.breakpoint.position {
        BreakpointPosition::Tool(at) => ("tool", at),
        BreakpointPosition::System(at) => ("system", at),
        BreakpointPosition::Block(at) => ("block", at),
    };
    let scope = noted.breakpoint.scope.map(|scope| match scope {
        CacheScope::Global => "global",
        CacheScope::Organisation => "org",
    });
    json!({
        "on": kind, "index": at, "behind": noted.behind, "tokens": noted.tokens.round(),
        "lifetime": noted.breakpoint.ttl.name(), "scope": scope,
    })
}
