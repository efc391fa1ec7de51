//! The tools of `--tools`.

use pal_model::did_you_mean;
use pal_prompt::built_in_tools;
use smol_str::SmolStr;

use crate::failure::Failure;

/// Names of Claude Code for tools that have another name here.
const THEIR_NAMES: &[(&str, &str)] = &[
    ("Task", "Agent"),
    ("TodoWrite", "Todo"),
    ("KillShell", "KillBash"),
    ("MultiEdit", "Edit"),
    ("LS", "Glob"),
];

/// Built-in tools that a list leaves out. An empty list leaves out all of them, `default` none.
pub(super) fn tools_left_out(list: &str) -> Result<Vec<SmolStr>, Failure> {
    let known: Vec<SmolStr> = built_in_tools().into_iter().map(|tool| tool.name).collect();
    let mut kept: Vec<SmolStr> = Vec::new();
    for name in list.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty()) {
        if name == "default" {
            return Ok(Vec::new());
        }
        let name = THEIR_NAMES.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| ours);
        if !known.iter().any(|tool| tool == name) {
            let names: Vec<&str> = known.iter().map(SmolStr::as_str).collect();
            return Err(Failure::usage_error(
                format!("--tools: there is no tool `{name}`{}", did_you_mean(name, &names)),
                format!("choose among {}", names.join(", ")),
            ));
        }
        kept.push(SmolStr::new(name));
    }
    Ok(known.into_iter().filter(|tool| !kept.contains(tool)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_outside_of_the_list_are_left_out() {
        let without = tools_left_out("Read, Task").unwrap();
        assert!(without.contains(&SmolStr::new("Bash")));
        assert!(!without.contains(&SmolStr::new("Read")) && !without.contains(&SmolStr::new("Agent")));
        assert_eq!(tools_left_out("").unwrap().len(), built_in_tools().len());
        assert!(tools_left_out("default").unwrap().is_empty());
        assert!(tools_left_out("Raed").unwrap_err().to_string().contains("did you mean `Read`?"));
    }
}
