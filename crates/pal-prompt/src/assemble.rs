//! Assembly: everything that is known of a session in, its prefix out, with what was left out and why.

use pal_model::{Card, Prefix, PrefixNotes};
use serde::Serialize;
use smol_str::SmolStr;

use crate::chain::{Prompts, system_blocks};
use crate::context;
use crate::section::{Section, SystemBlock, rendered};
use crate::sources::{Environment, Git, Instruction, LeftOut};
use crate::tools::{Catalogue, ToolSpec};

/// Everything that is known of a session before its first request.
#[derive(Clone, Debug)]
pub struct Assembly<'a> {
    /// The model that will be asked.
    pub card: &'a Card,
    /// The program and its version, in a few words; constant within a session.
    pub attribution: String,
    /// Whether a person is there.
    pub mode: Mode,
    /// Prompts that were given beside the default.
    pub prompts: Prompts,
    /// The machine and the place.
    pub environment: Environment,
    /// What else is true of this session.
    pub facts: SessionFacts,
    /// The repository.
    pub git: Git,
    /// The instruction files, far to near.
    pub instructions: Vec<Instruction>,
    /// Indexes of what is remembered of earlier sessions.
    pub memory: Vec<MemoryIndex>,
    /// The date, as it is shown to the model.
    pub date: Option<String>,
    /// The tools, in any order.
    pub tools: Vec<ToolSpec>,
    /// MCP servers by name, whose tools come and go while the session runs.
    pub servers: Vec<SmolStr>,
}

impl<'a> Assembly<'a> {
    /// A session of which nothing is known but its model: no tools, no files, the default prompt.
    pub fn bare(card: &'a Card) -> Assembly<'a> {
        Assembly {
            card,
            attribution: String::new(),
            mode: Mode::Interactive,
            prompts: Prompts::default(),
            environment: Environment::default(),
            facts: SessionFacts::default(),
            git: Git::Absent(String::from("nobody looked")),
            instructions: Vec::new(),
            memory: Vec::new(),
            date: None,
            tools: Vec::new(),
            servers: Vec::new(),
        }
    }
}

/// What sections are made of.
pub(crate) struct Material<'a> {
    pub(crate) assembly: &'a Assembly<'a>,
    pub(crate) catalogue: &'a Catalogue,
}

/// Whether a person is there to be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// A person reads along and answers.
    Interactive,
    /// A program gave the prompt and reads the last answer.
    Headless,
}

/// What is true of one session; only what is given is told to the model.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionFacts {
    /// Sentences of the program about this session, such as what its user permits. They are not defused.
    pub guidance: Vec<String>,
    /// The language to answer in.
    pub language: Option<String>,
    /// How answers shall be written.
    pub output_style: Option<OutputStyle>,
    /// The folder in which memories are kept, if the session may write some.
    pub memory: Option<String>,
    /// A folder for files that belong to nobody.
    pub scratchpad: Option<String>,
    /// What MCP servers say about themselves.
    pub mcp_instructions: Vec<McpInstructions>,
    /// Whether that is sent in the conversation, as it changes, instead of here.
    pub mcp_as_deltas: bool,
    /// Whether old tool results are cleared.
    pub is_clearing: bool,
    /// Tokens that the task may cost.
    pub token_budget: Option<u64>,
    /// A text that makes this prefix differ from all others, for whoever looks for what breaks a cache.
    pub cache_breaker: Option<String>,
}

/// A way of writing answers, as its author describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputStyle {
    /// Its name.
    pub name: String,
    /// What it asks for.
    pub text: String,
}

/// What an MCP server says about itself; its words, not defused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpInstructions {
    /// The server's name.
    pub server: String,
    /// What it says.
    pub text: String,
}

/// The index of what is remembered; not defused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryIndex {
    /// Its path, as it is shown to the model.
    pub path: String,
    /// What it says.
    pub text: String,
    /// What found no room in it, in words for the user; empty if nothing.
    pub left_out: String,
}

/// A prefix, and an account of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assembled {
    /// What stands before the messages.
    pub prefix: Prefix,
    /// What is not in it, and why.
    pub left_out: Vec<LeftOut>,
    /// The tools, to find and to name them by.
    pub catalogue: Catalogue,
    /// What is in it, in the order of the request: tools, sections, context.
    pub parts: Vec<PartNote>,
}

/// A part of a prefix.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PartNote {
    /// What sort of part it is.
    pub category: PartCategory,
    /// Its name or path.
    pub name: String,
    /// Bytes of its text.
    pub bytes: u64,
    /// Characters of its text.
    pub characters: u64,
    /// Why it is there.
    pub reason: String,
}

/// What sort of part of a prefix something is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PartCategory {
    /// A tool's definition.
    Tool,
    /// A section of the system prompt.
    Section,
    /// An instruction file.
    Instruction,
    /// The index of memory.
    Memory,
    /// The date.
    Date,
}

impl PartNote {
    pub(crate) fn new(category: PartCategory, name: &str, text: &str, reason: &str) -> PartNote {
        PartNote {
            category,
            name: name.to_owned(),
            bytes: text.len() as u64,
            characters: text.chars().count() as u64,
            reason: reason.to_owned(),
        }
    }
}

/// Puts together what stands before the messages of a session. It does not fail: what does not fit is left out and
/// reported.
///
/// ```
/// use pal_model::Cards;
/// use pal_prompt::{Assembly, Instruction, InstructionScope, assemble, built_in_tools};
///
/// let card = Cards::shipped().find("claude-opus-5-5").card;
/// let assembled = assemble(&Assembly {
///     tools: built_in_tools(),
///     instructions: vec![Instruction {
///         path: "AGENTS.md".into(),
///         scope: InstructionScope::Project,
///         included_by: None,
///         reason: "in the working directory".into(),
///         text: "Run the tests before you commit.".into(),
///     }],
///     ..Assembly::bare(&card)
/// });
/// assert_eq!(assembled.parts[0].name, "Agent");
/// assert_eq!(assembled.parts.last().unwrap().name, "AGENTS.md");
/// assert!(assembled.prefix.notes.system[1].is_static);
/// assert_eq!(assembled.left_out[0].what, "git");
/// ```
pub fn assemble(assembly: &Assembly<'_>) -> Assembled {
    let catalogue = Catalogue::new(&assembly.tools);
    let catalogue = if assembly.servers.is_empty() { catalogue } else { catalogue.expecting_late() };
    let mut left_out = catalogue.left_out().to_vec();
    let mut parts = catalogue.parts(assembly.card);
    let blocks = system_blocks(&Material { assembly, catalogue: &catalogue }, &mut left_out);
    parts.extend(section_parts(&blocks));
    let (system, notes) = rendered(blocks);
    let context = context::user_context(assembly, &mut left_out);
    parts.extend(context.parts);
    let prefix = Prefix {
        system,
        tools: catalogue.rendered(assembly.card),
        context: context.content,
        unseen_tokens: 0,
        notes: PrefixNotes { system: notes, sources: context.sources },
    };
    Assembled { prefix, left_out, catalogue, parts }
}

fn section_parts(blocks: &[SystemBlock]) -> Vec<PartNote> {
    let note = |block: &SystemBlock, section: &Section| {
        let reason = if block.is_static { "the same for everybody" } else { "of this session" };
        PartNote::new(PartCategory::Section, section.name, &section.text, reason)
    };
    let sections =
        blocks.iter().flat_map(|block| block.sections.iter().map(move |section| note(block, section)));
    sections.filter(|part| part.bytes > 0).collect()
}
