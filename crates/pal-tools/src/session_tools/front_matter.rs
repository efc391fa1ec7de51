//! Front matter of a skill or an agent definition.

use pal_model::split_front_matter;
use serde::Deserialize;

/// Parsed front matter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FrontMatter {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) when_to_use: Option<String>,
    /// True if only the user may invoke it.
    pub(super) is_for_people: bool,
    pub(super) allowed_tools: Vec<String>,
    /// Tools of an agent; `None` for all.
    pub(super) tools: Option<Vec<String>>,
    pub(super) disallowed_tools: Vec<String>,
    pub(super) isolation: Option<String>,
    pub(super) model: Option<String>,
    pub(super) background: bool,
    pub(super) memory: Option<String>,
}

#[derive(Deserialize, Default)]
struct RawFrontMatter {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    when_to_use: Option<String>,
    #[serde(default, rename = "disable-model-invocation")]
    is_for_people: Option<bool>,
    #[serde(default, rename = "allowed-tools")]
    allowed_tools: Option<NameList>,
    #[serde(default)]
    tools: Option<NameList>,
    #[serde(default, rename = "disallowedTools")]
    disallowed_tools: Option<NameList>,
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
enum NameList {
    One(String),
    Many(Vec<String>),
}

impl NameList {
    fn into_names(self) -> Vec<String> {
        match self {
            NameList::One(names) => split_outside(names.trim().trim_start_matches('[').trim_end_matches(']')),
            NameList::Many(names) => names,
        }
    }
}

/// Splits a file into front matter and text.
pub(super) fn split_definition(file: &str) -> (FrontMatter, &str) {
    let file = file.strip_prefix('\u{feff}').unwrap_or(file);
    let Some((matter, text)) = split_front_matter(file) else { return (FrontMatter::default(), file) };
    let raw: Option<RawFrontMatter> = serde_saphyr::from_str(matter).ok();
    let raw = raw.unwrap_or_else(|| parse_lines(matter));
    let front_matter = FrontMatter {
        name: raw.name,
        description: raw.description,
        when_to_use: raw.when_to_use,
        is_for_people: raw.is_for_people.unwrap_or(false),
        allowed_tools: raw.allowed_tools.map(NameList::into_names).unwrap_or_default(),
        // A star stands for all tools.
        tools: raw.tools.map(NameList::into_names).filter(|names| names.iter().all(|name| name != "*")),
        disallowed_tools: raw.disallowed_tools.map(NameList::into_names).unwrap_or_default(),
        isolation: raw.isolation,
        model: raw.model,
        background: raw.background.unwrap_or(false),
        memory: raw.memory,
    };
    (front_matter, text)
}

/// Parses front matter that is not valid YAML line by line: `description: Use it when: always` has one colon
/// too many.
fn parse_lines(matter: &str) -> RawFrontMatter {
    let mut raw = RawFrontMatter::default();
    for (key, value) in matter.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim().trim_matches(['"', '\'']).to_owned();
        match key.trim_end() {
            "name" => raw.name = Some(value),
            "description" => raw.description = Some(value),
            "when_to_use" => raw.when_to_use = Some(value),
            "disable-model-invocation" => raw.is_for_people = Some(value == "true"),
            "allowed-tools" => raw.allowed_tools = Some(NameList::One(value)),
            "tools" => raw.tools = Some(NameList::One(value)),
            "disallowedTools" => raw.disallowed_tools = Some(NameList::One(value)),
            "isolation" => raw.isolation = Some(value),
            "model" => raw.model = Some(value),
            "background" => raw.background = Some(value == "true"),
            "memory" => raw.memory = Some(value),
            _ => {}
        }
    }
    raw
}

/// Splits names at commas and spaces, except inside parentheses.
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
    fn front_matter_that_is_not_yaml_is_read_line_by_line() {
        let (matter, text) = split_definition(
            "---\nname: release\ndescription: Cuts a release\ndisable-model-invocation: true\n\
             allowed-tools: Bash(git tag:*), Read Grep\n---\nDo it.\n",
        );
        assert_eq!((matter.name.as_deref(), matter.is_for_people), (Some("release"), true));
        assert_eq!(matter.allowed_tools, ["Bash(git tag:*)", "Read", "Grep"]);
        assert_eq!(text, "Do it.\n");
        let (matter, _) = split_definition("---\nname: x\ndescription: Use it when: always\n---\n");
        assert_eq!(matter.description.as_deref(), Some("Use it when: always"));
        assert_eq!(split_definition("no matter"), (FrontMatter::default(), "no matter"));
        let (matter, _) = split_definition("---\nallowed-tools:\n  - Read\n  - Edit(src/**)\n---\n");
        assert_eq!(matter.allowed_tools, ["Read", "Edit(src/**)"]);
    }
}
