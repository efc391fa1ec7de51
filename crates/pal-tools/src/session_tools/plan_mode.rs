//! `EnterPlanMode` and `ExitPlanMode` tools.

use pal_model::ToolEffects;
use pal_permissions::ToolAccess;
use serde::Deserialize;
use smol_str::SmolStr;

use crate::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

/// Asks to plan before anything is changed.
#[derive(Clone, Copy, Debug)]
pub struct EnterPlanModeTool;

/// Shows a plan and asks to execute it.
#[derive(Clone, Copy, Debug)]
pub struct ExitPlanModeTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnterPlanModeInput {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExitPlanModeInput {
    plan: String,
    /// Set if the user changed the plan before they approved it.
    #[serde(default)]
    edited: bool,
}

impl ToolHandler for EnterPlanModeTool {
    fn name(&self) -> &'static str {
        "EnterPlanMode"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn required_access(&self, input: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        input.read().map(|EnterPlanModeInput {}| Vec::new())
    }

    fn run(&self, _: &ToolInput, _: &ToolContext<'_>) -> ToolOutput {
        let said = "You are planning now: look at what you need, and change nothing. When the plan stands, show it with \
                    ExitPlanMode.";
        in_mode("plan", said)
    }
}

impl ToolHandler for ExitPlanModeTool {
    fn name(&self) -> &'static str {
        "ExitPlanMode"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn required_access(&self, input: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        parse_plan(input).map(|_| Vec::new())
    }

    fn run(&self, input: &ToolInput, _: &ToolContext<'_>) -> ToolOutput {
        match parse_plan(input) {
            Ok(ExitPlanModeInput { plan, edited: true }) => in_mode(
                "default",
                &format!(
                    "Planning is over. The user changed your plan before they approved it. Carry out this one:\n\n{plan}"
                ),
            ),
            Ok(_) => in_mode("default", "Planning is over. Carry out the plan."),
            Err(wrong) => ToolOutput::error(&wrong),
        }
    }
}

fn parse_plan(input: &ToolInput) -> Result<ExitPlanModeInput, String> {
    let fields: ExitPlanModeInput = input.read()?;
    if fields.plan.trim().is_empty() {
        return Err(String::from("`plan` is empty: say what you would do, step by step."));
    }
    Ok(fields)
}

fn in_mode(mode: &'static str, said: &str) -> ToolOutput {
    let aftermath = ToolEffects { mode: Some(SmolStr::new_static(mode)), ..ToolEffects::default() };
    ToolOutput { aftermath, ..ToolOutput::text(said) }
}
