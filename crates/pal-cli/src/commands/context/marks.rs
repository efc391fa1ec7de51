//! Where the provider's cache is marked, in words.

use pal_model::Caching;
use pal_view::{CacheLifetime, CacheScope, Mark, Spot};

use super::{Look, Subject};
use crate::table::rounded;

/// A mark: what it stands behind, and how much it covers.
pub(super) struct Noted {
    pub(super) behind: String,
    pub(super) tokens: f64,
    pub(super) mark: Mark,
}

/// The marks of the request, in order.
pub(super) fn noted(look: &Look) -> Vec<Noted> {
    // Where the provider marks by itself, too, it takes ours in messages only.
    let is_sent = |mark: &&Mark| match look.view.lens().card.caching {
        Caching::Marks => true,
        Caching::Breakpoints => matches!(mark.spot, Spot::Block(_)),
        Caching::Automatic => false,
    };
    let note =
        |mark: &Mark| Noted { behind: behind(look, mark.spot), tokens: until(look, mark.spot), mark: *mark };
    look.request.marks().iter().filter(is_sent).map(note).collect()
}

/// Why there are no marks.
pub(super) fn why_none(look: &Look) -> String {
    let card = &look.view.lens().card;
    match card.caching {
        Caching::Automatic => String::from("none: the provider keeps by itself what two requests begin with"),
        Caching::Marks | Caching::Breakpoints => {
            let least = rounded(card.min_cacheable as f64);
            format!("none: the provider keeps nothing of fewer than {least} tokens")
        }
    }
}

/// For how long and for whom what a mark covers is kept.
pub(super) fn kept(look: &Look, mark: &Mark) -> String {
    if look.view.lens().card.caching == Caching::Breakpoints {
        return String::from("kept for as long as the provider decides");
    }
    let lifetime = match mark.lifetime {
        CacheLifetime::Minutes5 => "5 minutes",
        CacheLifetime::Hour1 => "an hour",
        CacheLifetime::Hour1ThenMinutes5 => "an hour before the messages, 5 minutes in them",
    };
    let scope = match mark.scope {
        None => "",
        Some(CacheScope::Global) => ", for everybody",
        Some(CacheScope::Organisation) => ", for the organisation",
    };
    format!("kept for {lifetime}{scope}")
}

fn behind(look: &Look, spot: Spot) -> String {
    let contents = &look.contents;
    match spot {
        Spot::Tool(at) => {
            let name = contents.tools.get(at).map_or("", |tool| tool.name.as_str());
            format!("the tools (`{name}`)")
        }
        Spot::System(at) if contents.blocks.get(at).is_some_and(|block| block.is_static) => {
            String::from("the static part of the system prompt")
        }
        Spot::System(at) if at + 1 == contents.blocks.len() => String::from("the system prompt"),
        Spot::System(at) => format!("block {} of the system prompt", at + 1),
        Spot::Block(at) if Some(at) == look.request.last_markable(look.request.blocks()) => {
            String::from(match look.subject {
                Subject::Start(_) => "the first message",
                Subject::Stored { .. } => "the newest message",
            })
        }
        Spot::Block(at) if at < look.request.sent_blocks() => String::from("what the request before it sent"),
        Spot::Block(at) => format!("block {} of the messages", at + 1),
    }
}

/// About how many tokens a mark covers.
fn until(look: &Look, spot: Spot) -> f64 {
    let contents = &look.contents;
    let tools = contents.tokens_of_tools(contents.tools.len());
    match spot {
        Spot::Tool(at) => contents.tokens_of_tools(at + 1),
        // What a transcript does not hold of the prompt is counted there, too.
        Spot::System(at) if at + 1 == contents.blocks.len() => look.request.tokens_until(spot),
        Spot::System(at) => {
            tools + contents.blocks.iter().take(at + 1).map(|block| block.extent.tokens).sum::<f64>()
        }
        Spot::Block(_) => look.request.tokens_until(spot),
    }
}
