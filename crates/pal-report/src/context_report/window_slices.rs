//! Slices of the context window by category, in the order of a request.

use pal_view::{Category, View};

use super::prompt_contents::PromptContents;

/// A share of the window.
#[derive(Clone, Copy)]
pub(super) struct WindowSlice {
    pub(super) kind: &'static SliceStyle,
    pub(super) tokens: f64,
}

/// Appearance of a slice. Categories of the cost chart look the same there.
pub(super) struct SliceStyle {
    pub(super) name: &'static str,
    /// Character that fills the slice without colors.
    pub(super) pattern: char,
    /// ANSI color code.
    pub(super) color: u8,
}

const TOOLS: SliceStyle = kind("tools", '░', 90);
const SERVER_TOOLS: SliceStyle = kind("tools of MCP servers", '▛', 37);
const STATIC: SliceStyle = kind("system prompt, static", '▜', 94);
const SYSTEM: SliceStyle = kind("system prompt, dynamic", '▙', 96);
const UNSEEN: SliceStyle = kind("unseen prefix", '▗', 90);
const FILES: SliceStyle = kind("instruction files", '▟', 93);
const REMINDERS: SliceStyle = kind("reminders", '▖', 92);
const SUMMARIES: SliceStyle = kind("summaries", '▚', 35);
const USER: SliceStyle = kind("user", '▌', 32);
const THINKING: SliceStyle = kind("thinking", '▞', 95);
const ASSISTANT: SliceStyle = kind("assistant", '▒', 36);
const CALLS: SliceStyle = kind("tool calls", '▓', 33);
const RESULTS: SliceStyle = kind("tool results", '█', 34);

const fn kind(name: &'static str, pattern: char, color: u8) -> SliceStyle {
    SliceStyle { name, pattern, color }
}

/// Returns the slices of the wanted categories, without empty ones.
pub(super) fn window_slices(
    view: &View,
    contents: &PromptContents,
    wants: impl Fn(Category) -> bool,
) -> Vec<WindowSlice> {
    let sums = view.by_category();
    let tokens = |category: Category| {
        let sum = sums.iter().find(|(known, _)| *known == category && wants(category));
        sum.map_or(0.0, |(_, tokens)| *tokens)
    };
    let of_servers: f64 =
        contents.tools.iter().filter(|tool| tool.is_mcp).map(|tool| tool.extent.tokens).sum();
    let (fixed, _) = contents.system_tokens();
    let files: f64 =
        contents.context.files.iter().filter_map(|file| file.extent).map(|size| size.tokens).sum();
    let (tools, system) = (tokens(Category::ToolSchemas), tokens(Category::SystemPrompt));
    let attached = tokens(Category::Attachments);
    let slices: [(&'static SliceStyle, f64); 13] = [
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
    let slices = slices.into_iter().map(|(kind, tokens)| WindowSlice { kind, tokens });
    slices.filter(|slice| slice.tokens >= 0.5).collect()
}

/// Sums the tokens of all slices.
pub(super) fn total_tokens(slices: &[WindowSlice]) -> u64 {
    slices.iter().map(|slice| slice.tokens).sum::<f64>().ceil() as u64
}

/// Scales estimated slices to a known total.
pub(super) fn scale_slices(mut slices: Vec<WindowSlice>, tokens: u64) -> Vec<WindowSlice> {
    let estimated: f64 = slices.iter().map(|slice| slice.tokens).sum();
    if estimated > 0.0 {
        slices.iter_mut().for_each(|slice| slice.tokens *= tokens as f64 / estimated);
    }
    slices
}

/// Makes slices for tests of the picture.
#[cfg(test)]
pub(super) fn sample_slices(tokens: [f64; 4]) -> Vec<WindowSlice> {
    let kinds: [&'static SliceStyle; 4] = [&TOOLS, &STATIC, &FILES, &RESULTS];
    kinds.into_iter().zip(tokens).map(|(kind, tokens)| WindowSlice { kind, tokens }).collect()
}
