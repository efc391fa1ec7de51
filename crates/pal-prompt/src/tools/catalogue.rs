//! The catalogue: a session's tools in their fixed order, and the block that is sent.

use std::collections::BTreeSet;

use pal_model::{Card, Text, escape_into};
use smol_str::SmolStr;

use super::built_in::{call_tool, tool_search};
use super::names::{free_name, plain_name};
use super::{ToolOrigin, ToolSpec, schema};
use crate::LeftOut;
use crate::assemble::{PartCategory, PartNote};
use crate::words::{NAME_MOST, beginning, lines, one_line};

/// Most characters of a description that a server gives.
const DESCRIPTION_MOST: usize = 10_000;

/// A tool that has a name on the wire and a schema that providers take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tool {
    /// Its name on the wire.
    pub wire_name: SmolStr,
    /// As it was described.
    pub spec: ToolSpec,
    /// Its description as it is sent.
    pub(crate) description: String,
    /// Its schema as it is sent.
    schema: Text,
}

/// A session's tools: built-in ones by name, then those of servers by server and name. Behind them are late ones, which
/// come and go while the session runs: no request lists them, they are found and called like deferred ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Catalogue {
    tools: Vec<Tool>,
    search: Option<Tool>,
    dispatcher: Option<Tool>,
    late: Vec<Tool>,
    /// Whether the ways to late tools are listed, though none may be there yet.
    expects_late: bool,
    left_out: Vec<LeftOut>,
}

impl Catalogue {
    /// Sorts and names the tools, and leaves out what no provider would take. The order that they are given in does not
    /// matter.
    pub fn new(specs: &[ToolSpec]) -> Catalogue {
        let mut sorted: Vec<&ToolSpec> = specs.iter().collect();
        sorted.sort_by(|one, other| order(one).cmp(&order(other)));
        let mut catalogue = Catalogue::default();
        // The two ways to deferred tools are ours, whoever offers a tool of such a name.
        let (search, dispatcher) = (tool_search(), call_tool());
        let mut taken: BTreeSet<SmolStr> = [search.name, dispatcher.name].into();
        let mut before: Option<&ToolSpec> = None;
        for spec in sorted {
            let is_repeated = before.is_some_and(|before| is_same(before, spec));
            before = Some(spec);
            match Tool::new(spec, is_repeated, &taken) {
                Ok(tool) => {
                    taken.insert(tool.wire_name.clone());
                    catalogue.tools.push(tool);
                }
                Err(why) => catalogue.left_out.push(LeftOut { what: what(spec), why }),
            }
        }
        if catalogue.deferred().next().is_some() {
            catalogue.add_ways();
        }
        catalogue
    }

    /// The same for a session whose servers may offer tools at any time. The ways to them stand in the list from the beginning,
    /// so that it stays as it is whatever servers do.
    pub fn expecting_late(mut self) -> Catalogue {
        self.add_ways();
        self.expects_late = true;
        self
    }

    /// Takes in which tools servers offer now, in the place of those that they offered before.
    pub fn set_late(&mut self, specs: &[ToolSpec]) {
        let mut sorted: Vec<&ToolSpec> = specs.iter().collect();
        sorted.sort_by(|one, other| order(one).cmp(&order(other)));
        sorted.dedup_by(|one, other| is_same(one, other));
        let own = [tool_search().name, call_tool().name];
        let mut taken: BTreeSet<SmolStr> =
            self.tools.iter().map(|tool| tool.wire_name.clone()).chain(own).collect();
        self.late.clear();
        for spec in sorted {
            // What providers would not take is not offered either.
            let Ok(tool) = Tool::new(spec, false, &taken) else { continue };
            taken.insert(tool.wire_name.clone());
            self.late.push(tool);
        }
    }

    /// The tools that servers offer now.
    pub fn late(&self) -> &[Tool] {
        &self.late
    }

