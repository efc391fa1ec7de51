//! Requests compared as they went over the wire: what the one sent, the next must send again, byte for byte.

use pal_model::{array_items, fields, member, member_string};

/// Where the cache ends for a request stands inside of blocks and moves from one to the next; it is no content.
const MARK: &str = r#","cache_control":{"#;
/// Words of the task to summarise, which no request of the conversation itself has.
const SUMMARY: &str = "Your task is to write a summary of";

/// A request, taken apart.
pub(super) struct Sent {
    /// What stands before the messages: system prompt and tools.
    head: String,
    /// The blocks of the messages, each with the role of its message.
    blocks: Vec<String>,
    /// Whether it asks for a summary.
    pub(super) is_summary: bool,
}

/// What two requests share from their beginning on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shared {
    /// Whether system prompt and tools are the same.
    pub(super) is_same_head: bool,
    /// Blocks of messages at the beginning that are the same.
    pub(super) blocks: usize,
    /// Bytes that are the same, those of system prompt and tools included.
    pub(super) bytes: usize,
    /// Blocks that the first one has.
    pub(super) blocks_before: usize,
    /// Blocks that the second one has.
    pub(super) blocks_after: usize,
}

impl Shared {
    /// Whether all of the first one is in the second.
    pub(super) fn is_exact(&self) -> bool {
        self.is_same_head && self.blocks == self.blocks_before
    }
}

impl Sent {
    /// Takes the body of a request apart; none if it is no request for messages.
    pub(super) fn of(body: &str) -> Option<Sent> {
        let members = fields(body).ok()?;
        let head = ["system", "tools"].map(|name| without_marks(member(&members, name).unwrap_or_default()));
        let mut blocks = Vec::new();
        for message in array_items(member(&members, "messages")?).ok()? {
            let members = fields(message).ok()?;
            let role = member_string(&members, "role")?;
            let content = member(&members, "content")?;
            let items = if content.starts_with('[') { array_items(content).ok()? } else { vec![content] };
            blocks.extend(items.into_iter().map(|block| format!("{role} {}", without_marks(block))));
        }
        let is_summary = blocks.last().is_some_and(|block| block.contains(SUMMARY));
        Some(Sent { head: head.concat(), blocks, is_summary })
    }

    /// What this one and a later one share.
    pub(super) fn shared(&self, later: &Sent) -> Shared {
        let same = self.blocks.iter().zip(&later.blocks).take_while(|(one, other)| one == other);
        let (blocks, bytes) = same.fold((0, 0), |(blocks, bytes), (one, _)| (blocks + 1, bytes + one.len()));
        let is_same_head = self.head == later.head;
        Shared {
            is_same_head,
            blocks,
            bytes: bytes + if is_same_head { self.head.len() } else { 0 },
            blocks_before: self.blocks.len(),
            blocks_after: later.blocks.len(),
        }
    }
}

/// Raw JSON without the marks of the cache. Inside of strings quotes are escaped, so nothing that was said looks like one.
fn without_marks(json: &str) -> String {
    let mut parts = json.split(MARK);
    let mut text = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| text.push_str(part.split_once('}').map_or("", |(_, rest)| rest)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(blocks: &str) -> Sent {
        let system = r#"[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]"#;
        Sent::of(&format!(r#"{{"system":{system},"messages":[{{"role":"user","content":{blocks}}}]}}"#))
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
