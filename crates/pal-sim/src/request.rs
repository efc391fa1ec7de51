//! A Messages request that the validator let pass, read: the prompt, and what is asked besides.

use std::borrow::Cow;

use pal_model::{Card, Role};
use pal_wire::Node;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_128;

use crate::edits::Edit;
use crate::facts::{Facts, Kind, Memo};
use crate::identity::{by_value, canonical, mix};
use crate::prompt::{Layer, Levels, Lifetime, Piece, Prompt};

/// What a request asks besides its prompt.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    /// The most tokens of the answer; none where the request is only counted.
    pub(crate) max_tokens: Option<u64>,
    /// Whether the answer is streamed.
    pub(crate) streams: bool,
    /// Whether and when the model thinks.
    pub(crate) thinking: Thinking,
    /// Whether thinking is shown.
    pub(crate) shows_thinking: bool,
    /// Whether thinking that does not fit its prefix is dropped instead of refused.
    pub(crate) drops_thinking: bool,
    /// Words that end the answer.
    pub(crate) stop_sequences: Vec<Cow<'a, str>>,
    /// A summary is asked for, with these instructions.
    pub(crate) compaction: Option<Option<Cow<'a, str>>>,
    /// What is to be done to the context, where the request says anything about it.
    pub(crate) edits: Option<Vec<Edit<'a>>>,
    /// The response to compare with, where a comparison is asked for.
    pub(crate) previous: Option<Option<Cow<'a, str>>>,
    /// Whether the fast mode is asked for.
    pub(crate) is_fast: bool,
    /// The region.
    pub(crate) geo: Option<Cow<'a, str>>,
    /// A hash of how the model shall answer, as far as the cached messages depend on it: what is said explicitly and
    /// what is the default anyway are the same.
    pub(crate) manner: u128,
    /// A hash of what makes two requests incomparable: the manner, the betas, the edits.
    pub(crate) parameters: u128,
}

/// Whether and when the model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinking {
    Never,
    /// As it sees fit.
    Adaptive,
    /// Within this many tokens.
    Budget(i64),
    /// Only after results of tools.
    BetweenTools,
}

impl Thinking {
    /// What the request asks for; without a word, models that cannot be kept from thinking think.
    fn of(body: Node<'_>, card: &Card) -> Thinking {
        let thinking = body.get("thinking");
        let kind = thinking.and_then(|thinking| thinking.get_text("type"));
        match kind.and_then(|kind| kind.one_of(&["adaptive", "enabled", "disabled", "between_tools"])) {
            Some("adaptive") => Thinking::Adaptive,
            Some("enabled") => {
                let budget = thinking.and_then(|thinking| thinking.get("budget_tokens"));
                Thinking::Budget(budget.and_then(Node::integer).unwrap_or(0))
            }
            Some("between_tools") => Thinking::BetweenTools,
            Some(_) => Thinking::Never,
            None if card.thinking.adaptive && !card.thinking.disabled => Thinking::Adaptive,
            None => Thinking::Never,
        }
    }

    fn hash(self) -> u128 {
        match self {
            Thinking::Never => 0,
            Thinking::Adaptive => 1,
            Thinking::BetweenTools => 2,
            Thinking::Budget(budget) => mix(3, u128::from(budget.unsigned_abs())),
        }
    }
}

