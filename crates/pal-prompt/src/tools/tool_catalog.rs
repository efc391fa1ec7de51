//! Tool catalog: a session's tools in their fixed order, and the rendered block of a request.

use std::collections::BTreeSet;

use pal_model::{ModelCard, SharedText, escape_into};
use smol_str::SmolStr;

use super::built_in::{call_tool, tool_in_profile, tool_search};
use super::wire_names::{pick_free_name, plain_name};
use super::{ToolOrigin, ToolSpec, tool_schema};
use crate::defused_text::{NAME_MAX, defuse_block, one_line, split_at_chars};
use crate::prefix_parts::{PrefixOmission, PrefixPart, PrefixPartKind};
use crate::prefix_profile::PrefixProfile;

/// Most characters of a description that a server gives.
const DESCRIPTION_MAX: usize = 10_000;

/// A tool that has a name on the wire and a schema that providers take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CatalogTool {
    /// Its name on the wire.
    pub wire_name: SmolStr,
    /// As it was described.
    pub spec: ToolSpec,
    /// Its description as it is sent.
    pub(crate) description: String,
    /// Its schema as it is sent.
    schema: SharedText,
}

/// A session's tools: built-in ones by name, then those of servers by server and name. Behind them are late ones, which
/// come and go while the session runs: no request lists them, they are found and called like deferred ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ToolCatalog {
    tools: Vec<CatalogTool>,
    search: Option<CatalogTool>,
    dispatcher: Option<CatalogTool>,
    late: Vec<CatalogTool>,
    /// Lists the tools that reach deferred tools, even if there are none yet.
    expects_late: bool,
    profile: PrefixProfile,
    left_out: Vec<PrefixOmission>,
}

impl ToolCatalog {
    /// Sorts and names the tools, and leaves out what no provider would take. The order that they are given in does not
    /// matter.
    pub fn new(specs: &[ToolSpec]) -> ToolCatalog {
        ToolCatalog::for_profile(specs, PrefixProfile::Full)
    }

    /// The same for a profile: the lean one shortens the core tools and defers all others.
    pub fn for_profile(specs: &[ToolSpec], profile: PrefixProfile) -> ToolCatalog {
        let specs: Vec<ToolSpec> = specs.iter().map(|spec| tool_in_profile(spec, profile)).collect();
        let mut sorted: Vec<&ToolSpec> = specs.iter().collect();
        sorted.sort_by(|one, other| sort_key(one).cmp(&sort_key(other)));
        let mut catalog = ToolCatalog { profile, ..ToolCatalog::default() };
        // The two tools that reach deferred ones are ours; another tool with such a name does not replace them.
        let (search, dispatcher) = (tool_search(), call_tool());
        let mut taken: BTreeSet<SmolStr> = [search.name, dispatcher.name].into();
        let mut before: Option<&ToolSpec> = None;
        for spec in sorted {
            let is_repeated = before.is_some_and(|before| is_same(before, spec));
            before = Some(spec);
            match CatalogTool::new(spec, is_repeated, &taken) {
                Ok(tool) => {
                    taken.insert(tool.wire_name.clone());
                    catalog.tools.push(tool);
                }
                Err(why) => catalog.left_out.push(PrefixOmission { what: describe_tool(spec), why }),
            }
        }
        if catalog.deferred().next().is_some() {
            catalog.add_search_tools();
        }
        catalog
    }

    /// The same for a session whose servers may offer tools at any time. The ways to them stand in the list from the beginning,
    /// so that it stays as it is whatever servers do.
    pub fn expect_late_tools(mut self) -> ToolCatalog {
        self.add_search_tools();
        self.expects_late = true;
        self
    }

    /// Takes in which tools servers offer now, in the place of those that they offered before.
    pub fn set_late_tools(&mut self, specs: &[ToolSpec]) {
        let mut sorted: Vec<&ToolSpec> = specs.iter().collect();
        sorted.sort_by(|one, other| sort_key(one).cmp(&sort_key(other)));
        sorted.dedup_by(|one, other| is_same(one, other));
        let own = [tool_search().name, call_tool().name];
        let mut taken: BTreeSet<SmolStr> =
            self.tools.iter().map(|tool| tool.wire_name.clone()).chain(own).collect();
        self.late.clear();
        for spec in sorted {
            // Tools that providers would refuse are left out.
            let Ok(tool) = CatalogTool::new(spec, false, &taken) else { continue };
            taken.insert(tool.wire_name.clone());
            self.late.push(tool);
        }
    }

    /// The tools that servers offer now.
    pub fn late_tools(&self) -> &[CatalogTool] {
        &self.late
    }

    fn add_search_tools(&mut self) {
        let own = |spec: &ToolSpec| {
            CatalogTool::new(&tool_in_profile(spec, self.profile), false, &BTreeSet::new()).ok()
        };
        (self.search, self.dispatcher) = (own(&tool_search()), own(&call_tool()));
    }

    /// The profile of the catalog.
    pub fn profile(&self) -> PrefixProfile {
        self.profile
    }

    /// All tools, in order, without late ones and the two that lead to deferred ones.
    pub fn tools(&self) -> &[CatalogTool] {
        &self.tools
    }

    /// The tools that a model learns of only when it looks for them.
    pub fn deferred(&self) -> impl Iterator<Item = &CatalogTool> {
        self.tools.iter().filter(|tool| tool.spec.is_deferred)
    }

