//! Binary event frames of Bedrock (`application/vnd.amazon.eventstream`), decoded to the server-sent events of the Messages API.
//!
//! A frame: total length, length of the headers, checksum of both (4 bytes each, big-endian), headers, payload, checksum of
//! everything before it. A header: length and bytes of its name, a type, and for type 7 a length of 2 bytes and a text.

use pal_model::{escape_into, member_string, object_fields};

use super::chunk_event;

/// Bytes before the headers of a frame.
const PRELUDE: usize = 12;

/// Maximum bytes of a frame; those of Bedrock are much smaller.
const FRAME_BYTES_MAX: usize = 16 << 20;

/// Type of a header whose value is a text.
const TEXT_HEADER: u8 = 7;

/// Incremental decoder: bytes in any pieces in, text of server-sent events out.
#[derive(Debug, Default)]
pub(crate) struct EventFrameDecoder {
    pending: Vec<u8>,
}

impl EventFrameDecoder {
    /// Takes bytes and returns the events that are complete; the error says why the stream cannot be read on.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        self.pending.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut from = 0;
        while let Some(frame) = next_frame(&self.pending[from..])? {
            from += frame.length;
            events.extend_from_slice(frame.event()?.as_bytes());
        }
        self.pending.drain(..from);
        Ok(events)
    }
}

/// A complete frame.
struct EventFrame<'a> {
    length: usize,
    headers: Vec<(&'a str, &'a str)>,
    payload: &'a str,
}

fn next_frame(bytes: &[u8]) -> Result<Option<EventFrame<'_>>, String> {
    if bytes.len() < PRELUDE {
        return Ok(None);
    }
    let (length, header_length) = (number(bytes, 0) as usize, number(bytes, 4) as usize);
    if number(bytes, 8) != crc32(&bytes[..8]) {
        return Err(String::from("an event frame has a wrong checksum"));
    }
    if length > FRAME_BYTES_MAX || length < PRELUDE + header_length + 4 {
        return Err(format!("an event frame has an impossible length: {length} bytes"));
    }
    let Some(frame) = bytes.get(..length) else { return Ok(None) };
    let (content, checksum) = frame.split_at(length - 4);
    if number(checksum, 0) != crc32(content) {
        return Err(String::from("an event frame has a wrong checksum"));
    }
    let headers = headers(&content[PRELUDE..PRELUDE + header_length])
        .ok_or_else(|| String::from("the headers of an event frame cannot be read"))?;
    let payload = std::str::from_utf8(&content[PRELUDE + header_length..])
        .map_err(|_| String::from("an event frame is no UTF-8"))?;
    Ok(Some(EventFrame { length, headers, payload }))
}

impl EventFrame<'_> {
    /// The server-sent event that the frame stands for; empty for frames without one.
    fn event(&self) -> Result<String, String> {
        let header =
            |name: &str| self.headers.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value);
        let (kind, data) = match (header(":message-type"), header(":event-type")) {
            ("event", "chunk") => {
                let data = chunk_event(self.payload)
                    .ok_or_else(|| String::from("the content of an event frame cannot be read"))?;
                let fields = object_fields(&data).map_err(|error| error.to_string())?;
                let kind = member_string(&fields, "type").unwrap_or_default().into_owned();
                (kind, data)
            }
            ("exception", _) => (String::from("error"), self.error(header(":exception-type"), "message")),
            ("error", _) => {
                let mut data = String::from(r#"{"type":"error","error":{"type":"api_error","message":"#);
                escape_into(&mut data, header(":error-message"));
                data.push_str("}}");
                (String::from("error"), data)
            }
            _ => return Ok(String::new()),
        };
        // A line end inside the data would end the event.
        Ok(format!("event: {kind}\ndata: {}\n\n", data.replace(['\n', '\r'], " ")))
    }

    /// An exception as an error of the Messages API.
    fn error(&self, exception: &str, member: &str) -> String {
        let kind = match exception {
            "throttlingException" => "rate_limit_error",
            "validationException" => "invalid_request_error",
            "serviceUnavailableException" => "overloaded_error",
            "modelTimeoutException" => "timeout_error",
            _ => "api_error",
        };
        let message = object_fields(self.payload)
            .ok()
            .and_then(|fields| member_string(&fields, member).map(|text| text.into_owned()));
        let mut data = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"#);
        escape_into(&mut data, &message.unwrap_or_else(|| exception.to_owned()));
        data.push_str("}}");
        data
    }
}