impl<'a> Wanted<'a> {
    /// Reads what a request asks. `betas` is a hash of the beta headers.
    pub(crate) fn read(body: Node<'a>, card: &Card, betas: u128) -> Wanted<'a> {
        let text = |name: &str| body.get_text(name).map(|text| text.decoded());
        let thinking = body.get("thinking");
        let display = thinking.and_then(|thinking| thinking.get_text("display"));
        let binding = thinking.and_then(|thinking| thinking.get("block_binding"));
        let mismatch = binding.and_then(|binding| binding.get_text("prefix_mismatch_behavior"));
        let compaction = body.get("compaction");
        let instructions = |of: Node<'a>| of.get_text("instructions").map(|text| text.decoded());
        let management = body.get("context_management");
        let edits = management.map(|management| management.get("edits").into_iter().flat_map(Node::items));
        let diagnostics = body.get("diagnostics");
        let previous = |of: Node<'a>| of.get_text("previous_message_id").map(|id| id.decoded());
        let max_tokens = body.get("max_tokens").and_then(Node::integer);
        let mode = Thinking::of(body, card);
        let manner = manner(body, card, mode);
        Wanted {
            max_tokens: max_tokens.map(i64::unsigned_abs),
            streams: body.get("stream").is_some_and(Node::is_true),
            thinking: mode,
            shows_thinking: match display {
                Some(display) => !display.is("omitted"),
                // From 4.7 on, the models that take no budget keep their thinking to themselves.
                None => card.thinking.enabled,
            },
            drops_thinking: mismatch.is_some_and(|behavior| behavior.is("drop_block")),
            stop_sequences: {
                let sequences = body.get("stop_sequences").into_iter().flat_map(Node::items);
                sequences.filter_map(Node::text).map(|text| text.decoded()).collect()
            },
            compaction: compaction.map(instructions),
            edits: edits.map(|edits| edits.filter_map(Edit::read).collect()),
            previous: diagnostics.map(previous),
            is_fast: body.get_text("speed").is_some_and(|speed| speed.is("fast")),
            geo: text("inference_geo"),
            manner,
            parameters: mix(mix(betas, manner), management.map_or(0, |edits| by_value(edits.raw()))),
        }
    }
}

/// A hash of the choice of tools, thinking, effort and format.
fn manner(body: Node<'_>, card: &Card, thinking: Thinking) -> u128 {
    let text = |text: &str| xxh3_128(text.as_bytes());
    let choice = body.get("tool_choice");
    let kind = choice.and_then(|choice| choice.get_text("type")).map(|kind| kind.decoded());
    let kind = kind.filter(|kind| kind != "auto").unwrap_or_default();
    let name =
        choice.and_then(|choice| choice.get_text("name")).map(|name| name.decoded()).unwrap_or_default();
    let serial = choice.and_then(|choice| choice.get("disable_parallel_tool_use")).is_some_and(Node::is_true);
    let config = body.get("output_config");
    let effort = config.and_then(|config| config.get_text("effort")).map(|effort| effort.decoded());
    let effort = effort.filter(|effort| *effort != card.default_effort.as_str()).unwrap_or_default();
    let format = config.and_then(|config| config.get("format")).filter(|format| !format.is_null());
    let format = format.map_or(0, |format| text(&canonical(format)));
    let parts = [text(&kind), text(&name), u128::from(serial), thinking.hash(), text(&effort), format];
    parts.into_iter().fold(0, mix)
}

/// Reads the prompt of a request of somebody (`scope`).
pub(crate) fn read_prompt<'a>(
    body: Node<'a>,
    card: &Card,
    wanted: &Wanted<'_>,
    scope: u64,
    memo: &mut Memo,
) -> Prompt<'a> {
    let mut reader = Reader { memo, pieces: Vec::new(), deferred: Vec::new(), by_name: FxHashMap::default() };
    reader.tools(body);
    reader.system(body);
    for (index, message) in body.get("messages").into_iter().flat_map(Node::items).enumerate() {
        reader.message(index, message);
    }
    let Reader { pieces, deferred, .. } = reader;
    let levels = levels(card, wanted, scope, &pieces);
    let deferred = deferred.into_iter().map(|(raw, _)| raw).collect();
    Prompt { pieces, deferred, levels, automatic: lifetime(body) }
}

/// Which parameters take which layers of the cache with them. Thinking and effort leave tools and system alone on
/// every card, which the provider leaves to the model. Images are blocks like others: in recorded sessions the first
/// one leaves everything before it in the cache, whatever the documents say.
fn levels(card: &Card, wanted: &Wanted<'_>, scope: u64, pieces: &[Piece<'_>]) -> Levels {
    let any = |is: fn(&Facts) -> bool| u128::from(pieces.iter().any(|piece| is(&piece.facts)));
    Levels {
        tools: mix(xxh3_128(card.model.as_bytes()), u128::from(scope)),
        system: mix(u128::from(wanted.is_fast), any(|facts| facts.cites)),
        messages: wanted.manner,
    }
}

/// The lifetime of the mark on this, if there is one.
fn lifetime(marked: Node<'_>) -> Option<Lifetime> {
    let mark = marked.get("cache_control")?;
    let is_long = mark.get_text("ttl").is_some_and(|ttl| ttl.is("1h"));
    Some(if is_long { Lifetime::OneHour } else { Lifetime::FiveMinutes })
}