    /// The tool with this name on the wire.
    pub fn find_tool(&self, wire_name: &str) -> Option<&CatalogTool> {
        self.all_tools().find(|tool| tool.wire_name == wire_name)
    }

    /// All tools, late ones last.
    pub(crate) fn all_tools(&self) -> impl Iterator<Item = &CatalogTool> {
        self.tools.iter().chain(&self.late)
    }

    /// Those that a model learns of only when it looks for them, late ones last.
    pub(crate) fn hidden_tools(&self) -> impl Iterator<Item = &CatalogTool> {
        self.deferred().chain(&self.late)
    }

    /// Omitted tools, with reasons.
    pub fn left_out(&self) -> &[PrefixOmission] {
        &self.left_out
    }

    /// The tools block of a request: a JSON array.
    pub fn render_tools(&self, card: &ModelCard) -> SharedText {
        let listed: Vec<String> = self.listed(card).map(|tool| tool.listing(card)).collect();
        SharedText::from(format!("[{}]", listed.join(",")))
    }

    /// Rendered tools.
    pub(crate) fn parts(&self, card: &ModelCard) -> Vec<PrefixPart> {
        let part = |tool: &CatalogTool| {
            PrefixPart::new(PrefixPartKind::Tool, &tool.wire_name, &tool.listing(card), &tool.reason())
        };
        self.listed(card).map(part).collect()
    }

    /// The tools that the block lists, in order. Where deferred tools cannot be marked as such they stay out of it.
    fn listed(&self, card: &ModelCard) -> impl Iterator<Item = &CatalogTool> {
        let marks = card.can.tool_search;
        let calls = self.expects_late || !marks;
        let own = self.search.iter().chain(self.dispatcher.iter().filter(move |_| calls));
        let mut listed: Vec<&CatalogTool> =
            self.tools.iter().filter(move |tool| marks || !tool.spec.is_deferred).chain(own).collect();
        listed.sort_by(|one, other| sort_key(&one.spec).cmp(&sort_key(&other.spec)));
        listed.into_iter()
    }
}

impl CatalogTool {
    fn new(spec: &ToolSpec, is_repeated: bool, taken: &BTreeSet<SmolStr>) -> Result<CatalogTool, String> {
        if is_repeated {
            return Err(String::from("another tool of this name is there"));
        }
        if spec.name.is_empty() || spec.origin.server() == Some("") {
            return Err(String::from("it has no name"));
        }
        let schema = tool_schema::render_schema(&spec.schema)?;
        let wire_name = pick_free_name(spec, taken).ok_or("another tool has its name on the wire")?;
        if spec.origin == ToolOrigin::BuiltIn && wire_name != spec.name {
            return Err(String::from("its name is not one that providers take, or is taken"));
        }
        Ok(CatalogTool { wire_name, spec: spec.clone(), description: description(spec), schema })
    }

    /// The definition, as JSON.
    pub(crate) fn definition(&self) -> String {
        let mut json = String::from(r#"{"name":"#);
        escape_into(&mut json, &self.wire_name);
        if !self.description.is_empty() {
            json.push_str(r#","description":"#);
            escape_into(&mut json, &self.description);
        }
        json.push_str(r#","input_schema":"#);
        json.push_str(&self.schema);
        json.push('}');
        json
    }

    /// The definition as the block lists it.
    fn listing(&self, card: &ModelCard) -> String {
        let mut json = self.definition();
        if self.spec.is_deferred && card.can.tool_search {
            json.truncate(json.len() - 1);
            json.push_str(r#","defer_loading":true}"#);
        }
        json
    }

    fn reason(&self) -> String {
        let origin = match self.spec.origin.server() {
            None => String::from("built in"),
            Some(server) => format!("of the MCP server {}", one_line(server, NAME_MAX)),
        };
        let renamed = match plain_name(&self.spec) == self.wire_name.as_str() {
            true => "",
            false => ", renamed because its name is too long or taken",
        };
        let deferred = if self.spec.is_deferred { ", deferred" } else { "" };
        format!("{origin}{deferred}{renamed}")
    }
}

/// A description as it is sent: ours as it is, because it may speak of guarded tags; a server's defused and bounded.
fn description(spec: &ToolSpec) -> String {
    if spec.origin == ToolOrigin::BuiltIn {
        return spec.description.trim().to_owned();
    }
    let (words, is_cut) = split_at_chars(&spec.description, DESCRIPTION_MAX);
    let cut = if is_cut { " […]" } else { "" };
    format!("{}{cut}", defuse_block(words))
}

/// Sort key of tools. After origin and name, the rest only makes the order total.
fn sort_key(spec: &ToolSpec) -> (&ToolOrigin, &str, &str, &str, bool) {
    (&spec.origin, &spec.name, &spec.description, spec.schema.as_str(), spec.is_deferred)
}

fn is_same(one: &ToolSpec, other: &ToolSpec) -> bool {
    (&one.origin, &one.name) == (&other.origin, &other.name)
}

fn describe_tool(spec: &ToolSpec) -> String {
    let name = one_line(&spec.name, NAME_MAX);
    match spec.origin.server() {
        None => format!("tool {name}"),
        Some(server) => format!("tool {name} of the MCP server {}", one_line(server, NAME_MAX)),
    }
}
