//! A request as the provider renders it: blocks in the order tools, system, messages; and what of it can be cached.
//!
//! Knows no dialect. A front makes a [`Prompt`] of its own kind of request; edits change what is rendered; the rest of
//! the simulator only looks at what is rendered.

use std::borrow::Cow;

use pal_model::{Card, Role, TokenGeneration};

use crate::entries::Lives;
use crate::facts::{Facts, Kind};
use crate::identity::mix;
use crate::tokens;
use crate::{Ask, AskMessage};

/// How long a cache entry lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lifetime {
    FiveMinutes,
    OneHour,
}

impl Lives for Lifetime {
    fn milliseconds(self) -> i64 {
        match self {
            Lifetime::FiveMinutes => 5 * 60 * 1_000,
            Lifetime::OneHour => 60 * 60 * 1_000,
        }
    }
}

/// The part of the prompt in which a block stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    Tools,
    System,
    Messages,
}

/// One block of a prompt.
#[derive(Clone, Debug)]
pub(crate) struct Piece<'a> {
    /// Where it is rendered.
    pub(crate) layer: Layer,
    /// Whose message it stands in; meaningless outside of messages.
    pub(crate) role: Role,
    /// The message it stands in, and its place there; its place in the layer outside of messages.
    pub(crate) message: usize,
    /// Its place in the message.
    pub(crate) index: usize,
    /// The block, raw.
    pub(crate) raw: Cow<'a, str>,
    /// What is true of it.
    pub(crate) facts: Facts,
    /// Its mark.
    pub(crate) mark: Option<Lifetime>,
    /// The id of a call or of the call that a result answers; the signature of thinking.
    pub(crate) id: Cow<'a, str>,
    /// The name of a tool.
    pub(crate) name: Cow<'a, str>,
    /// Whether its message lasts only until the next user message.
    pub(crate) is_turn_scoped: bool,
    /// Whether it is rendered at all.
    pub(crate) is_rendered: bool,
}

impl Piece<'_> {
    /// Where it stands, as errors name it.
    pub(crate) fn path(&self) -> String {
        format!("messages.{}.content.{}", self.message, self.index)
    }
}

/// What is mixed into the hash of the prefix where each layer begins: parameters that share its fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    /// Who asks, and which model.
    pub(crate) tools: u128,
    /// Speed and citations.
    pub(crate) system: u128,
    /// Choice of tools, thinking, effort.
    pub(crate) messages: u128,
}

/// A request, in render order.
#[derive(Clone, Debug)]
pub(crate) struct Prompt<'a> {
    /// The blocks.
    pub(crate) pieces: Vec<Piece<'a>>,
    /// Tools that are not part of the prefix.
    pub(crate) deferred: Vec<Cow<'a, str>>,
    /// Parameters that the cache depends on.
    pub(crate) levels: Levels,
    /// A mark on the last block that can have one.
    pub(crate) automatic: Option<Lifetime>,
}

/// The end of a rendered block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The hash of everything up to here.
    pub(crate) chain: u128,
    /// Tokens up to here.
    pub(crate) tokens: u64,
    /// Which step of a walk back this is: blocks of one run of calls, or of results, share theirs.
    pub(crate) position: u64,
}

/// A mark that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The spot.
    pub(crate) spot: usize,
    /// How long what is written there lives.
    pub(crate) lifetime: Lifetime,
}

/// A prompt as the cache sees it.
#[derive(Clone, Debug)]
pub(crate) struct Rendered {
    /// The ends of the blocks.
    pub(crate) spots: Vec<Spot>,
    /// The marks, in order; those below the smallest cacheable size are left out.
    pub(crate) marks: Vec<Mark>,
    /// Tokens of the whole prompt.
    pub(crate) tokens: u64,
}

