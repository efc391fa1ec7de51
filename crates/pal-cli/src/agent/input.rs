//! `--input-format stream-json`: one object a line on standard input. A line that makes no sense is told by its number, and
//! the next one is read.

use std::io::{BufRead, Read};
use std::sync::mpsc;
use std::thread;

use pal_model::{array_items, fields, member, unescape};

/// The longest line: a few pictures as large as providers take them.
const LINE_BYTES_MAX: usize = 64 << 20;

/// What somebody wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Given {
    /// A message: a JSON string or a list of blocks, as it came.
    Prompt {
        /// What was said, as raw JSON.
        content: String,
        /// Whether it is for the work that is going on, not for after it.
        is_steering: bool,
    },
    /// What is going on shall end.
    Interrupt,
}

/// A line of standard input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GivenLine {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// What it says, or what is wrong with it.
    pub(crate) given: Result<Given, String>,
}

/// Reads lines on a thread of its own, so that what is going on can be steered. The channel closes when the input does.
pub(crate) fn listen(input: impl BufRead + Send + 'static) -> mpsc::Receiver<GivenLine> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in lines(input) {
            // Nobody listens any more: the program is about to end.
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// The lines of an input that are not blank.
fn lines(mut input: impl BufRead) -> impl Iterator<Item = GivenLine> {
    let (mut number, mut has_failed) = (0, false);
    std::iter::from_fn(move || {
        loop {
            if has_failed {
                return None;
            }
            number += 1;
            let mut bytes = Vec::new();
            match input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut bytes) {
                Ok(0) => return None,
                Ok(_) if bytes.len() > LINE_BYTES_MAX && !bytes.ends_with(b"\n") => {
                    has_failed = skip_line(&mut input).is_err();
                    let most = LINE_BYTES_MAX >> 20;
                    return Some(GivenLine { number, given: Err(format!("longer than {most} MB")) });
                }
                Ok(_) => {}
                Err(error) => {
                    has_failed = true;
                    return Some(GivenLine { number, given: Err(format!("cannot be read: {error}")) });
                }
            }
            let line = match std::str::from_utf8(&bytes) {
                Ok(line) => line.trim(),
                Err(_) => return Some(GivenLine { number, given: Err("not UTF-8".to_owned()) }),
            };
            if !line.is_empty() {
                return Some(GivenLine { number, given: parse(line) });
            }
        }
    })
}

/// Reads up to the end of a line without keeping it.
fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let (length, is_over) = (end.map_or(buffer.len(), |end| end + 1), end.is_some() || buffer.is_empty());
        input.consume(length);
        if is_over {
            return Ok(());
        }
    }
}

/// What a line says.
fn parse(line: &str) -> Result<Given, String> {
    let fields = fields(line).map_err(|error| format!("not a JSON object: {error}"))?;
    let string = |name: &str| member(&fields, name).and_then(unescape);
    match string("type").as_deref() {
        Some("user") => {
            let message = member(&fields, "message").ok_or("a `user` line wants a `message`")?;
            let is_steering = match member(&fields, "steer") {
                None | Some("null" | "false") => false,
                Some("true") => true,
                Some(other) => return Err(format!("`steer` is true or false, not {}", short(other))),
            };
            Ok(Given::Prompt { content: content(message)?, is_steering })
        }
        Some("control") => match string("subtype").as_deref() {
            Some("interrupt") => Ok(Given::Interrupt),
            Some(other) => Err(format!("the only `control` is `interrupt`, not `{}`", short(other))),
            None => Err("a `control` line wants a `subtype`: `interrupt`".to_owned()),
        },
        Some(other) => Err(format!("`type` is `user` or `control`, not `{}`", short(other))),
        None => Err("`type` is missing: `user` or `control`".to_owned()),
    }
}

/// The content of a message that a user may send, as it came.
fn content(message: &str) -> Result<String, String> {
    let fields = fields(message).map_err(|_| "`message` is no object".to_owned())?;
    match member(&fields, "role").map(unescape) {
        None => {}
        Some(Some(role)) if role == "user" => {}
        Some(_) => return Err("`message.role` is `user`".to_owned()),
    }
    let content = member(&fields, "content").ok_or("`message.content` is missing")?;
    if let Some(text) = unescape(content) {
        return if text.trim().is_empty() { Err(EMPTY.to_owned()) } else { Ok(content.to_owned()) };
    }
    let blocks =
        array_items(content).map_err(|_| "`message.content` is a string or a list of blocks".to_owned())?;
    if blocks.is_empty() {
        return Err(EMPTY.to_owned());
    }
    for (at, block) in blocks.iter().enumerate() {
        check(block).map_err(|why| format!("`message.content[{at}]`: {why}"))?;
    }
    Ok(content.to_owned())
}

