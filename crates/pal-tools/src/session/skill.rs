//! Skill: brings the instructions of a skill into the conversation.

use pal_model::Aftermath;
use pal_permissions::Need;
use serde::Deserialize;

use super::skills::{Known, known};
use crate::{Input, Output, Running, Tool, Workspace};

/// Brings the instructions of a skill into the conversation.
#[derive(Clone, Copy, Debug)]
pub struct Skill;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    skill: String,
    #[serde(default)]
    args: Option<String>,
}

impl Tool for Skill {
    fn name(&self) -> &'static str {
        "Skill"
    }

    fn only_looks(&self, _: &Input) -> bool {
        true
    }

    fn needs(&self, input: &Input, _: &Workspace) -> Result<Vec<Need>, String> {
        input.read::<Fields>().map(|_| Vec::new())
    }

    fn run(&self, input: &Input, running: &Running<'_>) -> Output {
        skill(input, running.workspace).unwrap_or_else(|wrong| Output::error(&wrong))
    }
}

fn skill(input: &Input, workspace: &Workspace) -> Result<Output, String> {
    let Fields { skill, args } = input.read()?;
    let wanted = skill.trim().trim_start_matches('/');
    let known = known(workspace);
    let Some(found) = known.get(wanted) else {
        let names: Vec<&str> =
            known.iter().filter(|(_, skill)| !skill.is_for_people).map(|(name, _)| name.as_str()).collect();
        return Err(match names.as_slice() {
            [] => format!("There is no skill called {wanted}; there are none at all."),
            names => format!("There is no skill called {wanted}. There are: {}.", names.join(", ")),
        });
    };
    if found.is_for_people {
        return Err(format!(
            "The skill {wanted} is for people to call for. Tell the user what it could do here."
        ));
    }
    let aftermath = Aftermath { skill: Some(wanted.to_owned()), ..Aftermath::default() };
    let mut output = Output { aftermath, ..Output::text(&filled_in(found, args.as_deref().unwrap_or(""))) };
    output.touched.push(found.info.path.clone());
    Ok(output)
}

/// The skill's text with what it is called with in its place.
fn filled_in(skill: &Known, arguments: &str) -> String {
    let folder = skill.info.path.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    let takes_arguments = skill.text.contains("$ARGUMENTS");
    // The arguments are put in last, so that nothing in them is taken for a place to fill.
    let text = skill.text.replace("${CLAUDE_SKILL_DIR}", &folder).replace("$ARGUMENTS", arguments);
    let mut said = format!(
        "The skill {}. Its files are in {folder}; paths in it start there.\n\n{}",
        skill.info.name,
        text.trim()
    );
    if !takes_arguments && !arguments.trim().is_empty() {
        said.push_str(&format!("\n\nIt is called with: {arguments}"));
    }
    said
}
