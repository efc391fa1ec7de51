//! Byte-for-byte comparison of requests: each must start with the content of the one before.

use pal_model::{array_items, member, member_string, object_fields};

/// Start of a cache breakpoint, which is no content and moves from request to request.
const MARK: &str = r#","cache_control":{"#;
/// Text of the summary task, which no request of the conversation contains.
const SUMMARY: &str = "Your task is to write a summary of";

/// A request, split into its parts.
pub(super) struct DemoRequest {
    /// System prompt and tools.
    head: String,
    /// The blocks of the messages, each with the role of its message.
    blocks: Vec<String>,
    /// The request asks for a summary.
    pub(super) is_summary: bool,
}

/// Common prefix of two requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CommonPrefix {
    /// System prompt and tools are the same.
    pub(super) is_same_head: bool,
    /// Number of equal blocks at the start of the messages.
    pub(super) blocks: usize,
    /// Number of equal bytes, system prompt and tools included.
    pub(super) bytes: usize,
    /// Blocks of the first request.
    pub(super) blocks_before: usize,
    /// Blocks of the second request.
    pub(super) blocks_after: usize,
}

impl CommonPrefix {
    /// Tells whether the second request starts with all of the first.
    pub(super) fn is_exact(&self) -> bool {
        self.is_same_head && self.blocks == self.blocks_before
    }
}

impl DemoRequest {
    /// Parses the body of a request; none if it has no messages.
    pub(super) fn of(body: &str) -> Option<DemoRequest> {
        let members = object_fields(body).ok()?;
        let head = ["system", "tools"].map(|name| without_marks(member(&members, name).unwrap_or_default()));
        let mut blocks = Vec::new();
        for message in array_items(member(&members, "messages")?).ok()? {
            let members = object_fields(message).ok()?;
            let role = member_string(&members, "role")?;
            let content = member(&members, "content")?;
            let items = if content.starts_with('[') { array_items(content).ok()? } else { vec![content] };
            blocks.extend(items.into_iter().map(|block| format!("{role} {}", without_marks(block))));
        }
        let is_summary = blocks.last().is_some_and(|block| block.contains(SUMMARY));
        Some(DemoRequest { head: head.concat(), blocks, is_summary })
    }

    /// Compares with a later request.
    pub(super) fn shared(&self, later: &DemoRequest) -> CommonPrefix {
        let same = self.blocks.iter().zip(&later.blocks).take_while(|(one, other)| one == other);
        let (blocks, bytes) = same.fold((0, 0), |(blocks, bytes), (one, _)| (blocks + 1, bytes + one.len()));
        let is_same_head = self.head == later.head;
        CommonPrefix {
            is_same_head,
            blocks,
            bytes: bytes + if is_same_head { self.head.len() } else { 0 },
            blocks_before: self.blocks.len(),
            blocks_after: later.blocks.len(),
        }
    }
}

/// Removes cache breakpoints from raw JSON. Quotes inside strings are escaped, so no content looks like one.
fn without_marks(json: &str) -> String {
    let mut parts = json.split(MARK);
    let mut text = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| text.push_str(part.split_once('}').map_or("", |(_, rest)| rest)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(blocks: &str) -> DemoRequest {
        let system = r#"[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]"#;
        DemoRequest::of(&format!(
            r#"{{"system":{system},"messages":[{{"role":"user","content":{blocks}}}]}}"#
        ))
        .unwrap()
    }

    #[test]
    fn marks_do_not_count_and_every_byte_does() {
        let one = r#"{"type":"text","text":"a \",\"cache_control\":{ b"}"#;
        let marked = r#"{"type":"text","text":"a \",\"cache_control\":{ b","cache_control":{"type":"ephemeral","ttl":"1h"}}"#;
        let (first, second) = (sent(&format!("[{marked}]")), sent(&format!("[{one},{marked}]")));
        let shared = first.shared(&second);
        assert!(shared.is_exact());
        assert_eq!((shared.blocks, shared.blocks_after), (1, 2));
        assert!(!first.shared(&sent(&format!("[{}]", one.replace("a ", "a  ")))).is_exact());
        assert!(!second.shared(&first).is_exact(), "what is missing is not there");
    }
}