impl<'a> Prompt<'a> {
    /// The rendered blocks of the messages.
    pub(crate) fn rendered(&self) -> impl Iterator<Item = &Piece<'a>> {
        self.pieces.iter().filter(|piece| piece.is_rendered)
    }

    /// Tokens of the whole prompt.
    pub(crate) fn tokens(&self, generation: TokenGeneration) -> u64 {
        let mut widths = Widths::new(generation);
        self.rendered().map(|piece| widths.of(piece)).sum::<u64>() + tokens::ANSWER_TOKENS
    }

    /// The prompt as the cache of this model sees it.
    pub(crate) fn render(&self, card: &Card) -> Rendered {
        let mut widths = Widths::new(card.generation);
        let mut spots: Vec<Spot> = Vec::with_capacity(self.pieces.len());
        let mut marks = Vec::new();
        let mut last_markable = None;
        let (mut chain, mut tokens, mut position) = (mix(self.levels.tools, 1), 0, 0);
        let mut previous: Option<&Piece<'a>> = None;
        for piece in self.rendered() {
            let layer = previous.map_or(Layer::Tools, |previous| previous.layer);
            chain = self.enter(chain, layer, piece.layer);
            chain = mix(chain, mix(piece.facts.cache, role_of(piece)));
            tokens += widths.of(piece);
            if !previous.is_some_and(|previous| is_one_run(previous, piece)) {
                position += 1;
            }
            if let Some(lifetime) = piece.mark {
                marks.push(Mark { spot: spots.len(), lifetime });
            }
            if piece.facts.kind.can_be_marked() && !piece.is_turn_scoped {
                last_markable = Some(spots.len());
            }
            spots.push(Spot { chain, tokens, position });
            previous = Some(piece);
        }
        if let (Some(lifetime), Some(spot)) = (self.automatic, last_markable)
            && !marks.iter().any(|mark| mark.spot == spot)
        {
            marks.push(Mark { spot, lifetime });
            marks.sort_by_key(|mark| mark.spot);
        }
        marks.retain(|mark| spots.get(mark.spot).is_some_and(|spot| spot.tokens >= card.min_cacheable));
        Rendered { spots, marks, tokens: tokens + tokens::ANSWER_TOKENS }
    }

    /// Mixes in the parameters of the layers that begin between two blocks.
    fn enter(&self, chain: u128, from: Layer, to: Layer) -> u128 {
        let mut chain = chain;
        if from < Layer::System && to >= Layer::System {
            chain = mix(chain, self.levels.system);
        }
        if from < Layer::Messages && to >= Layer::Messages {
            chain = mix(chain, self.levels.messages);
        }
        chain
    }

    /// The request as a model is asked it.
    pub(crate) fn ask<'b>(&'b self, model: &'b str) -> Ask<'b> {
        let is_tool = |piece: &&Piece<'_>| piece.facts.kind == Kind::Tool;
        let is_system = |piece: &&Piece<'_>| piece.layer == Layer::System && !is_tool(piece);
        let tools = self.rendered().filter(is_tool).map(|piece| Cow::Borrowed(&*piece.raw));
        let deferred = self.deferred.iter().map(|raw| Cow::Borrowed(&**raw));
        let mut messages: Vec<AskMessage<'_>> = Vec::new();
        let mut last = None;
        let spoken = |piece: &&Piece<'_>| {
            piece.layer == Layer::Messages && !matches!(piece.facts.kind, Kind::Effort | Kind::CacheEdits)
        };
        for piece in self.rendered().filter(spoken) {
            if last != Some(piece.message) {
                messages.push(AskMessage { role: piece.role, blocks: Vec::new() });
                last = Some(piece.message);
            }
            if let Some(message) = messages.last_mut() {
                message.blocks.push(Cow::Borrowed(&*piece.raw));
            }
        }
        Ask {
            model,
            system: self.rendered().filter(is_system).map(|piece| Cow::Borrowed(&*piece.raw)).collect(),
            tools: tools.chain(deferred).collect(),
            messages,
            max_tokens: 0,
            thinks: false,
            compaction: None,
        }
    }
}

fn role_of(piece: &Piece<'_>) -> u128 {
    match (piece.layer, piece.role) {
        (Layer::Tools, _) => 10,
        (Layer::System, _) => 11,
        (Layer::Messages, Role::User) => 12,
        (Layer::Messages, Role::Assistant) => 13,
        (Layer::Messages, Role::System) => 14,
    }
}

/// A run of calls, or a run of results, is one position.
fn is_one_run(previous: &Piece<'_>, piece: &Piece<'_>) -> bool {
    let is_tool_block = matches!(piece.facts.kind, Kind::ToolUse | Kind::ToolResult);
    is_tool_block && previous.facts.kind == piece.facts.kind
}

/// Tokens of blocks with what surrounds them: the opening of a message, the introduction of the tools.
struct Widths {
    generation: TokenGeneration,
    has_tools: bool,
    message: Option<usize>,
}

impl Widths {
    fn new(generation: TokenGeneration) -> Widths {
        Widths { generation, has_tools: false, message: None }
    }

    fn of(&mut self, piece: &Piece<'_>) -> u64 {
        let mut tokens = piece.facts.tokens(self.generation);
        if piece.facts.kind == Kind::Tool && !self.has_tools {
            self.has_tools = true;
            tokens += tokens::TOOLS_TOKENS;
        }
        if piece.layer == Layer::Messages && self.message != Some(piece.message) {
            self.message = Some(piece.message);
            tokens += tokens::MESSAGE_TOKENS;
        }
        tokens
    }
}
