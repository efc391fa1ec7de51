//! Golden files of Markdown at several widths. `PAL_BLESS=1 cargo test -p pal-tui` rewrites them.

use std::path::PathBuf;

use pal_tui::{Theme, render_markdown};

/// Compares text with a golden file.
pub(crate) fn compare(name: &str, found: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/terminal/golden").join(name);
    if std::env::var_os("PAL_BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, kept, "{name}: look at it, then PAL_BLESS=1 keeps it");
}

#[test]
fn markdown_at_several_widths() {
    for width in [24, 79, 199] {
        let lines = render_markdown(include_str!("golden/answer.md"), width, Theme::default());
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        assert!(lines.iter().all(|line| line.width() <= width), "{text}");
        compare(&format!("answer-{width}.txt"), &text);
    }
}
