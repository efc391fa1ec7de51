//! EnterPlanMode and ExitPlanMode: thinking before doing.

use pal_model::Aftermath;
use pal_permissions::Need;
use serde::Deserialize;
use smol_str::SmolStr;

use crate::{Input, Output, Running, Tool, Workspace};

/// Asks to plan before anything is changed.
#[derive(Clone, Copy, Debug)]
pub struct EnterPlanMode;

/// Shows a plan and asks to carry it out.
#[derive(Clone, Copy, Debug)]
pub struct ExitPlanMode;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    plan: String,
}

impl Tool for EnterPlanMode {
    fn name(&self) -> &'static str {
        "EnterPlanMode"
    }

    fn only_looks(&self, _: &Input) -> bool {
        false
    }

    fn needs(&self, input: &Input, _: &Workspace) -> Result<Vec<Need>, String> {
        input.read().map(|Nothing {}| Vec::new())
    }

    fn run(&self, _: &Input, _: &Running<'_>) -> Output {
        let said = "You are planning now: look at what you need, and change nothing. When the plan stands, show it with \
                    ExitPlanMode.";
        in_mode("plan", said)
    }
}

impl Tool for ExitPlanMode {
    fn name(&self) -> &'static str {
        "ExitPlanMode"
    }

    fn only_looks(&self, _: &Input) -> bool {
        false
    }

    fn needs(&self, input: &Input, _: &Workspace) -> Result<Vec<Need>, String> {
        plan(input).map(|_| Vec::new())
    }

    fn run(&self, input: &Input, _: &Running<'_>) -> Output {
        match plan(input) {
            Ok(_) => in_mode("default", "Planning is over. Carry out the plan."),
            Err(wrong) => Output::error(&wrong),
        }
    }
}

fn plan(input: &Input) -> Result<String, String> {
    let Fields { plan } = input.read()?;
    if plan.trim().is_empty() {
        return Err(String::from("`plan` is empty: say what you would do, step by step."));
    }
    Ok(plan)
}

fn in_mode(mode: &'static str, said: &str) -> Output {
    let aftermath = Aftermath { mode: Some(SmolStr::new_static(mode)), ..Aftermath::default() };
    Output { aftermath, ..Output::text(said) }
}