const EMPTY: &str = "`message.content` is empty";

/// Whether a block is one that a user may send.
fn check(block: &str) -> Result<(), String> {
    let fields = fields(block).map_err(|_| "a block is an object".to_owned())?;
    let kind = member(&fields, "type").and_then(unescape);
    match kind.as_deref() {
        Some("text") => match member(&fields, "text").and_then(unescape) {
            Some(text) if !text.trim().is_empty() => Ok(()),
            Some(_) => Err("`text` is empty".to_owned()),
            None => Err("a `text` block wants a string `text`".to_owned()),
        },
        Some(kind @ ("image" | "document")) => {
            match member(&fields, "source").and_then(|source| pal_model::fields(source).ok()) {
                Some(_) => Ok(()),
                None => Err(format!("a block of type `{kind}` wants an object `source`")),
            }
        }
        Some(other) => {
            Err(format!("blocks are of type `text`, `image` or `document`, not `{}`", short(other)))
        }
        None => Err("a block wants a `type`".to_owned()),
    }
}

/// The beginning of something that somebody wrote.
fn short(text: &str) -> String {
    crate::colour::clipped(text, 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> Result<Given, String> {
        parse(line)
    }

    fn said(content: &str, is_steering: bool) -> Given {
        Given::Prompt { content: content.to_owned(), is_steering }
    }

    #[test]
    fn prompts_keep_their_bytes() {
        let line = r#"{"type":"user","session_id":"x","message":{"role":"user","content":"say \u00e9"}}"#;
        assert_eq!(given(line), Ok(said(r#""say \u00e9""#, false)));
        let blocks = r#"[{"type":"text","text":"look"}, {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}},{"type":"document","source":{}, "title":"T"}]"#;
        let line = format!(r#"{{"message":{{"content":{blocks}}},"type":"user","steer":true}}"#);
        assert_eq!(given(&line), Ok(said(blocks, true)));
        assert_eq!(given(r#"{"type":"control","subtype":"interrupt"}"#), Ok(Given::Interrupt));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, why) in [
            ("hello", "not a JSON object"),
            ("[]", "not a JSON object"),
            ("{}", "`type` is missing"),
            (r#"{"type":"assistant"}"#, "not `assistant`"),
            (r#"{"type":"control"}"#, "wants a `subtype`"),
            (r#"{"type":"control","subtype":"dance"}"#, "not `dance`"),
            (r#"{"type":"user"}"#, "wants a `message`"),
            (r#"{"type":"user","message":"hi"}"#, "`message` is no object"),
            (r#"{"type":"user","message":{"role":"assistant","content":"hi"}}"#, "`message.role`"),
            (r#"{"type":"user","message":{"role":"user"}}"#, "`message.content` is missing"),
            (r#"{"type":"user","message":{"content":" "}}"#, "empty"),
            (r#"{"type":"user","message":{"content":[]}}"#, "empty"),
            (r#"{"type":"user","message":{"content":7}}"#, "a string or a list of blocks"),
            (r#"{"type":"user","message":{"content":["hi"]}}"#, "content[0]`: a block is an object"),
            (r#"{"type":"user","message":{"content":[{"type":"text"}]}}"#, "wants a string `text`"),
            (r#"{"type":"user","message":{"content":[{"type":"image","source":"x"}]}}"#, "object `source`"),
            (r#"{"type":"user","message":{"content":[{"type":"tool_result"}]}}"#, "not `tool_result`"),
            (r#"{"type":"user","steer":"yes","message":{"content":"hi"}}"#, "`steer` is true or false"),
        ] {
            let error = given(line).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn a_bad_line_spoils_no_other() {
        let prompt = r#"{"type":"user","message":{"content":"hi"}}"#;
        let input = [prompt.as_bytes(), b"\n\n\xff\xfe\noops\n  \n", prompt.as_bytes()].concat();
        let read: Vec<(u64, bool)> =
            lines(&input[..]).map(|line| (line.number, line.given.is_ok())).collect();
        assert_eq!(read, [(1, true), (3, false), (4, false), (6, true)]);
        let long = [vec![b'x'; LINE_BYTES_MAX + 10], b"\n".to_vec(), prompt.as_bytes().to_vec()].concat();
        let read: Vec<GivenLine> = lines(&long[..]).collect();
        assert!(read[0].given.as_ref().is_err_and(|why| why.contains("longer than 64 MB")));
        assert_eq!((read.len(), read[1].number, read[1].given.is_ok()), (2, 2, true));
        assert_eq!(listen(std::io::Cursor::new(input)).iter().count(), 4);
    }
}
