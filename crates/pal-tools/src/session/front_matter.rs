//! The front matter of a skill or of an agent's definition.

use pal_model::front_matter;
use serde::Deserialize;

/// What stands before the text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FrontMatter {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) when_to_use: Option<String>,
    /// Whether only a person may call for it.
    pub(super) is_for_people: bool,
    pub(super) allowed_tools: Vec<String>,
    /// The tools that an agent has; none for all.
    pub(super) tools: Option<Vec<String>>,
    pub(super) disallowed_tools: Vec<String>,
    pub(super) isolation: Option<String>,
    pub(super) model: Option<String>,
    pub(super) background: bool,
    pub(super) memory: Option<String>,
}

#[derive(Deserialize, Default)]
struct Raw {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    when_to_use: Option<String>,
    #[serde(default, rename = "disable-model-invocation")]
    is_for_people: Option<bool>,
    #[serde(default, rename = "allowed-tools")]
    allowed_tools: Option<Names>,
    #[serde(default)]
    tools: Option<Names>,
    #[serde(default, rename = "disallowedTools")]
    disallowed_tools: Option<Names>,
    #[serde(default)]
    isolation: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    background: Option<bool>,
    #[serde(default)]
    memory: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Many(Vec<String>),
}

impl Names {
    fn listed(self) -> Vec<String> {
        match self {
            Names::One(names) => split_outside(names.trim().trim_start_matches('[').trim_end_matches(']')),
            Names::Many(names) => names,
        }
    }
}

/// Parts a skill's front matter from its text.
pub(super) fn parted(file: &str) -> (FrontMatter, &str) {
    let file = file.strip_prefix('\u{feff}').unwrap_or(file);
    let Some((matter, text)) = front_matter(file) else { return (FrontMatter::default(), file) };
    let raw: Option<Raw> = serde_saphyr::from_str(matter).ok();
    let raw = raw.unwrap_or_else(|| by_lines(matter));
    let front_matter = FrontMatter {
        name: raw.name,
        description: raw.description,
        when_to_use: raw.when_to_use,
        is_for_people: raw.is_for_people.unwrap_or(false),
        allowed_tools: raw.allowed_tools.map(Names::listed).unwrap_or_default(),
        // A star stands for all of them.
        tools: raw.tools.map(Names::listed).filter(|names| names.iter().all(|name| name != "*")),
        disallowed_tools: raw.disallowed_tools.map(Names::listed).unwrap_or_default(),
        isolation: raw.isolation,
        model: raw.model,
        background: raw.background.unwrap_or(false),
        memory: raw.memory,
    };
    (front_matter, text)
}

/// Reads what is no YAML as people write it: `description: Use it when: always` has one colon too many, and everybody
/// knows what is meant.
fn by_lines(matter: &str) -> Raw {
    let mut raw = Raw::default();
    for (key, value) in matter.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim().trim_matches(['"', '\'']).to_owned();
        match key.trim_end() {
            "name" => raw.name = Some(value),
            "description" => raw.description = Some(value),
            "when_to_use" => raw.when_to_use = Some(value),
            "disable-model-invocation" => raw.is_for_people = Some(value == "true"),
            "allowed-tools" => raw.allowed_tools = Some(Names::One(value)),
            "tools" => raw.tools = Some(Names::One(value)),
            "disallowedTools" => raw.disallowed_tools = Some(Names::One(value)),
            "isolation" => raw.isolation = Some(value),
            "model" => raw.model = Some(value),
            "background" => raw.background = Some(value == "true"),
            "memory" => raw.memory = Some(value),
            _ => {}
        }
    }
    raw
}

/// Names with commas or spaces between them; those in parentheses belong to a name.
fn split_outside(names: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let is_between = |letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (letter == ',' || letter.is_whitespace())
    };
    names.split(is_between).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_read_also_where_it_is_no_yaml() {
        let (matter, text) = parted(
            "---\nname: release\ndescription: Cuts a release\ndisable-model-invocation: true\n\
             allowed-tools: Bash(git tag:*), Read Grep\n---\nDo it.\n",
        );
        assert_eq!((matter.name.as_deref(), matter.is_for_people), (Some("release"), true));
        assert_eq!(matter.allowed_tools, ["Bash(git tag:*)", "Read", "Grep"]);
        assert_eq!(text, "Do it.\n");
        let (matter, _) = parted("---\nname: x\ndescription: Use it when: always\n---\n");
        assert_eq!(matter.description.as_deref(), Some("Use it when: always"));
        assert_eq!(parted("no matter"), (FrontMatter::default(), "no matter"));
        let (matter, _) = parted("---\nallowed-tools:\n  - Read\n  - Edit(src/**)\n---\n");
        assert_eq!(matter.allowed_tools, ["Read", "Edit(src/**)"]);
    }
}
