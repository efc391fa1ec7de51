//! `Skill` tool: adds the instructions of a skill to the conversation.

use pal_model::ToolEffects;
use pal_permissions::ToolAccess;
use serde::Deserialize;

use super::skill_files::{LoadedSkill, SkillInfo, load_skills};
use crate::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

/// Adds the instructions of a skill to the conversation.
#[derive(Clone, Copy, Debug)]
pub struct SkillTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SkillCallInput {
    skill: String,
    #[serde(default)]
    args: Option<String>,
}

impl ToolHandler for SkillTool {
    fn name(&self) -> &'static str {
        "Skill"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn required_access(&self, input: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        let fields: SkillCallInput = input.read()?;
        Ok(vec![ToolAccess::Named(fields.skill.trim().trim_start_matches('/').to_owned())])
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>) -> ToolOutput {
        skill(input, context.workspace).unwrap_or_else(|wrong| ToolOutput::error(&wrong))
    }
}

fn skill(input: &ToolInput, workspace: &Workspace) -> Result<ToolOutput, String> {
    let SkillCallInput { skill, args } = input.read()?;
    let wanted = skill.trim().trim_start_matches('/');
    let known = load_skills(workspace);
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
    let aftermath = ToolEffects { skill: Some(wanted.to_owned()), ..ToolEffects::default() };
    let mut output =
        ToolOutput { aftermath, ..ToolOutput::text(&fill_in(found, args.as_deref().unwrap_or(""))) };
    output.touched.push(found.info.path.clone());
    Ok(output)
}

/// All skills as the user may invoke them, sorted by name.
pub fn user_skills(workspace: &Workspace) -> Vec<SkillInfo> {
    load_skills(workspace).into_values().map(|skill| skill.info).collect()
}

/// Prompt of a user who invokes a skill; none if there is no skill of this name.
pub fn skill_prompt(workspace: &Workspace, name: &str, arguments: &str) -> Option<String> {
    load_skills(workspace).get(name).map(|skill| fill_in(skill, arguments))
}

/// Skill text with its arguments filled in.
fn fill_in(skill: &LoadedSkill, arguments: &str) -> String {
    let folder = skill.info.path.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    let takes_arguments = skill.text.contains("$ARGUMENTS");
    // Arguments are inserted last, so that they cannot contain placeholders.
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
