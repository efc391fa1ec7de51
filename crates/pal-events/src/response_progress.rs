//! Steps of a response that is still streaming.

use pal_model::{ContentBlock, ResponseId, Usage};
use smol_str::SmolStr;

/// A step of a response that is still streaming. Indexes count blocks from 0.
#[derive(Clone, PartialEq, Debug)]
pub enum ResponseProgress {
    /// The provider started the response.
    Started {
        /// Provider's id of the response.
        response: ResponseId,
        /// Responding model.
        model: SmolStr,
        /// Usage known so far.
        usage: Usage,
    },
    /// A block started.
    BlockStarted {
        /// Index of the block.
        index: usize,
        /// Type of the block on the wire.
        kind: &'static str,
        /// Name of the tool, for a tool call.
        tool: Option<SmolStr>,
        /// Id of the tool call, if it is known already.
        call: Option<SmolStr>,
    },
    /// A block grew.
    BlockGrew {
        /// Index of the block.
        index: usize,
        /// Added content.
        growth: BlockGrowth,
    },
    /// A block is complete.
    BlockEnded {
        /// Index of the block.
        index: usize,
        /// The complete block.
        block: ContentBlock,
    },
    /// The response is complete.
    Finished {
        /// Stop reason.
        stop_reason: Option<SmolStr>,
        /// Token counts.
        usage: Usage,
    },
}

/// Content added to a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlockGrowth {
    /// Text.
    Text(String),
    /// Visible thinking.
    Thinking(String),
    /// Fragment of the JSON input of a tool call.
    Input(String),
}
