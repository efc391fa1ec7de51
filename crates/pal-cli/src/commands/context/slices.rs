//! What fills the window, in the order of a request: the slices that the picture is made of.

use pal_view::{Category, View};

use super::contents::Contents;

/// A share of the window.
#[derive(Clone, Copy)]
pub(super) struct Slice {
    pub(super) kind: &'static Kind,
    pub(super) tokens: f64,
}

/// What a slice is drawn as. Kinds that `pal cost` draws, too, look as they do there.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// Without colours.
    pub(super) pattern: char,
    /// The code of its colour.
    pub(super) colour: u8,
}

const TOOLS: Kind = kind("tools", '░', 90);
const SERVER_TOOLS: Kind = kind("tools of MCP servers", '▛', 37);
const STATIC: Kind = kind("system prompt, static", '▜', 94);
const SYSTEM: Kind = kind("system prompt, dynamic", '▙', 96);
const UNSEEN: Kind = kind("unseen prefix", '▗', 90);
const FILES: Kind = kind("instruction files", '▟', 93);
const REMINDERS: Kind = kind("reminders", '▖', 92);
const SUMMARIES: Kind = kind("summaries", '▚', 35);
const USER: Kind = kind("user", '▌', 32);
const THINKING: Kind = kind("thinking", '▞', 95);
const ASSISTANT: Kind = kind("assistant", '▒', 36);
const CALLS: Kind = kind("tool calls", '▓', 33);
const RESULTS: Kind = kind("tool results", '█', 34);

const fn kind(name: &'static str, pattern: char, colour: u8) -> Kind {
    Kind { name, pattern, colour }
}

/// The slices of the categories that are wanted, none of them empty.
pub(super) fn of(view: &View, contents: &Contents, wants: impl Fn(Category) -> bool) -> Vec<Slice> {
    let sums = view.by_category();
    let tokens = |category: Category| {
        let sum = sums.iter().find(|(known, _)| *known == category && wants(category));
        sum.map_or(0.0, |(_, tokens)| *tokens)
    };
    let of_servers: f64 =
        contents.tools.iter().filter(|tool| tool.is_of_server).map(|tool| tool.extent.tokens).sum();
    let (fixed, _) = contents.system_tokens();
    let files: f64 =
        contents.context.files.iter().filter_map(|file| file.extent).map(|size| size.tokens).sum();
    let (tools, system) = (tokens(Category::ToolSchemas), tokens(Category::SystemPrompt));
    let attached = tokens(Category::Attachments);
    let slices: [(&'static Kind, f64); 13] = [
        (&TOOLS, tools - of_servers),
        (&SERVER_TOOLS, of_servers),
        (&STATIC, fixed),
        (&SYSTEM, system - fixed),
        (&UNSEEN, tokens(Category::UnseenPrefix)),
        (&FILES, files),
        (&REMINDERS, attached - files),
        (&SUMMARIES, tokens(Category::Summaries)),
        (&USER, tokens(Category::UserText)),
        (&THINKING, tokens(Category::Thinking)),
        (&ASSISTANT, tokens(Category::AssistantText)),
        (&CALLS, tokens(Category::ToolCalls)),
        (&RESULTS, tokens(Category::ToolResults)),
    ];
    let slices = slices.into_iter().map(|(kind, tokens)| Slice { kind, tokens });
    slices.filter(|slice| slice.tokens >= 0.5).collect()
}

/// Tokens of all slices.
pub(super) fn sum(slices: &[Slice]) -> u64 {
    slices.iter().map(|slice| slice.tokens).sum::<f64>().ceil() as u64
}

/// The same slices of another sum: estimated shares of a size that is known better.
pub(super) fn scaled(mut slices: Vec<Slice>, tokens: u64) -> Vec<Slice> {
    let estimated: f64 = slices.iter().map(|slice| slice.tokens).sum();
    if estimated > 0.0 {
        slices.iter_mut().for_each(|slice| slice.tokens *= tokens as f64 / estimated);
    }
    slices
}

/// Slices that are not there but for tests of the picture.
#[cfg(test)]
pub(super) fn made(tokens: [f64; 4]) -> Vec<Slice> {
    let kinds: [&'static Kind; 4] = [&TOOLS, &STATIC, &FILES, &RESULTS];
    kinds.into_iter().zip(tokens).map(|(kind, tokens)| Slice { kind, tokens }).collect()
}
