//! Assembles the prefix of a session, and reports what was left out and why.

use pal_model::{PrefixNotes, PromptPrefix};
use smol_str::SmolStr;

use crate::prefix_inputs::{PrefixInputs, SectionInputs};
use crate::prefix_parts::{PrefixOmission, PrefixPart, PrefixPartKind};
use crate::prefix_profile::PrefixProfile;
use crate::system_prompt_chain::system_blocks;
use crate::system_section::{SystemBlock, SystemSection, render_blocks};
use crate::tools::ToolCatalog;
use crate::user_context;

/// A prefix, and an account of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssembledPrefix {
    /// The prefix.
    pub prefix: PromptPrefix,
    /// Omissions, with reasons.
    pub left_out: Vec<PrefixOmission>,
    /// The tools, to find and to name them by.
    pub catalog: ToolCatalog,
    /// Parts in the order of the request: tools, sections, context.
    pub parts: Vec<PrefixPart>,
}

/// Puts together what stands before the messages of a session. It does not fail: what does not fit is left out and
/// reported.
///
/// ```
/// use pal_model::ModelCatalog;
/// use pal_prompt::{PrefixInputs, InstructionFile, InstructionScope, assemble, built_in_tools};
///
/// let card = ModelCatalog::built_in().find("claude-opus-5-5").card;
/// let assembled = assemble(&PrefixInputs {
///     tools: built_in_tools(),
///     instructions: vec![InstructionFile {
///         path: "AGENTS.md".into(),
///         scope: InstructionScope::Project,
///         included_by: None,
///         reason: "in the working directory".into(),
///         text: "Run the tests before you commit.".into(),
///     }],
///     ..PrefixInputs::for_card(&card)
/// });
/// assert_eq!(assembled.parts[0].name, "Agent");
/// assert_eq!(assembled.parts.last().unwrap().name, "AGENTS.md");
/// assert!(assembled.prefix.notes.system[1].is_static);
/// assert_eq!(assembled.left_out[0].what, "git");
/// ```
pub fn assemble(assembly: &PrefixInputs<'_>) -> AssembledPrefix {
    let profile = assembly.profile();
    let catalog = ToolCatalog::for_profile(&assembly.tools, profile);
    let catalog = if assembly.servers.is_empty() { catalog } else { catalog.expect_late_tools() };
    let mut left_out = catalog.left_out().to_vec();
    let mut parts = catalog.parts(assembly.card);
    let blocks = system_blocks(&SectionInputs { assembly, catalog: &catalog }, &mut left_out);
    parts.extend(section_parts(&blocks));
    let (system, notes) = render_blocks(blocks);
    let context = user_context::build_user_context(assembly, &mut left_out);
    parts.extend(context.parts);
    let prefix = PromptPrefix {
        system,
        tools: catalog.render_tools(assembly.card),
        context: context.content,
        unseen_tokens: 0,
        notes: PrefixNotes {
            system: notes,
            sources: context.sources,
            fills_unseen: false,
            // Older programs know only the full profile, which goes unnamed.
            profile: (profile != PrefixProfile::Full).then(|| SmolStr::new_static(profile.name())),
        },
    };
    AssembledPrefix { prefix, left_out, catalog, parts }
}

fn section_parts(blocks: &[SystemBlock]) -> Vec<PrefixPart> {
    let note = |block: &SystemBlock, section: &SystemSection| {
        let reason = if block.is_static { "the same for everybody" } else { "of this session" };
        PrefixPart::new(PrefixPartKind::Section, section.name, &section.text, reason)
    };
    let sections =
        blocks.iter().flat_map(|block| block.sections.iter().map(move |section| note(block, section)));
    sections.filter(|part| part.bytes > 0).collect()
}