/// Headers with text values; others are skipped. None if they are malformed.
fn headers(mut bytes: &[u8]) -> Option<Vec<(&str, &str)>> {
    let mut found = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length))?;
        let (kind, rest) = rest.split_first()?;
        let size = match kind {
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            9 => 16,
            6 | 7 => 2 + usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])),
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(size)?;
        if *kind == TEXT_HEADER {
            found.push((std::str::from_utf8(name).ok()?, std::str::from_utf8(&value[2..]).ok()?));
        }
        bytes = rest;
    }
    Some(found)
}

/// Big-endian number of 4 bytes.
fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// CRC-32 as in zip, bit by bit: frames are small.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |value: u32| if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
    let fold = |sum: u32, byte: &u8| (0..8).fold(sum ^ u32::from(*byte), |value, _| step(value));
    !bytes.iter().fold(!0, fold)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
        let mut head = Vec::new();
        for (name, value) in headers {
            head.push(name.len() as u8);
            head.extend_from_slice(name.as_bytes());
            head.push(TEXT_HEADER);
            head.extend_from_slice(&(value.len() as u16).to_be_bytes());
            head.extend_from_slice(value.as_bytes());
        }
        let length = (PRELUDE + head.len() + payload.len() + 4) as u32;
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend_from_slice(&(head.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&crc32(&bytes).to_be_bytes());
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(payload.as_bytes());
        bytes.extend_from_slice(&crc32(&bytes).to_be_bytes());
        bytes
    }

    fn chunk(event: &str) -> Vec<u8> {
        let headers =
            [(":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event")];
        frame(&headers, &format!(r#"{{"bytes":"{}","p":"abc"}}"#, STANDARD.encode(event)))
    }

    #[test]
    fn frames_become_server_sent_events_in_any_pieces() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926, "the check value of CRC-32");
        let mut bytes = chunk(r#"{"type":"message_start","message":{}}"#);
        bytes.extend(chunk(r#"{"type":"message_stop"}"#));
        let expected = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n\
                        event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        for size in [1, 7, 64, bytes.len()] {
            let mut decoder = EventFrameDecoder::default();
            let mut events = Vec::new();
            for piece in bytes.chunks(size) {
                events.extend(decoder.push(piece).unwrap());
            }
            assert_eq!(String::from_utf8(events).unwrap(), expected, "{size}");
        }
    }

    #[test]
    fn exceptions_become_errors_of_the_dialect() {
        let headers = [(":exception-type", "throttlingException"), (":message-type", "exception")];
        let events =
            EventFrameDecoder::default().push(&frame(&headers, r#"{"message":"Too many \"requests\""}"#));
        assert_eq!(
            String::from_utf8(events.unwrap()).unwrap(),
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"Too many \
             \\\"requests\\\"\"}}\n\n"
        );
        let headers = [(":message-type", "error"), (":error-code", "x"), (":error-message", "broken")];
        let events = EventFrameDecoder::default().push(&frame(&headers, "")).unwrap();
        assert!(String::from_utf8(events).unwrap().contains(r#""type":"api_error","message":"broken""#));
    }

    #[test]
    fn damaged_frames_are_errors() {
        let good = chunk(r#"{"type":"ping"}"#);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(EventFrameDecoder::default().push(&bad).is_err(), "byte {at}");
        }
        assert!(EventFrameDecoder::default().push(&chunk("no JSON")).is_err());
    }
}
