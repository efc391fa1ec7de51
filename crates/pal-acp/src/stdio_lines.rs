//! Line transport over standard input and output.
//!
//! Input is read on its own thread. Invalid UTF-8 is replaced, not refused: a client that sends garbage gets an error response
//! and keeps its sessions.

use std::io::{BufRead, BufReader, Error};
use std::thread;

use agent_client_protocol::Lines;
use futures_util::{Sink, Stream, sink, stream};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::{Receiver, channel};

/// Maximum length of a line, in bytes; images come inline. Longer lines are cut, which makes them invalid messages.
const LINE_BYTES_MAX: usize = 64 << 20;
/// Capacity of the queue of incoming lines.
const LINES_WAITING: usize = 64;

/// Creates the transport of the connection.
pub(crate) fn stdio() -> Lines<
    impl Sink<String, Error = Error> + Send + 'static,
    impl Stream<Item = std::io::Result<String>> + Send + 'static,
> {
    let (sender, lines) = channel(LINES_WAITING);
    thread::spawn(move || {
        let mut input = BufReader::new(std::io::stdin());
        while let Some(line) = next_line(&mut input) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    let incoming = stream::unfold(lines, |mut lines: Receiver<String>| async move {
        lines.recv().await.map(|line| (Ok(line), lines))
    });
    let outgoing = sink::unfold(tokio::io::stdout(), |mut out, mut line: String| async move {
        line.push('\n');
        out.write_all(line.as_bytes()).await?;
        out.flush().await?;
        Ok::<_, Error>(out)
    });
    Lines::new(Box::pin(outgoing), Box::pin(incoming))
}

/// Reads the next non-blank line; `None` at the end of input.
fn next_line(input: &mut impl BufRead) -> Option<String> {
    loop {
        let mut line = Vec::new();
        let is_last = loop {
            let buffer = match input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let taken = &buffer[..end.unwrap_or(buffer.len())];
            let room = LINE_BYTES_MAX - line.len();
            line.extend_from_slice(&taken[..taken.len().min(room)]);
            let (read, is_over) = (taken.len() + usize::from(end.is_some()), buffer.is_empty());
            input.consume(read);
            if end.is_some() || is_over {
                break is_over;
            }
        };
        if !line.iter().all(u8::is_ascii_whitespace) {
            return Some(String::from_utf8_lossy(&line).into_owned());
        }
        if is_last {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_split_at_newlines_and_replace_invalid_utf8() {
        let mut input = BufReader::with_capacity(3, &b"{\"a\":1}\n\n  \r\n\xff\xfe\nlast"[..]);
        assert_eq!(next_line(&mut input).as_deref(), Some("{\"a\":1}"));
        assert_eq!(next_line(&mut input).as_deref(), Some("\u{fffd}\u{fffd}"));
        assert_eq!(next_line(&mut input).as_deref(), Some("last"));
        assert_eq!(next_line(&mut input), None);
    }
}
