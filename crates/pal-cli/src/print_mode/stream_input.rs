//! `--input-format stream-json`: one JSON object a line on standard input. A malformed line is reported by its number and
//! skipped.

use std::io::{BufRead, Read};
use std::sync::mpsc;
use std::thread;

use pal_model::{array_items, member, object_fields, unescape};
use serde_json::Value;

/// Longest line: a few pictures of the largest size that providers accept.
const LINE_BYTES_MAX: usize = 64 << 20;

/// A message on standard input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum InputMessage {
    /// A prompt.
    Prompt {
        /// Raw JSON: a string or an array of blocks.
        content: String,
        /// Whether it steers the current work instead of waiting for its end.
        is_steering: bool,
    },
    /// Stop the current work and give up waiting prompts.
    Interrupt,
    /// A request of the driving program.
    Request {
        /// Id that the reply repeats.
        id: String,
        /// Kind of request.
        subtype: String,
        /// The whole request.
        request: Value,
    },
    /// A reply to a request of ours.
    Reply(Value),
    /// A message that needs no action.
    Ignored,
}

/// A line of standard input with its message or its error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct InputLine {
    /// Line number, from 1.
    pub(crate) number: u64,
    pub(crate) message: Result<InputMessage, String>,
}

/// Reads messages on a thread of its own. The channel closes at the end of the input.
pub(crate) fn read_messages(input: impl BufRead + Send + 'static) -> mpsc::Receiver<InputLine> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in lines(input) {
            // The receiver is gone: the program is ending.
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Lines of an input that are not blank.
fn lines(mut input: impl BufRead) -> impl Iterator<Item = InputLine> {
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
                    return Some(InputLine { number, message: Err(format!("longer than {most} MB")) });
                }
                Ok(_) => {}
                Err(error) => {
                    has_failed = true;
                    return Some(InputLine { number, message: Err(format!("cannot be read: {error}")) });
                }
            }
            let line = match std::str::from_utf8(&bytes) {
                Ok(line) => line.trim(),
                Err(_) => return Some(InputLine { number, message: Err("not UTF-8".to_owned()) }),
            };
            if !line.is_empty() {
                return Some(InputLine { number, message: parse(line) });
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

fn parse(line: &str) -> Result<InputMessage, String> {
    let fields = object_fields(line).map_err(|error| format!("not a JSON object: {error}"))?;
    let string = |name: &str| member(&fields, name).and_then(unescape);
    match string("type").as_deref() {
        Some("user") => {
            let message = member(&fields, "message").ok_or("a `user` line needs a `message`")?;
            let is_steering = match member(&fields, "steer") {
                None | Some("null" | "false") => false,
                Some("true") => true,
                Some(other) => return Err(format!("`steer` must be true or false, not {}", short(other))),
            };
            Ok(InputMessage::Prompt { content: content(message)?, is_steering })
        }
        Some("control") => match string("subtype").as_deref() {
            Some("interrupt") => Ok(InputMessage::Interrupt),
            Some(other) => Err(format!("the only `control` is `interrupt`, not `{}`", short(other))),
            None => Err("a `control` line needs a `subtype`: `interrupt`".to_owned()),
        },
        Some("control_request") => control_request(line),
        Some("control_response") => {
            let response = value(line)?.get_mut("response").map(Value::take);
            Ok(InputMessage::Reply(response.ok_or("a `control_response` line needs a `response`")?))
        }
        Some("control_cancel_request" | "keep_alive") => Ok(InputMessage::Ignored),
        Some(other) => Err(format!("`type` must be `user` or `control`, not `{}`", short(other))),
        None => Err("`type` is missing: `user` or `control`".to_owned()),
    }
}

fn value(line: &str) -> Result<Value, String> {
    serde_json::from_str(line).map_err(|error| format!("not a JSON object: {error}"))
}

fn control_request(line: &str) -> Result<InputMessage, String> {
    let mut message = value(line)?;
    let id = message.get("request_id").and_then(Value::as_str).map(str::to_owned);
    let id = id.ok_or("a `control_request` line needs a `request_id`")?;
    let request = message.get_mut("request").map(Value::take).unwrap_or_default();
    let subtype = request.get("subtype").and_then(Value::as_str).map(str::to_owned);
    let subtype = subtype.ok_or("a `control_request` line needs a `request` with a `subtype`")?;
    Ok(InputMessage::Request { id, subtype, request })
}

/// Checks a user message and returns its content as raw JSON.
fn content(message: &str) -> Result<String, String> {
    let fields = object_fields(message).map_err(|_| "`message` must be an object".to_owned())?;
    match member(&fields, "role").map(unescape) {
        None => {}
        Some(Some(role)) if role == "user" => {}
        Some(_) => return Err("`message.role` must be `user`".to_owned()),
    }
    let content = member(&fields, "content").ok_or("`message.content` is missing")?;
    if let Some(text) = unescape(content) {
        return if text.trim().is_empty() { Err(EMPTY.to_owned()) } else { Ok(content.to_owned()) };
    }
    let blocks = array_items(content)
        .map_err(|_| "`message.content` must be a string or a list of blocks".to_owned())?;
    if blocks.is_empty() {
        return Err(EMPTY.to_owned());
    }
    for (at, block) in blocks.iter().enumerate() {
        check(block).map_err(|why| format!("`message.content[{at}]`: {why}"))?;
    }
    Ok(content.to_owned())
}

const EMPTY: &str = "`message.content` is empty";

/// Checks that a user may send a block.
fn check(block: &str) -> Result<(), String> {
    let fields = object_fields(block).map_err(|_| "a block must be an object".to_owned())?;
    let kind = member(&fields, "type").and_then(unescape);
    match kind.as_deref() {
        Some("text") => match member(&fields, "text").and_then(unescape) {
            Some(text) if !text.trim().is_empty() => Ok(()),
            Some(_) => Err("`text` is empty".to_owned()),
            None => Err("a `text` block needs a string `text`".to_owned()),
        },
        Some(kind @ ("image" | "document")) => {
            match member(&fields, "source").and_then(|source| pal_model::object_fields(source).ok()) {
                Some(_) => Ok(()),
                None => Err(format!("a block of type `{kind}` needs an object `source`")),
            }
        }
        Some(other) => {
            Err(format!("a block's type must be `text`, `image` or `document`, not `{}`", short(other)))
        }
        None => Err("a block needs a `type`".to_owned()),
    }
}

fn short(text: &str) -> String {
    pal_report::clip_line(text, 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<InputMessage, String> {
        parse(line)
    }

    fn prompt(content: &str, is_steering: bool) -> InputMessage {
        InputMessage::Prompt { content: content.to_owned(), is_steering }
    }

    #[test]
    fn prompts_keep_their_bytes() {
        let line = r#"{"type":"user","session_id":"x","message":{"role":"user","content":"say \u00e9"}}"#;
        assert_eq!(parsed(line), Ok(prompt(r#""say \u00e9""#, false)));
        let blocks = r#"[{"type":"text","text":"look"}, {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}},{"type":"document","source":{}, "title":"T"}]"#;
        let line = format!(r#"{{"message":{{"content":{blocks}}},"type":"user","steer":true}}"#);
        assert_eq!(parsed(&line), Ok(prompt(blocks, true)));
        assert_eq!(parsed(r#"{"type":"control","subtype":"interrupt"}"#), Ok(InputMessage::Interrupt));
    }

    #[test]
    fn errors_name_the_problem() {
        for (line, why) in [
            ("hello", "not a JSON object"),
            ("[]", "not a JSON object"),
            ("{}", "`type` is missing"),
            (r#"{"type":"assistant"}"#, "not `assistant`"),
            (r#"{"type":"control"}"#, "needs a `subtype`"),
            (r#"{"type":"control_request","request":{"subtype":"interrupt"}}"#, "needs a `request_id`"),
            (r#"{"type":"control_request","request_id":"1"}"#, "a `request` with a `subtype`"),
            (r#"{"type":"control_response"}"#, "needs a `response`"),
            (r#"{"type":"control","subtype":"dance"}"#, "not `dance`"),
            (r#"{"type":"user"}"#, "needs a `message`"),
            (r#"{"type":"user","message":"hi"}"#, "`message` must be an object"),
            (r#"{"type":"user","message":{"role":"assistant","content":"hi"}}"#, "`message.role`"),
            (r#"{"type":"user","message":{"role":"user"}}"#, "`message.content` is missing"),
            (r#"{"type":"user","message":{"content":" "}}"#, "empty"),
            (r#"{"type":"user","message":{"content":[]}}"#, "empty"),
            (r#"{"type":"user","message":{"content":7}}"#, "a string or a list of blocks"),
            (r#"{"type":"user","message":{"content":["hi"]}}"#, "content[0]`: a block must be an object"),
            (r#"{"type":"user","message":{"content":[{"type":"text"}]}}"#, "needs a string `text`"),
            (r#"{"type":"user","message":{"content":[{"type":"image","source":"x"}]}}"#, "object `source`"),
            (r#"{"type":"user","message":{"content":[{"type":"tool_result"}]}}"#, "not `tool_result`"),
            (r#"{"type":"user","steer":"yes","message":{"content":"hi"}}"#, "`steer` must be true or false"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn a_bad_line_is_skipped() {
        let prompt = r#"{"type":"user","message":{"content":"hi"}}"#;
        let input = [prompt.as_bytes(), b"\n\n\xff\xfe\noops\n  \n", prompt.as_bytes()].concat();
        let read: Vec<(u64, bool)> =
            lines(&input[..]).map(|line| (line.number, line.message.is_ok())).collect();
        assert_eq!(read, [(1, true), (3, false), (4, false), (6, true)]);
        let long = [vec![b'x'; LINE_BYTES_MAX + 10], b"\n".to_vec(), prompt.as_bytes().to_vec()].concat();
        let read: Vec<InputLine> = lines(&long[..]).collect();
        assert!(read[0].message.as_ref().is_err_and(|why| why.contains("longer than 64 MB")));
        assert_eq!((read.len(), read[1].number, read[1].message.is_ok()), (2, 2, true));
        assert_eq!(read_messages(std::io::Cursor::new(input)).iter().count(), 4);
    }
}