    fn add_ways(&mut self) {
        let own = |spec: &ToolSpec| Tool::new(spec, false, &BTreeSet::new()).ok();
        self.search = own(&tool_search());
        self.dispatcher = own(&call_tool());
    }

    /// All tools, in order, without late ones and the two that lead to deferred ones.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The tools that a model learns of only when it looks for them.
    pub fn deferred(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter().filter(|tool| tool.spec.is_deferred)
    }

    /// The tool with this name on the wire.
    pub fn named(&self, wire_name: &str) -> Option<&Tool> {
        self.all().find(|tool| tool.wire_name == wire_name)
    }

    /// All tools, late ones last.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter().chain(&self.late)
    }

    /// Those that a model learns of only when it looks for them, late ones last.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = &Tool> {
        self.deferred().chain(&self.late)
    }

    /// What is not in the catalogue, and why.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The tools block of a request: a JSON array.
    pub fn rendered(&self, card: &Card) -> Text {
        let listed: Vec<String> = self.listed(card).map(|tool| tool.listing(card)).collect();
        Text::from(format!("[{}]", listed.join(",")))
    }

    /// What the block is made of.
    pub(crate) fn parts(&self, card: &Card) -> Vec<PartNote> {
        let part = |tool: &Tool| {
            PartNote::new(PartCategory::Tool, &tool.wire_name, &tool.listing(card), &tool.reason())
        };
        self.listed(card).map(part).collect()
    }

    /// The tools that the block lists, in order. Where deferred tools cannot be marked as such they stay out of it.
    fn listed(&self, card: &Card) -> impl Iterator<Item = &Tool> {
        let marks = card.can.tool_search;
        let calls = self.expects_late || !marks;
        let own = self.search.iter().chain(self.dispatcher.iter().filter(move |_| calls));
        let mut listed: Vec<&Tool> =
            self.tools.iter().filter(move |tool| marks || !tool.spec.is_deferred).chain(own).collect();
        listed.sort_by(|one, other| order(&one.spec).cmp(&order(&other.spec)));
        listed.into_iter()
    }
}

impl Tool {
    fn new(spec: &ToolSpec, is_repeated: bool, taken: &BTreeSet<SmolStr>) -> Result<Tool, String> {
        if is_repeated {
            return Err(String::from("another tool of this name is there"));
        }
        if spec.name.is_empty() || spec.origin.server() == Some("") {
            return Err(String::from("it has no name"));
        }
        let schema = schema::rendered(&spec.schema)?;
        let wire_name = free_name(spec, taken).ok_or("another tool has its name on the wire")?;
        if spec.origin == ToolOrigin::BuiltIn && wire_name != spec.name {
            return Err(String::from("its name is not one that providers take, or is taken"));
        }
        Ok(Tool { wire_name, spec: spec.clone(), description: description(spec), schema })
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
    fn listing(&self, card: &Card) -> String {
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
            Some(server) => format!("of the MCP server {}", one_line(server, NAME_MOST)),
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
    let (words, is_cut) = beginning(&spec.description, DESCRIPTION_MOST);
    let cut = if is_cut { " […]" } else { "" };
    format!("{}{cut}", lines(words))
}

/// What orders tools. Behind origin and name it is only there so that no order is left to chance.
fn order(spec: &ToolSpec) -> (&ToolOrigin, &str, &str, &str, bool) {
    (&spec.origin, &spec.name, &spec.description, spec.schema.as_str(), spec.is_deferred)
}

fn is_same(one: &ToolSpec, other: &ToolSpec) -> bool {
    (&one.origin, &one.name) == (&other.origin, &other.name)
}

fn what(spec: &ToolSpec) -> String {
    let name = one_line(&spec.name, NAME_MOST);
    match spec.origin.server() {
        None => format!("tool {name}"),
        Some(server) => format!("tool {name} of the MCP server {}", one_line(server, NAME_MOST)),
    }
}
