//! Sections that depend on the session. A section without data is left out.

use pal_model::ModelCard;
use smol_str::SmolStr;

use crate::defused_text::{NAME_MAX, defuse_block, format_count, one_line, quote_lines, split_at_chars};
use crate::prefix_inputs::SectionInputs;
use crate::prefix_parts::PrefixOmission;
use crate::prompt_inputs::{McpInstructions, PromptMode};
use crate::tools::ToolCatalog;

/// Maximum characters of one server's instructions.
const SERVER_WORDS_MAX: usize = 4_000;

/// Most characters of a style's description.
const STYLE_MAX: usize = 20_000;

pub(crate) fn attribution(material: &SectionInputs<'_>, _: &mut Vec<PrefixOmission>) -> Option<String> {
    let text = one_line(&material.assembly.attribution, NAME_MAX);
    (!text.is_empty()).then_some(text)
}

pub(crate) fn mode(material: &SectionInputs<'_>, _: &mut Vec<PrefixOmission>) -> Option<String> {
    let text = match material.assembly.mode {
        PromptMode::Interactive => include_str!("texts/interactive.md"),
        PromptMode::Headless => include_str!("texts/headless.md"),
    };
    Some(text.trim().to_owned())
}

pub(crate) fn cache_breaker(material: &SectionInputs<'_>, _: &mut Vec<PrefixOmission>) -> Option<String> {
    let text = material.assembly.facts.cache_breaker.as_ref()?;
    Some(format!("[cache breaker: {}]", one_line(text, NAME_MAX)))
}

pub(crate) fn guidance(material: &SectionInputs<'_>, _: &mut Vec<PrefixOmission>) -> Option<String> {
    let mut points = material.assembly.facts.guidance.clone();
    points.extend(material.catalog.guidance(material.assembly.card));
    points.extend(servers(&material.assembly.servers));
    section("This session", &points)
}

/// Names of the MCP servers, without their own words or anything that could change.
fn servers(names: &[SmolStr]) -> Option<String> {
    let names: Vec<String> = names.iter().map(|name| one_line(name, 100)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "MCP servers of this session: {}. Their tools are not in your list and may come later: ToolSearch finds them, CallTool \
             calls them.",
            names.join(", ")
        )
    })
}

pub(crate) fn environment(material: &SectionInputs<'_>, _: &mut Vec<PrefixOmission>) -> Option<String> {
    let around = &material.assembly.environment;
    let mut points = Vec::new();
    let mut point = |name: &str, value: &str| {
        if !value.is_empty() {
            points.push(format!("{name}: {}", one_line(value, NAME_MAX)));
        }
    };
    point("Working directory", &around.directory);
    for directory in &around.added {
        point("Also accessible", directory);
    }
    if !around.directory.is_empty() {
        point("In a git repository", if around.is_repository { "yes" } else { "no" });
    }
    let version = around.platform_version.as_deref().unwrap_or_default();
    point("Platform", format!("{} {version}", around.platform).trim());
    point("Shell", around.shell.as_deref().unwrap_or_default());
    // Without a place nothing is known of the surroundings, and the model's name alone is no environment.
    if !points.is_empty() {
        points.push(format!("Model: {}", one_line(&material.assembly.card.model, NAME_MAX)));
    }
    section("Environment", &points)
}

pub(crate) fn memory(material: &SectionInputs<'_>, _: &mut Vec<PrefixOmission>) -> Option<String> {
    let folder = one_line(material.assembly.facts.memory.as_ref()?, NAME_MAX);
    Some(include_str!("texts/memory_place.md").trim().replace("{folder}", &folder))
}

pub(crate) fn language(material: &SectionInputs<'_>, _: &mut Vec<PrefixOmission>) -> Option<String> {
    let language = one_line(material.assembly.facts.language.as_ref()?, 100);
    let text = format!(
        "# Language\n\nWrite to the user in {language}. Code, identifiers, commands and quotations stay in the language that they are in; \
         comments and documents follow the language of the project."
    );
    Some(text)
}

pub(crate) fn output_style(
    material: &SectionInputs<'_>,
    left_out: &mut Vec<PrefixOmission>,
) -> Option<String> {
    let style = material.assembly.facts.output_style.as_ref()?;
    let name = one_line(&style.name, 100);
    let (text, is_cut) = split_at_chars(&style.text, STYLE_MAX);
    if is_cut {
        left_out.push(PrefixOmission {
            what: format!("end of the output style {name}"),
            why: format!("it is longer than {STYLE_MAX} characters"),
        });
    }
    Some(format!("# Output style: {name}\n\n{}", defuse_block(text)))
}

