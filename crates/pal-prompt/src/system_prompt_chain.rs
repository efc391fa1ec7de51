//! Chooses the system prompt of a session: the first that applies of an override, a coordinator's, an agent's own, the user's custom
//! one and the default.
//!
//! A prompt that replaces the default is one block with working instructions. The sections on reminders, the environment, memory and git
//! still follow it, because a session needs them to be safe. Only an override stands alone.

use pal_model::{PromptPrefix, array_items, member_string, object_fields};

use crate::prefix_inputs::SectionInputs;
use crate::prefix_parts::PrefixOmission;
use crate::prefix_profile::PrefixProfile;
use crate::prompt_inputs::PromptOverrides;
use crate::section_registry::{
    DEFAULT_SECTIONS, DefaultSection, ENVIRONMENT, GIT, LEAN_SECTIONS, MEMORY, REMINDERS,
};
use crate::system_section::{
    JOINT, SectionPlacement, SectionStability, SystemBlock, SystemSection, default_blocks,
};

/// Section of the user's own prompt.
const CUSTOM: &str = "custom";

/// Section of the text after the prompt.
const APPENDED: &str = "appended";

/// The blocks of the system prompt.
pub(crate) fn system_blocks(
    material: &SectionInputs<'_>,
    left_out: &mut Vec<PrefixOmission>,
) -> Vec<SystemBlock> {
    let prompts = &material.assembly.prompts;
    let chosen = PromptChoice::of(prompts);
    report_unused(prompts, &chosen, left_out);
    if let PromptChoice::Alone(text) = chosen {
        return vec![one_block(vec![own_section("override", text)])];
    }
    let mut ending: Vec<SystemSection> =
        prompts.appended.iter().map(|text| own_section(APPENDED, text)).collect();
    ending.extend(GIT.render(material, left_out));
    let follower = match chosen {
        PromptChoice::Alone(_) => None,
        PromptChoice::Replacing(name, text) => {
            let mut sections = vec![own_section(name, text)];
            sections.extend(render_sections(&[REMINDERS, ENVIRONMENT, MEMORY], material, left_out));
            sections.extend(ending);
            return vec![one_block(sections)];
        }
        PromptChoice::Default { follower } => follower.map(|text| own_section("agent", text)),
    };
    let list = match material.assembly.profile() {
        PrefixProfile::Full => DEFAULT_SECTIONS,
        PrefixProfile::Lean => LEAN_SECTIONS,
    };
    let mut sections = render_sections(list, material, left_out);
    sections.extend(follower);
    sections.extend(ending);
    default_blocks(sections)
}

impl PromptOverrides {
    /// Returns the user's own prompts that the prefix of a session contains, to build its next one from.
    pub fn recorded_in(prefix: &PromptPrefix) -> PromptOverrides {
        let blocks = array_items(&prefix.system).unwrap_or_default();
        let mut found = PromptOverrides::default();
        for (block, note) in blocks.into_iter().zip(&prefix.notes.system) {
            let fields = object_fields(block).unwrap_or_default();
            let text = member_string(&fields, "text").unwrap_or_default();
            let mut from = 0;
            for section in &note.sections {
                let end = from + section.bytes as usize;
                let own = || text.get(from..end).map(str::to_owned);
                match section.name.as_str() {
                    CUSTOM => found.custom = own(),
                    APPENDED => found.appended = own(),
                    _ => {}
                }
                from = end + JOINT.len();
            }
        }
        found
    }
}

/// The prompt that applies.
enum PromptChoice<'a> {
    /// Replaces the whole system prompt.
    Alone(&'a str),
    /// A named prompt that replaces the default.
    Replacing(&'static str, &'a str),
    /// The default, and what follows it.
    Default { follower: Option<&'a str> },
}

impl PromptChoice<'_> {
    fn of(prompts: &PromptOverrides) -> PromptChoice<'_> {
        if let Some(text) = &prompts.override_all {
            return PromptChoice::Alone(text);
        }
        if let Some(text) = &prompts.coordinator {
            return PromptChoice::Replacing("coordinator", text);
        }
        match (&prompts.agent, &prompts.custom) {
            (Some(agent), _) if agent.is_proactive => PromptChoice::Default { follower: Some(&agent.text) },
            (Some(agent), _) => PromptChoice::Replacing("agent", &agent.text),
            (None, Some(text)) => PromptChoice::Replacing(CUSTOM, text),
            (None, None) => PromptChoice::Default { follower: None },
        }
    }

    fn name(&self) -> &'static str {
        match self {
            PromptChoice::Alone(_) => "override",
            PromptChoice::Replacing(name, _) => name,
            PromptChoice::Default { .. } => "agent",
        }
    }
}

/// Reports every prompt that was given and is not used.
fn report_unused(prompts: &PromptOverrides, chosen: &PromptChoice<'_>, left_out: &mut Vec<PrefixOmission>) {
    let is_alone = matches!(chosen, PromptChoice::Alone(_));
    let given = [
        ("coordinator", prompts.coordinator.is_some()),
        ("agent", prompts.agent.is_some()),
        (CUSTOM, prompts.custom.is_some()),
        (APPENDED, prompts.appended.is_some() && is_alone),
    ];
    for (name, is_given) in given {
        if is_given && name != chosen.name() {
            let why = format!("the {} prompt comes first", chosen.name());
            left_out.push(PrefixOmission { what: format!("{name} prompt"), why });
        }
    }
}

fn render_sections(
    list: &[DefaultSection],
    material: &SectionInputs<'_>,
    left_out: &mut Vec<PrefixOmission>,
) -> Vec<SystemSection> {
    list.iter().filter_map(|section| section.render(material, left_out)).collect()
}

fn own_section(name: &'static str, text: &str) -> SystemSection {
    SystemSection {
        name,
        text: text.trim().to_owned(),
        place: SectionPlacement::Dynamic,
        lifetime: SectionStability::Cached,
    }
}

fn one_block(sections: Vec<SystemSection>) -> SystemBlock {
    SystemBlock { sections, is_static: false, markable: true }
}
