//! A streamed answer renders to the same lines however it is cut, and finished lines never change.

use pal_tui::{MarkdownStream, Theme};
use proptest::prelude::*;

const ANSWER: &str = include_str!("golden/answer.md");

fn whole(text: &str, width: usize) -> Vec<String> {
    let mut stream = MarkdownStream::default();
    stream.push(text);
    stream.finish(width, Theme::default()).iter().map(ToString::to_string).collect()
}

fn in_pieces(text: &str, cuts: &[usize], width: usize) -> Vec<String> {
    let mut stream = MarkdownStream::default();
    let mut lines = Vec::new();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.sort_unstable();
    let mut from = 0;
    for cut in cuts {
        if text.is_char_boundary(cut) {
            stream.push(&text[from..cut]);
            from = cut;
            lines.extend(stream.take_finished(width, Theme::default()));
        }
    }
    stream.push(&text[from..]);
    lines.extend(stream.finish(width, Theme::default()));
    lines.iter().map(ToString::to_string).collect()
}

proptest! {
    #[test]
    fn rendering_does_not_depend_on_the_chunks(cuts in proptest::collection::vec(any::<usize>(), 0..60), width in 24_usize..120) {
        prop_assert_eq!(in_pieces(ANSWER, &cuts, width), whole(ANSWER, width));
    }
}

#[test]
fn the_tail_stays_short_for_any_input() {
    for piece in ["word ", "- item\n", "line of code\n", "| a | b |\n", "x", "\n", "**bold** "] {
        for opening in ["", "```rust\n", "- ", "| a | b |\n|---|---|\n", "> "] {
            let mut stream = MarkdownStream::default();
            stream.push(opening);
            for _ in 0..20_000 / piece.len() {
                stream.push(piece);
            }
            stream.take_finished(80, Theme::default());
            let tail = stream.tail(80, Theme::default()).len();
            assert!(tail < 1_500, "{opening:?} {piece:?}: {tail} lines");
        }
    }
}

#[test]
fn control_characters_are_removed() {
    let mut stream = MarkdownStream::default();
    stream.push("a\u{1b}[2Jb\r\n\n```\n\u{1b}]0;title\u{7}\n```\n\u{202e}x");
    let text: String = stream.finish(40, Theme::default()).iter().map(ToString::to_string).collect();
    assert!(!text.contains(|character: char| character.is_control()), "{text:?}");
    assert!(text.contains("a·[2Jb"));
}