pub(crate) fn scratchpad(material: &SectionInputs<'_>, _: &mut Vec<PrefixOmission>) -> Option<String> {
    let folder = one_line(material.assembly.facts.scratchpad.as_ref()?, NAME_MAX);
    let text = format!(
        "# Scratchpad\n\nTemporary files (scripts to try something, intermediate results, downloads) go into this folder of this \
         session, not into the project and not into a shared temporary folder: {folder}"
    );
    Some(text)
}

pub(crate) fn mcp_instructions(
    material: &SectionInputs<'_>,
    left_out: &mut Vec<PrefixOmission>,
) -> Option<String> {
    let facts = &material.assembly.facts;
    if facts.mcp_as_deltas {
        let why = "they are sent in the conversation, as they change";
        left_out.extend(facts.mcp_instructions.iter().map(|given| PrefixOmission {
            what: format!("instructions of the MCP server {}", one_line(&given.server, NAME_MAX)),
            why: why.to_owned(),
        }));
        return None;
    }
    let mut given: Vec<&McpInstructions> =
        facts.mcp_instructions.iter().filter(|given| !given.text.trim().is_empty()).collect();
    given.sort_by(|one, other| (&one.server, &one.text).cmp(&(&other.server, &other.text)));
    if given.is_empty() {
        return None;
    }
    let mut text = String::from(include_str!("texts/servers.md").trim());
    for given in given {
        let server = one_line(&given.server, NAME_MAX);
        let (words, is_cut) = split_at_chars(&given.text, SERVER_WORDS_MAX);
        text.push_str(&format!("\n\n## {server}\n\n{}", quote_lines(&defuse_block(words))));
        if is_cut {
            text.push_str(&format!("\n\n[Cut after {SERVER_WORDS_MAX} characters.]"));
            left_out.push(PrefixOmission {
                what: format!("end of the instructions of the MCP server {server}"),
                why: format!("they are longer than {SERVER_WORDS_MAX} characters"),
            });
        }
    }
    Some(text)
}

pub(crate) fn clearing(material: &SectionInputs<'_>, _: &mut Vec<PrefixOmission>) -> Option<String> {
    let text = match material.assembly.facts.is_clearing {
        false => return None,
        true if clears_at_provider(material.assembly.card) => include_str!("texts/clearing_provider.md"),
        true => include_str!("texts/clearing.md"),
    };
    Some(text.trim().to_owned())
}

pub(crate) fn token_budget(material: &SectionInputs<'_>, _: &mut Vec<PrefixOmission>) -> Option<String> {
    let tokens = material.assembly.facts.token_budget?;
    let text = format!(
        "# Token budget\n\nThis task may use about {tokens} tokens, everything read and written together. Plan with it: do first what \
         matters most, and leave enough to verify the result and to report. Nearing the end of it, bring the work into a state that is \
         whole and say what is left."
    );
    Some(text)
}

fn clears_at_provider(card: &ModelCard) -> bool {
    card.can.cache_edits || card.can.context_management.iter().any(|edit| edit.starts_with("clear_tool_uses"))
}

/// A heading and points under it; none without points.
fn section(heading: &str, points: &[String]) -> Option<String> {
    let points: Vec<String> = points.iter().map(|point| format!("- {point}")).collect();
    (!points.is_empty()).then(|| format!("# {heading}\n\n{}", points.join("\n")))
}

impl ToolCatalog {
    /// Guidance about tools that are not in the list.
    pub(crate) fn guidance(&self, card: &ModelCard) -> Option<String> {
        let deferred: Vec<_> = self.deferred().collect();
        if deferred.is_empty() {
            return None;
        }
        let mut servers: Vec<String> = deferred
            .iter()
            .filter_map(|tool| tool.spec.origin.server())
            .map(|server| one_line(server, 100))
            .collect();
        servers.dedup();
        let of =
            if servers.is_empty() { String::new() } else { format!(" (servers: {})", servers.join(", ")) };
        let way = if card.can.tool_search { "like any other tool" } else { "through CallTool" };
        Some(format!(
            "ToolSearch finds {} beyond your list{of}, to be called {way} once found. Before you say that something cannot be \
             done here, look there.",
            format_count(deferred.len(), "tool")
        ))
    }
}
