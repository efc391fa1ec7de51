//! Which prompt a session has: the first that applies of an override, a coordinator's, an agent's own, the user's
//! custom one and the default.
//!
//! A prompt that replaces the default is one block. It says how to work; how reminders work, where the session works,
//! where memories are kept and what the repository looked like follow it, because no session is safe or at home without them. Only an override
//! stands alone.

use crate::LeftOut;
use crate::assemble::Material;
use crate::registry::{DEFAULT_SECTIONS, DefaultSection, ENVIRONMENT, GIT, MEMORY, REMINDERS};
use crate::section::{Lifetime, Place, Section, SystemBlock, default_blocks};

/// Prompts that were given for a session, beside the default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Prompts {
    /// Stands alone: nothing else is in the system prompt.
    pub override_all: Option<String>,
    /// The prompt of a session that directs others.
    pub coordinator: Option<String>,
    /// The prompt of the agent that the session runs as.
    pub agent: Option<AgentPrompt>,
    /// The user's own.
    pub custom: Option<String>,
    /// What follows whichever applies, except an override.
    pub appended: Option<String>,
}

/// An agent's own prompt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentPrompt {
    /// What it says.
    pub text: String,
    /// Whether the session acts by itself; the text then follows the default instead of replacing it.
    pub is_proactive: bool,
}

/// The blocks of the system prompt.
pub(crate) fn system_blocks(material: &Material<'_>, left_out: &mut Vec<LeftOut>) -> Vec<SystemBlock> {
    let prompts = &material.assembly.prompts;
    let chosen = Chosen::of(prompts);
    report_unused(prompts, &chosen, left_out);
    if let Chosen::Alone(text) = chosen {
        return vec![one_block(vec![own("override", text)])];
    }
    let mut ending: Vec<Section> = prompts.appended.iter().map(|text| own("appended", text)).collect();
    ending.extend(GIT.section(material, left_out));
    let follower = match chosen {
        Chosen::Alone(_) => None,
        Chosen::Replacing(name, text) => {
            let mut sections = vec![own(name, text)];
            sections.extend(made(&[REMINDERS, ENVIRONMENT, MEMORY], material, left_out));
            sections.extend(ending);
            return vec![one_block(sections)];
        }
        Chosen::Default { follower } => follower.map(|text| own("agent", text)),
    };
    let mut sections = made(DEFAULT_SECTIONS, material, left_out);
    sections.extend(follower);
    sections.extend(ending);
    default_blocks(sections)
}

/// The prompt that applies.
enum Chosen<'a> {
    /// Nothing stands beside it.
    Alone(&'a str),
    /// It has a name and stands in place of the default.
    Replacing(&'static str, &'a str),
    /// The default, and what follows it.
    Default { follower: Option<&'a str> },
}

impl Chosen<'_> {
    fn of(prompts: &Prompts) -> Chosen<'_> {
        if let Some(text) = &prompts.override_all {
            return Chosen::Alone(text);
        }
        if let Some(text) = &prompts.coordinator {
            return Chosen::Replacing("coordinator", text);
        }
        match (&prompts.agent, &prompts.custom) {
            (Some(agent), _) if agent.is_proactive => Chosen::Default { follower: Some(&agent.text) },
            (Some(agent), _) => Chosen::Replacing("agent", &agent.text),
            (None, Some(text)) => Chosen::Replacing("custom", text),
            (None, None) => Chosen::Default { follower: None },
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Chosen::Alone(_) => "override",
            Chosen::Replacing(name, _) => name,
            Chosen::Default { .. } => "agent",
        }
    }
}

/// Reports every prompt that was given and is not used.
fn report_unused(prompts: &Prompts, chosen: &Chosen<'_>, left_out: &mut Vec<LeftOut>) {
    let is_alone = matches!(chosen, Chosen::Alone(_));
    let given = [
        ("coordinator", prompts.coordinator.is_some()),
        ("agent", prompts.agent.is_some()),
        ("custom", prompts.custom.is_some()),
        ("appended", prompts.appended.is_some() && is_alone),
    ];
    for (name, is_given) in given {
        if is_given && name != chosen.name() {
            let why = format!("the {} prompt comes first", chosen.name());
            left_out.push(LeftOut { what: format!("{name} prompt"), why });
        }
    }
}

fn made(list: &[DefaultSection], material: &Material<'_>, left_out: &mut Vec<LeftOut>) -> Vec<Section> {
    list.iter().filter_map(|section| section.section(material, left_out)).collect()
}

fn own(name: &'static str, text: &str) -> Section {
    Section { name, text: text.trim().to_owned(), place: Place::Dynamic, lifetime: Lifetime::Cached }
}

fn one_block(sections: Vec<Section>) -> SystemBlock {
    SystemBlock { sections, is_static: false, markable: true }
}
