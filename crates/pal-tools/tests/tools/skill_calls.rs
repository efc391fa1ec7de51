//! Skill, plan and todo calls.

use std::os::unix::fs::symlink;

use pal_tools::available_skills;
use serde_json::json;

use crate::common::Place;

fn skill(place: &Place, folder: &str, text: &str) {
    let folder = place.outside(folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
}

fn places() -> Place {
    let mut place = Place::new();
    place.workspace.program_home = Some(place.outside("home/.palimpsest"));
    skill(
        &place,
        "project/.claude/skills/release",
        "---\nname: release\ndescription: Cuts a release\nwhen_to_use: When a version is due.\n\
         allowed-tools: Bash(git tag:*)\n---\nTag $ARGUMENTS, see ${CLAUDE_SKILL_DIR}/list.md.\n",
    );
    skill(&place, "project/.pal/skills/both", "---\ndescription: the project's\n---\nproject");
    skill(&place, "home/.claude/skills/both", "---\ndescription: the user's\n---\nuser");
    skill(&place, "home/.palimpsest/skills/plain", "# Does plain things\n\nDo them.\n");
    skill(
        &place,
        "home/.claude/skills/people",
        "---\ndescription: x\ndisable-model-invocation: true\n---\nnot for models",
    );
    std::fs::create_dir_all(place.path(".claude/skills/empty")).unwrap();
    place
}

#[test]
fn skills_are_listed_by_name_nearest_first() {
    let place = places();
    let found: Vec<(String, String)> =
        available_skills(&place.workspace).into_iter().map(|skill| (skill.name, skill.description)).collect();
    let expected = [
        ("both", "the project's"),
        ("plain", "Does plain things"),
        ("release", "Cuts a release When a version is due."),
    ];
    assert_eq!(found, expected.map(|(name, description)| (name.to_owned(), description.to_owned())));
    assert_eq!(available_skills(&place.workspace)[2].allowed_tools, ["Bash(git tag:*)"]);
}

#[test]
fn a_skill_receives_its_arguments() {
    let place = places();
    let said = place.call("Skill", &json!({"skill": "release", "args": "v2 $ARGUMENTS"}));
    let folder = place.path(".claude/skills/release").display().to_string();
    assert_eq!(
        said.good(),
        format!(
            "The skill release. Its files are in {folder}; paths in it start there.\n\n\
             Tag v2 $ARGUMENTS, see {folder}/list.md."
        )
    );
    assert_eq!(said.output.aftermath.skill.as_deref(), Some("release"));
    let said = place.call("Skill", &json!({"skill": "/plain", "args": "now"})).good();
    assert!(said.ends_with("Do them.\n\nIt is called with: now"), "{said}");
    let said = place.call("Skill", &json!({"skill": "../secret"})).wrong();
    assert!(said.contains("There are: both, plain, release."), "{said}");
    assert!(place.call("Skill", &json!({"skill": "people"})).wrong().contains("for people to call for"));
}

#[test]
fn a_project_cannot_link_its_skills_to_files_of_the_user() {
    let place = places();
    std::fs::write(place.outside("home/key"), "secret").unwrap();
    std::fs::create_dir_all(place.path(".claude/skills/thief")).unwrap();
    symlink(place.outside("home/key"), place.path(".claude/skills/thief/SKILL.md")).unwrap();
    skill(&place, "elsewhere", "secret");
    symlink(place.outside("elsewhere"), place.path(".claude/skills/linked")).unwrap();
    symlink(place.outside("elsewhere"), place.outside("home/.claude/skills/own")).unwrap();
    let names: Vec<String> = available_skills(&place.workspace).into_iter().map(|skill| skill.name).collect();
    assert_eq!(names, ["both", "own", "plain", "release"], "the user's own links are followed");
}

#[test]
fn plan_mode_is_entered_and_left() {
    let place = Place::new();
    let begun = place.call("EnterPlanMode", &json!({}));
    assert!(begun.good().contains("ExitPlanMode"));
    assert_eq!(begun.output.aftermath.mode.as_deref(), Some("plan"));
    let over = place.call("ExitPlanMode", &json!({"plan": "1. Do it."}));
    let _ = over.good();
    assert_eq!(over.output.aftermath.mode.as_deref(), Some("default"));
    assert!(place.call("ExitPlanMode", &json!({"plan": " "})).wrong().contains("`plan` is empty"));
    assert!(
        place
            .call("Todo", &json!({"todos": [{"content": "a", "status": "pending"}]}))
            .good()
            .contains("[ ] a")
    );
}

#[test]
fn tools_are_sorted_and_found_by_name() {
    let all = pal_tools::builtin_tools();
    let names: Vec<&str> = all.iter().map(|tool| tool.name()).collect();
    assert!(names.is_sorted(), "{names:?}");
    assert!(pal_tools::find_tool(&all, "Read").is_some() && pal_tools::find_tool(&all, "read").is_none());
}
