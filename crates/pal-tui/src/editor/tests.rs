use super::*;

fn editor(text: &str) -> Editor {
    let mut editor = Editor::default();
    editor.insert(text);
    editor
}

#[test]
fn a_long_paste_is_sent_in_full_and_shown_as_a_placeholder() {
    let long = "line\n".repeat(40);
    let mut editor = editor("see ");
    editor.paste(&long);
    editor.insert(" please");
    let typed = editor.take();
    assert_eq!(typed.shown, "see [pasted text 1: 40 lines] please");
    assert_eq!(typed.sent, format!("see {long} please"));
    editor.paste("two\r\nlines");
    assert_eq!(editor.text(), "two\nlines", "a short one is typed text");
}

#[test]
fn a_deleted_placeholder_is_not_sent() {
    let mut editor = editor("a");
    editor.paste(&"x".repeat(5_000));
    editor.backspace();
    assert_eq!(editor.text(), "a");
    assert_eq!(editor.take().sent, "a");
}

#[test]
fn history_recall_keeps_the_draft() {
    let mut editor = Editor::new(vec!["one".into(), "two".into()]);
    editor.insert("dra");
    editor.up(40);
    editor.up(40);
    editor.up(40);
    assert_eq!(editor.text(), "one");
    editor.down(40);
    assert_eq!(editor.text(), "two");
    editor.down(40);
    assert_eq!(editor.text(), "dra");
    editor.down(40);
    assert_eq!(editor.text(), "dra");
}

#[test]
fn the_cursor_moves_by_characters_words_lines_and_rows() {
    let mut editor = editor("один e\u{301}clair 漢字\nsecond line");
    editor.up(80);
    assert_eq!(editor.cursor(), "один e\u{301}clair".len(), "the same column");
    editor.home();
    editor.word_right();
    assert_eq!(&editor.text()[..editor.cursor()], "один");
    editor.right();
    editor.right();
    assert_eq!(&editor.text()[..editor.cursor()], "один e\u{301}", "an accent is no character of its own");
    editor.kill_to_end();
    assert_eq!(editor.text(), "один e\u{301}\nsecond line");
    editor.yank();
    editor.kill_word();
    editor.kill_to_start();
    assert_eq!(editor.text(), "\nsecond line");
    editor.backspace();
    editor.delete();
    assert_eq!(editor.text(), "second line");
}

#[test]
fn rows_fit_and_break_at_spaces() {
    let text = "a few words and averyverylongword\n\nend";
    let laid = lay_out_text(text, text.len(), 10);
    let rows: Vec<&str> = laid.rows.iter().map(|row| &text[row.clone()]).collect();
    assert_eq!(rows, ["a few ", "words and ", "averyveryl", "ongword", "", "end"]);
    assert_eq!((laid.row, laid.column), (5, 3));
}

#[test]
fn an_image_is_sent_while_its_placeholder_exists() {
    let mut editor = editor("what is ");
    editor.paste_picture(PathBuf::from("/tmp/a shot.png"));
    editor.insert("?");
    let typed = editor.take();
    assert_eq!((typed.sent.as_str(), typed.pictures.len()), ("what is [picture 1: a shot.png]?", 1));
    editor.up(80);
    assert_eq!(editor.take().pictures.len(), 1, "an earlier prompt has its pictures");
    editor.up(80);
    editor.left();
    editor.delete();
    editor.backspace();
    assert_eq!(editor.text(), "what is ", "a mark is one character");
    assert_eq!(editor.take().pictures, Vec::<PathBuf>::new());
}