struct Reader<'a, 'm> {
    memo: &'m mut Memo,
    pieces: Vec<Piece<'a>>,
    /// Tools that are rendered where something refers to them.
    deferred: Vec<(Cow<'a, str>, Facts)>,
    by_name: FxHashMap<Cow<'a, str>, usize>,
}

/// Where a block stands.
#[derive(Clone, Copy)]
struct Place {
    layer: Layer,
    role: Role,
    message: usize,
    index: usize,
    is_turn_scoped: bool,
}

impl<'a> Reader<'a, '_> {
    fn tools(&mut self, body: Node<'a>) {
        let mut late = Vec::new();
        for (index, tool) in body.get("tools").into_iter().flat_map(Node::items).enumerate() {
            let facts = self.memo.tool(tool.raw());
            let name = tool.get_text("name").map(|name| name.decoded()).unwrap_or_default();
            if tool.get("defer_loading").is_some_and(Node::is_true) {
                self.by_name.insert(name, self.deferred.len());
                self.deferred.push((Cow::Borrowed(tool.raw()), facts));
                continue;
            }
            // Whether the web can be searched is a matter of the system prompt: the tools before it survive.
            let kind = tool.get_text("type").map(|kind| kind.decoded()).unwrap_or_default();
            let is_late = kind.starts_with("web_search_");
            let layer = if is_late { Layer::System } else { Layer::Tools };
            let place = Place { layer, role: Role::System, message: 0, index, is_turn_scoped: false };
            let piece =
                Piece { mark: lifetime(tool), name, ..piece(place, Cow::Borrowed(tool.raw()), facts) };
            if is_late { late.push(piece) } else { self.pieces.push(piece) }
        }
        self.pieces.append(&mut late);
    }

    fn system(&mut self, body: Node<'a>) {
        let Some(system) = body.get("system") else { return };
        let place = |index| Place {
            layer: Layer::System,
            role: Role::System,
            message: 0,
            index,
            is_turn_scoped: false,
        };
        if system.text().is_some_and(|text| !text.is_empty()) {
            self.words(system, place(0));
        }
        for (index, block) in system.items().enumerate() {
            self.block(block, place(index));
        }
    }

    fn message(&mut self, message: usize, node: Node<'a>) {
        let role = match node.get_text("role") {
            Some(role) if role.is("user") => Role::User,
            Some(role) if role.is("assistant") => Role::Assistant,
            _ => Role::System,
        };
        let is_turn_scoped = node.get("clear_at").is_some();
        let place = |index| Place { layer: Layer::Messages, role, message, index, is_turn_scoped };
        if let Some(config) = node.get("output_config") {
            let effort = config.get("effort").map_or("null", Node::raw);
            let raw = format!(r#"{{"type":"effort","effort":{effort}}}"#);
            let facts = self.memo.block(&raw);
            self.pieces.push(piece(place(0), Cow::Owned(raw), facts));
        }
        let Some(content) = node.get("content") else { return };
        if content.text().is_some_and(|text| !text.is_empty()) {
            self.words(content, place(0));
        }
        for (index, block) in content.items().enumerate() {
            self.block(block, place(index));
        }
    }

    /// Content that is a string is a text block.
    fn words(&mut self, text: Node<'a>, place: Place) {
        let raw = format!(r#"{{"type":"text","text":{}}}"#, text.raw());
        let facts = self.memo.block(&raw);
        self.pieces.push(piece(place, Cow::Owned(raw), facts));
    }

    fn block(&mut self, block: Node<'a>, place: Place) {
        let mut facts = self.memo.block(block.raw());
        let text = |name: &str| block.get_text(name).map(|text| text.decoded()).unwrap_or_default();
        let (id, name) = match facts.kind {
            Kind::ToolUse => (text("id"), text("name")),
            Kind::ToolResult => {
                if facts.refers {
                    let inner = block.get("content").into_iter().flat_map(Node::items);
                    inner.filter_map(|inner| inner.get_text("tool_name")).for_each(|name| {
                        self.expand(&name.decoded(), &mut facts);
                    });
                }
                (text("tool_use_id"), text("cache_reference"))
            }
            Kind::Thinking => (text("signature"), text("thinking")),
            Kind::RedactedThinking => (text("data"), Cow::Borrowed("")),
            Kind::Compaction => {
                let carrier =
                    if block.get("signature").is_some() { "signature" } else { "encrypted_content" };
                (text(carrier), text("content"))
            }
            Kind::ToolAddition => {
                let name = block.get("tool").and_then(|tool| tool.get_text("name"));
                if let Some(name) = name {
                    self.expand(&name.decoded(), &mut facts);
                }
                Default::default()
            }
            _ => Default::default(),
        };
        let raw = Cow::Borrowed(block.raw());
        self.pieces.push(Piece { mark: lifetime(block), id, name, ..piece(place, raw, facts) });
    }

    /// A tool that waited is rendered where it is first referred to; naming it again renders it again.
    fn expand(&mut self, name: &str, facts: &mut Facts) {
        if let Some((_, tool)) = self.by_name.get(name).and_then(|&at| self.deferred.get(at)) {
            facts.absorb(tool);
        }
    }
}

fn piece(place: Place, raw: Cow<'_, str>, facts: Facts) -> Piece<'_> {
    Piece {
        layer: place.layer,
        role: place.role,
        message: place.message,
        index: place.index,
        raw,
        facts,
        mark: None,
        id: Cow::Borrowed(""),
        name: Cow::Borrowed(""),
        is_turn_scoped: place.is_turn_scoped,
        is_rendered: true,
    }
}
