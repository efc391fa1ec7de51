//! Tests of the permission dialog.

use super::*;
use crate::live_region::{LiveParts, compose, note_question_shown, question_rows};
use crate::screen::Screen;
use crate::status_line::StatusLine;
use crate::transcript::Transcript;

fn question_of(asked: PermissionQuestion) -> (PermissionDialog, mpsc::Receiver<Consent>) {
    let (sender, receiver) = mpsc::channel();
    (PermissionDialog::new(asked, sender), receiver)
}

fn question(rule: &str) -> (PermissionDialog, mpsc::Receiver<Consent>) {
    question_of(question_about("Bash", r#"{"command":"git push\n\u001b[2Jrm"}"#, rule))
}

/// Emulated terminal with a dialog on it.
struct DialogTerminal {
    screen: Screen<Vec<u8>>,
    parser: vt100::Parser,
}

impl DialogTerminal {
    fn new(width: u16, height: u16) -> DialogTerminal {
        DialogTerminal {
            screen: Screen::new(Vec::new(), width.into(), height.into(), false),
            parser: vt100::Parser::new(height.try_into().unwrap(), width.try_into().unwrap(), 0),
        }
    }

    fn resize(&mut self, width: u16, height: u16) {
        *self = DialogTerminal::new(width, height);
    }

    /// Draws a frame and returns the screen's text.
    fn draw(&mut self, question: &mut PermissionDialog) -> String {
        let (columns, rows) = (self.screen.columns(), self.screen.rows());
        question.lay_out(columns, question_rows(rows), Theme::default());
        let transcript = Transcript::new(columns, Theme::default());
        let parts = LiveParts {
            transcript: &transcript,
            status: &StatusLine::default(),
            editor: &Editor::default(),
            suggestion: None,
            question: Some(question),
            picker: None,
            suggestions: None,
            working: None,
            hint: None,
            status_lines: Vec::new(),
            vi_mode: None,
            has_key_help: false,
            is_on_dialog: false,
        };
        let (live, first) = compose(&parts, columns, rows, Theme::default());
        self.screen.frame(&[], &live).unwrap();
        note_question_shown(question, first.unwrap(), &live, rows);
        let bytes = std::mem::take(self.screen.writer());
        self.parser.process(&bytes);
        self.parser.screen().contents()
    }
}

fn press_key(question: &mut PermissionDialog, code: KeyCode) -> DialogOutcome {
    question.key(&KeyEvent::new(code, KeyModifiers::NONE))
}

fn press(question: &mut PermissionDialog, keys: &str) -> DialogOutcome {
    let key = |character: char| match character {
        '\n' => KeyCode::Enter,
        '\u{1b}' => KeyCode::Esc,
        other => KeyCode::Char(other),
    };
    keys.chars().map(|character| press_key(question, key(character))).last().unwrap_or(DialogOutcome::Open)
}

fn heredoc(count: usize) -> String {
    let lines: String = (1..count).map(|number| format!("echo {number}\n")).collect();
    let command = format!("bash <<'END'\n{lines}rm -rf ~/important\nEND");
    serde_json::json!({ "command": command }).to_string()
}

#[test]
fn every_answer_reaches_the_asker() {
    for (keys, consent, answered) in [
        ("1", Consent::Once, DialogOutcome::Done),
        ("\n", Consent::Once, DialogOutcome::Done),
        ("2", Consent::Project, DialogOutcome::Done),
        ("3\n", Consent::No(None), DialogOutcome::Done),
        ("3not so\n", Consent::No(Some(String::from("not so"))), DialogOutcome::Done),
        ("\u{1b}", Consent::No(None), DialogOutcome::Stopped),
    ] {
        let (mut question, answer) = question("Bash(git push:*)");
        DialogTerminal::new(80, 24).draw(&mut question);
        assert_eq!(press(&mut question, keys), answered, "{keys:?}");
        assert_eq!(answer.try_recv(), Ok(consent), "{keys:?}");
    }
}

#[test]
fn always_is_missing_without_a_rule() {
    let (mut question, answer) = question("");
    DialogTerminal::new(80, 24).draw(&mut question);
    assert_eq!(press(&mut question, "3"), DialogOutcome::NotForDialog);
    assert!(answer.try_recv().is_err());
    assert_eq!(press(&mut question, "2no\n"), DialogOutcome::Done, "the second of two is a no");
    assert_eq!(answer.try_recv(), Ok(Consent::No(Some(String::from("no")))));
}

#[test]
fn a_small_screen_names_the_same_keys() {
    let input = serde_json::json!({ "command": "ls ".repeat(60) }).to_string();
    for (width, height) in [(24, 6), (40, 10), (80, 7)] {
        let (mut question, _answer) = question_of(question_about("Bash", &input, "Bash(ls:*)"));
        let shown = DialogTerminal::new(width, height).draw(&mut question);
        for name in ["1 yes", "2 always", "3 no"] {
            assert!(shown.contains(name), "{width}x{height}, {name}: {shown}");
        }
        let plan = serde_json::json!({ "plan": "do it

".repeat(20) })
        .to_string();
        let (mut question, _answer) = question_of(question_about(EXIT_PLAN, &plan, ""));
        let shown = DialogTerminal::new(width, height).draw(&mut question);
        for name in ["1 yes", "2 ", "3 edit", "4 no"] {
            assert!(shown.contains(name), "{width}x{height}, {name}: {shown}");
        }
    }
}

#[test]
fn a_command_is_shown_in_full_and_sanitized() {
    let (mut question, _answer) = question("Bash");
    let text = DialogTerminal::new(40, 24).draw(&mut question);
    assert!(text.contains("  1│ git push\n") && text.contains("  2│ ⟨U+001B⟩[2Jrm\n"), "{text}");
}

#[test]
fn approval_needs_every_line_on_screen() {
    for keys in ["\n", "1", "2"] {
        let (mut question, answer) = question_of(question_about("Bash", &heredoc(60), "Bash(bash:*)"));
        let mut desktop = DialogTerminal::new(80, 24);
        let text = desktop.draw(&mut question);
        assert!(text.contains("bash <<'END'") && !text.contains("rm -rf"), "{text}");
        assert_eq!(press(&mut question, keys), DialogOutcome::Open, "{keys:?}");
        let text = desktop.draw(&mut question);
        assert!(text.contains("scroll to the end first"), "{text}");
        // The end alone is not all of it.
        press_key(&mut question, KeyCode::End);
        let text = desktop.draw(&mut question);
        assert!(text.contains("rm -rf ~/important"), "{text}");
        assert_eq!(press(&mut question, keys), DialogOutcome::Open, "{keys:?}");
        press_key(&mut question, KeyCode::Home);
        desktop.draw(&mut question);
        for _ in 0..10 {
            // However fast one scrolls, no page is passed over that was not drawn.
            press_key(&mut question, KeyCode::PageDown);
            press_key(&mut question, KeyCode::PageDown);
            desktop.draw(&mut question);
        }
        assert!(answer.try_recv().is_err());
        let text = desktop.draw(&mut question);
        assert!(text.contains("all seen"), "{text}");
        assert_eq!(press(&mut question, keys), DialogOutcome::Done, "{keys:?}");
        assert!(answer.try_recv().is_ok());
    }
}

#[test]
fn a_call_can_be_refused_at_any_time() {
    for (keys, answered) in [("3\n", DialogOutcome::Done), ("\u{1b}", DialogOutcome::Stopped)] {
        let (mut question, answer) = question_of(question_about("Bash", &heredoc(60), "Bash"));
        DialogTerminal::new(80, 24).draw(&mut question);
        assert_eq!(press(&mut question, keys), answered);
        assert_eq!(answer.try_recv(), Ok(Consent::No(None)));
    }
}

#[test]
fn a_new_size_resets_the_seen_lines() {
    let (mut question, answer) = question_of(question_about("Bash", &heredoc(12), "Bash"));
    let mut desktop = DialogTerminal::new(80, 40);
    desktop.draw(&mut question);
    assert_eq!(question.page.n_unseen(), 0, "all of it fits");
    desktop.resize(80, 14);
    desktop.draw(&mut question);
    assert!(question.page.n_unseen() > 0);
    assert_eq!(press(&mut question, "1"), DialogOutcome::Open);
    desktop.resize(60, 40);
    desktop.draw(&mut question);
    assert_eq!(press(&mut question, "1"), DialogOutcome::Done);
    assert_eq!(answer.try_recv(), Ok(Consent::Once));
}

#[test]
fn every_line_can_be_scrolled_to_on_every_screen() {
    let long = "x".repeat(3_000);
    let input = serde_json::json!({ "command": format!("echo {long} END-OF-LINE") }).to_string();
    for (width, height) in [(200, 50), (80, 24), (40, 10), (20, 6), (10, 4), (6, 3)] {
        let (mut question, answer) = question_of(question_about("Bash", &input, "Bash(echo:*)"));
        let mut desktop = DialogTerminal::new(width, height);
        let mut all = desktop.draw(&mut question);
        while question.page.n_unseen() > 0 {
            assert_eq!(press(&mut question, "1"), DialogOutcome::Open, "{width}x{height}");
            press_key(&mut question, KeyCode::PageDown);
            all.push_str(&desktop.draw(&mut question));
        }
        let joined: String = all.split_whitespace().collect();
        let end = joined.replace(['┊', '│'], "").contains("END-OF-LINE");
        assert!(end || width < 40, "{width}x{height}: {all}");
        assert_eq!(press(&mut question, "1"), DialogOutcome::Done, "{width}x{height}");
        assert_eq!(answer.try_recv(), Ok(Consent::Once));
    }
}

#[test]
fn all_fields_are_shown_and_invisible_characters_are_spelled_out() {
    let text = |tool: &str, input: serde_json::Value| {
        let (mut question, _answer) = question_of(question_about(tool, &input.to_string(), ""));
        DialogTerminal::new(100, 60).draw(&mut question)
    };
    let shown = text(
        "mcp__db__query",
        serde_json::json!({"sql": "drop\u{202e} table x", "options": {"force": true}}),
    );
    assert!(shown.contains("sql: drop⟨U+202E⟩ table x") && shown.contains("\"force\": true"), "{shown}");
    let shown =
        text("WebFetch", serde_json::json!({"url": "https://a.example/x?q=1", "prompt": "a\nb\u{200b}"}));
    assert!(shown.contains("url: https://a.example/x?q=1") && shown.contains("2│ b⟨U+200B⟩"), "{shown}");
    let shown = text("Agent", serde_json::json!({"description": "look", "prompt": "one\ntwo\nthree"}));
    assert!(shown.contains("3│ three"), "{shown}");
    let shown = text("Bash", serde_json::json!({"command": "make", "run_in_background": true}));
    assert!(shown.contains("│ make") && shown.contains("run_in_background: true"), "{shown}");
    let edits = serde_json::json!([
        {"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d", "replace_all": true}
    ]);
    let shown = text("Edit", serde_json::json!({"file_path": "x.rs", "edits": edits}));
    for line in ["│ x.rs", "- a", "+ b", "- c", "+ d", "change 2 replaces every occurrence"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let shown = text("ExitPlanMode", serde_json::json!({"plan": "first\nlast"}));
    assert!(shown.contains("first last"), "{shown}");
}

#[test]
fn a_plan_is_markdown_and_can_be_edited_approved_or_rejected() {
    let plan = serde_json::json!({"plan": "# Steps\n\n1. **read** it\n2. change it"}).to_string();
    for (keys, consent) in [
        ("1", Consent::Plan { changed: None, accepts_edits: false }),
        ("2", Consent::Plan { changed: None, accepts_edits: true }),
        ("4too much\n", Consent::No(Some(String::from("too much")))),
    ] {
        let (mut question, answer) = question_of(question_about(EXIT_PLAN, &plan, ""));
        let shown = DialogTerminal::new(80, 24).draw(&mut question);
        assert!(shown.contains("1. read it") && !shown.contains("**"), "{shown}");
        assert_eq!(press(&mut question, keys), DialogOutcome::Done, "{keys:?}");
        assert_eq!(answer.try_recv(), Ok(consent), "{keys:?}");
    }
    let (mut question, answer) = question_of(question_about(EXIT_PLAN, &plan, ""));
    let mut desktop = DialogTerminal::new(80, 24);
    desktop.draw(&mut question);
    assert_eq!(press(&mut question, "3"), DialogOutcome::Edit);
    assert_eq!(question.text_to_edit().as_deref(), Some("# Steps\n\n1. **read** it\n2. change it"));
    question.set_edited(String::from("only read it"));
    assert_eq!(press(&mut question, "1"), DialogOutcome::Open, "the new plan was not on screen yet");
    assert!(desktop.draw(&mut question).contains("only read it"));
    assert_eq!(press(&mut question, "1"), DialogOutcome::Done);
    let changed = Some(String::from("only read it"));
    assert_eq!(answer.try_recv(), Ok(Consent::Plan { changed, accepts_edits: false }));
}

#[test]
fn an_edit_is_shown_in_its_file_with_line_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (1..=40).map(|number| format!("line {number}\n")).collect();
    std::fs::write(folder.path().join("a.rs"), lines).unwrap();
    let input = serde_json::json!({"file_path": "a.rs", "old_string": "line 20", "new_string": "line xx"});
    let mut question = question_about("Edit", &input.to_string(), "");
    question.directory = folder.path().display().to_string();
    let (mut question, _answer) = question_of(question);
    let shown = DialogTerminal::new(80, 40).draw(&mut question);
    for line in ["19   line 19", "20 - line 20", "20 + line xx", "21   line 21"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(!shown.contains("line 30"), "{shown}");
}

#[test]
fn an_overwritten_file_is_shown_as_a_diff() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept.txt");
    std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
    let input = serde_json::json!({"file_path": path, "content": "one\n2\nthree\n"}).to_string();
    let (mut question, _answer) = question_of(question_about("Write", &input, ""));
    let shown = DialogTerminal::new(100, 40).draw(&mut question);
    assert!(shown.contains("- two") && shown.contains("+ 2") && !shown.contains("+ three"), "{shown}");
}

#[test]
fn marks_are_described_with_their_line_numbers() {
    let mut asked = question_about("Bash", &heredoc(3), "Bash");
    let mark = |start: usize, end: usize, is_dangerous: bool, sentence: &str| pal_events::ConsentMark {
        start,
        end,
        kind: String::from("deletion"),
        is_dangerous,
        sentence: sentence.to_owned(),
    };
    asked.marks = vec![mark(5, 12, false, "feeds a text"), mark(27, 45, true, "deletes files")];
    let (mut question, _answer) = question_of(asked);
    let shown = DialogTerminal::new(80, 40).draw(&mut question);
    let danger = shown.find("! line 4: deletes files").expect(&shown);
    assert!(danger < shown.find("· line 1: feeds a text").expect(&shown), "{shown}");
    let styled = question.page.document.iter().flat_map(|line| &line.spans);
    let marked: Vec<String> = styled
        .filter(|span| span.style.add_modifier.contains(ratatui_core::style::Modifier::UNDERLINED))
        .map(|span| span.content.to_string())
        .collect();
    assert_eq!(marked, ["<<'END'", "rm -rf ~/important"]);
}

#[test]
fn the_stored_rule_is_shown_verbatim() {
    let (mut question, _answer) = question("Bash(git push:*)");
    let shown = DialogTerminal::new(80, 24).draw(&mut question);
    assert!(shown.contains("2 yes, always in this project: Bash(git push:*)"), "{shown}");
    let rule = format!("Bash(one\n  two {})", "y".repeat(100));
    let (mut question, _answer) = question_of(question_about("Bash", r#"{"command":"x"}"#, &rule));
    let shown = DialogTerminal::new(80, 24).draw(&mut question);
    assert!(shown.contains("2 yes, always in this project: the rule above"), "{shown}");
    assert!(shown.contains("1│ Bash(one") && shown.contains("2│   two yyy"), "{shown}");
}
