//! Frames on an emulated terminal: finished lines appear once, in order, in the scrollback.

use std::num::NonZero;

use pal_tui::{LiveRegion, Screen};
use proptest::prelude::*;
use ratatui_core::text::Line;

/// A terminal with a long scrollback.
struct EmulatedTerminal {
    parser: vt100::Parser,
    screen: Screen<Vec<u8>>,
}

fn positive(number: u16) -> NonZero<u16> {
    NonZero::new(number).unwrap()
}

impl EmulatedTerminal {
    fn new(columns: u16, rows: u16) -> EmulatedTerminal {
        let screen = Screen::new(Vec::new(), columns.into(), rows.into(), true);
        EmulatedTerminal { parser: vt100::Parser::new(positive(rows), positive(columns), 10_000), screen }
    }

    fn frame(&mut self, finished: &[&str], live: &[&str]) {
        let lines =
            |texts: &[&str]| texts.iter().map(|text| Line::from((*text).to_owned())).collect::<Vec<_>>();
        let cursor = (!live.is_empty()).then(|| (live.len() - 1, 0));
        self.screen.frame(&lines(finished), &LiveRegion { lines: lines(live), cursor }).unwrap();
        let bytes = std::mem::take(self.screen.writer());
        self.parser.process(&bytes);
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.parser.screen_mut().set_size(positive(rows), positive(columns));
        self.screen.resize(columns.into(), rows.into());
    }

    /// All lines from the top of the scrollback, without blank ones.
    fn everything(&mut self) -> Vec<String> {
        let (rows, columns) = self.parser.screen().size();
        let (rows, columns) = (rows.get(), columns.get());
        let mut all = Vec::new();
        self.parser.screen_mut().set_scrollback(usize::MAX);
        let mut above = self.parser.screen().scrollback();
        while above > 0 {
            self.parser.screen_mut().set_scrollback(above);
            all.push(self.parser.screen().rows(0, columns).next().unwrap_or_default());
            above -= 1;
        }
        self.parser.screen_mut().set_scrollback(0);
        all.extend(self.parser.screen().rows(0, columns).take(rows.into()));
        all.into_iter().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
    }
}

#[test]
fn finished_lines_are_written_once_above_the_region() {
    let mut terminal = EmulatedTerminal::new(20, 6);
    terminal.frame(&[], &["> typed", "status"]);
    for number in 0..30 {
        let line = format!("line {number}");
        terminal.frame(&[&line], &["growing", "> typed", "status"]);
    }
    let mut expected: Vec<String> = (0..30).map(|number| format!("line {number}")).collect();
    expected.extend(["growing", "> typed", "status"].map(String::from));
    assert_eq!(terminal.everything(), expected);
}

#[test]
fn a_region_that_grows_and_shrinks_leaves_nothing_behind() {
    let mut terminal = EmulatedTerminal::new(20, 8);
    terminal.frame(&["said"], &["a", "b", "c", "d", "e", "f"]);
    terminal.frame(&[], &["x"]);
    assert_eq!(terminal.everything(), ["said", "x"]);
    terminal.frame(&["more"], &["y", "z"]);
    terminal.frame(&[], &["y", "changed"]);
    assert_eq!(terminal.everything(), ["said", "more", "y", "changed"]);
}

#[test]
fn a_region_taller_than_the_window_shows_its_end() {
    let mut terminal = EmulatedTerminal::new(20, 4);
    terminal.frame(&["said"], &["1", "2", "3", "4", "5", "6"]);
    terminal.frame(&["more"], &["1", "2", "3", "4", "5", "7"]);
    assert_eq!(terminal.everything(), ["said", "more", "4", "5", "7"]);
}

#[test]
fn a_full_line_loses_no_character() {
    let mut terminal = EmulatedTerminal::new(10, 4);
    terminal.frame(&["0123456789", "abcdefghij"], &["012345678", "status"]);
    assert_eq!(terminal.everything(), ["0123456789", "abcdefghij", "012345678", "status"]);
}

#[test]
fn a_resize_during_a_stream_keeps_the_scrollback() {
    let mut terminal = EmulatedTerminal::new(40, 10);
    for number in 0..20 {
        terminal.frame(&[&format!("line {number}")], &["the tail", "> typed", "status"]);
    }
    terminal.resize(30, 10);
    terminal.frame(&["line 20"], &["the tail", "> typed", "status"]);
    terminal.resize(60, 14);
    terminal.frame(&["line 21"], &["> typed", "status"]);
    let mut expected: Vec<String> = (0..22).map(|number| format!("line {number}")).collect();
    expected.extend(["> typed", "status"].map(String::from));
    assert_eq!(terminal.everything(), expected);
}

#[test]
fn an_unchanged_frame_writes_nothing() {
    let mut screen = Screen::new(Vec::new(), 40, 10, true);
    let live = LiveRegion { lines: vec![Line::from("> typed")], cursor: Some((0, 2)) };
    screen.frame(&[], &live).unwrap();
    let first = screen.writer().len();
    screen.frame(&[], &live).unwrap();
    assert_eq!(screen.writer().len(), first);
}

proptest! {
    #[test]
    fn no_finished_line_is_lost_or_duplicated(
        frames in proptest::collection::vec((0_usize..4, 0_usize..9), 1..40),
        columns in 8_u16..40,
        rows in 3_u16..12,
    ) {
        let mut terminal = EmulatedTerminal::new(columns, rows);
        let (mut said, mut last) = (Vec::new(), Vec::new());
        for (at, (finished, live)) in frames.iter().enumerate() {
            let new: Vec<String> = (0..*finished).map(|number| format!("s{at}.{number}")).collect();
            let region: Vec<String> = (0..=*live).map(|number| format!("r{at}.{number}")).collect();
            let refs = |texts: &[String]| -> Vec<String> { texts.to_vec() };
            let (new_refs, region_refs) = (refs(&new), refs(&region));
            terminal.frame(
                &new_refs.iter().map(String::as_str).collect::<Vec<_>>(),
                &region_refs.iter().map(String::as_str).collect::<Vec<_>>(),
            );
            said.extend(new);
            last = region[region.len().saturating_sub(usize::from(rows) - 1)..].to_vec();
        }
        said.extend(last);
        prop_assert_eq!(terminal.everything(), said);
    }
}
