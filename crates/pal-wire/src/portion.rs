//! What a block of the log says to a model of another dialect: words, pictures and files, still borrowed from the block.
//!
//! Nothing that was said is lost: a block that has no form of its own over there is told as words. Thinking is not
//! asked for here; it belongs to the model that thought it.

use std::borrow::Cow;

use pal_model::{Block, BlockType, Content, Text, array_items, fields, member, member_string};

use crate::spell::{Speller, unquoted};

/// One thing that a block says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Portion {
    /// Words as they stand in the block: what is between the quotes of a string literal.
    Literal(Text),
    /// Words of our own.
    Words(String),
    /// A picture.
    Picture(Medium),
    /// A file, with the characters of its name as they stand in a string literal.
    File(Medium, Text),
}

/// Where a picture or a file is; both as they stand in string literals.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Medium {
    /// Here, in base64.
    Data {
        /// What it is, such as `image/png`.
        media_type: Text,
        /// Its bytes.
        data: Text,
    },
    /// At an address.
    Address(Text),
}

impl Portion {
    /// Whether it is words and nothing else.
    pub(crate) fn is_words(&self) -> bool {
        matches!(self, Portion::Literal(_) | Portion::Words(_))
    }

    /// Writes it inside a string literal that is already open; what is no words is named.
    pub(crate) fn write(&self, speller: &mut Speller) {
        match self {
            Portion::Literal(text) => speller.shared(text, text),
            Portion::Words(words) => speller.inside(words),
            Portion::Picture(medium) => medium.write_name(speller, "image"),
            Portion::File(medium, _) => medium.write_name(speller, "file"),
        }
    }
}

impl Medium {
    /// Writes its address, or itself as a data address, inside a string literal that is already open.
    pub(crate) fn write_address(&self, speller: &mut Speller) {
        match self {
            Medium::Address(address) => speller.shared(address, address),
            Medium::Data { media_type, data } => {
                speller.raw("data:");
                speller.shared(media_type, media_type);
                speller.raw(";base64,");
                speller.shared(data, data);
            }
        }
    }

    fn write_name(&self, speller: &mut Speller, what: &str) {
        speller.raw("[");
        speller.raw(what);
        match self {
            Medium::Address(address) => {
                speller.raw(" at ");
                speller.shared(address, address);
            }
            Medium::Data { media_type, .. } => {
                speller.raw(", ");
                speller.shared(media_type, media_type);
            }
        }
        speller.raw("]");
    }
}

/// Writes portions as one string literal, with a separator between them.
pub(crate) fn write_joined(speller: &mut Speller, said: &[Portion], separator: &str) {
    speller.raw("\"");
    for (at, portion) in said.iter().enumerate() {
        if at > 0 {
            speller.raw(separator);
        }
        portion.write(speller);
    }
    speller.raw("\"");
}

/// What blocks of a system prompt say.
pub(crate) fn system_portions(blocks: &[Text]) -> Vec<Portion> {
    blocks.iter().flat_map(|block| portions(&Block::parse(block.clone()))).collect()
}

/// What a block says.
pub(crate) fn portions(block: &Block) -> Vec<Portion> {
    let known = match block.kind() {
        BlockType::Text => literal(block, "text").map(|text| vec![Portion::Literal(text)]),
        BlockType::Image => picture(block).map(|picture| vec![picture]),
        BlockType::Document => document(block),
        BlockType::SearchResult => search_result(block),
        BlockType::ToolReference => {
            block.string("tool_name").map(|name| vec![Portion::Words(format!("Tool found: {name}"))])
        }
        _ => None,
    };
    known.unwrap_or_else(|| vec![Portion::Words(told(block))])
}

/// What a tool result says. These dialects have no field for a failed call, so the words say it.
pub(crate) fn result_portions(block: &Block) -> Vec<Portion> {
    let mut said = Vec::new();
    if block.field("is_error") == Some("true") {
        said.push(Portion::Words(String::from("[the call failed]")));
    }
    match block.field("content") {
        // A string stands for itself, so it is shared, not wrapped in a block.
        Some(raw) if raw.starts_with('"') => match unquoted(raw) {
            "" => {}
            inner => said.push(Portion::Literal(block.raw().slice_of(inner))),
        },
        _ => said.extend(block.content().blocks().iter().flat_map(portions)),
    }
    said
}

/// A block in words.
pub(crate) fn told(block: &Block) -> String {
    let raw = block.raw();
    let name = block.string("type").unwrap_or(Cow::Borrowed("unknown"));
    format!("[{name} block, kept as text] {raw}")
}

/// What is between the quotes of a field that is a string.
fn literal(block: &Block, name: &str) -> Option<Text> {
    block.field(name).and_then(|raw| quoted(block, raw))
}

fn quoted(block: &Block, raw: &str) -> Option<Text> {
    raw.starts_with('"').then(|| block.raw().slice_of(unquoted(raw)))
}

/// The `source` of a block: its type, and a way to its fields.
struct Place<'a> {
    block: &'a Block,
    kind: Cow<'a, str>,
    fields: Vec<pal_model::Field<'a>>,
}

impl<'a> Place<'a> {
    fn of(block: &'a Block) -> Option<Place<'a>> {
        let fields = fields(block.field("source")?).ok()?;
        let kind = member_string(&fields, "type")?;
        Some(Place { block, kind, fields })
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        member(&self.fields, name)
    }

    fn literal(&self, name: &str) -> Option<Text> {
        self.get(name).and_then(|raw| quoted(self.block, raw))
    }

    fn medium(&self) -> Option<Medium> {
        match self.kind.as_ref() {
            "base64" => {
                Some(Medium::Data { media_type: self.literal("media_type")?, data: self.literal("data")? })
            }
            "url" => Some(Medium::Address(self.literal("url")?)),
            _ => None,
        }
    }
}

fn picture(block: &Block) -> Option<Portion> {
    Place::of(block)?.medium().map(Portion::Picture)
}

fn document(block: &Block) -> Option<Vec<Portion>> {
    let place = Place::of(block)?;
    let title = literal(block, "title").filter(|title| !title.is_empty());
    let mut said = Vec::new();
    match (place.kind.as_ref(), place.medium()) {
        (_, Some(medium)) => {
            let name = title.unwrap_or_else(|| Text::from("document.pdf"));
            said.push(Portion::File(medium, name));
        }
        ("text", None) => {
            said.extend(title.map(Portion::Literal));
            said.push(Portion::Literal(place.literal("data")?));
        }
        ("content", None) => {
            said.extend(title.map(Portion::Literal));
            let content = Content::parse(&block.raw().slice_of(place.get("content")?));
            said.extend(content.blocks().iter().flat_map(portions));
        }
        _ => return None,
    }
    said.extend(literal(block, "context").filter(|context| !context.is_empty()).map(Portion::Literal));
    Some(said)
}

fn search_result(block: &Block) -> Option<Vec<Portion>> {
    let mut said =
        vec![Portion::Literal(literal(block, "title")?), Portion::Literal(literal(block, "source")?)];
    for item in array_items(block.field("content")?).ok()? {
        said.extend(portions(&Block::parse(block.raw().slice_of(item))));
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(block: &str, expected: &str) {
        let said: Vec<String> = portions(&Block::parse(Text::from(block)))
            .iter()
            .map(|portion| match portion {
                Portion::Literal(text) => format!("={text}"),
                Portion::Words(words) => format!("~{words}"),
                Portion::Picture(Medium::Data { media_type, data }) => format!("picture {media_type} {data}"),
                Portion::Picture(Medium::Address(url)) => format!("picture at {url}"),
                Portion::File(Medium::Data { media_type, data }, name) => {
                    format!("file {name} {media_type} {data}")
                }
                Portion::File(Medium::Address(url), name) => format!("file {name} at {url}"),
            })
            .collect();
        assert_eq!(said.join(" | "), expected, "{block}");
    }

    #[test]
    fn every_block_says_something() {
        check(r#"{"type":"text","text":"a\n\"b\""}"#, r#"=a\n\"b\""#);
        check(
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}"#,
            "picture image/png AA==",
        );
        check(
            r#"{"type":"image","source":{"type":"url","url":"http://a/b.png"}}"#,
            "picture at http://a/b.png",
        );
        check(
            r#"{"type":"image","source":{"type":"file","file_id":"f"}}"#,
            r#"~[image block, kept as text] {"type":"image","source":{"type":"file","file_id":"f"}}"#,
        );
        check(
            r#"{"type":"document","title":"Plan","context":"old","source":{"type":"base64","media_type":"application/pdf","data":"AA"}}"#,
            "file Plan application/pdf AA | =old",
        );
        check(
            r#"{"type":"document","title":null,"source":{"type":"text","media_type":"text/plain","data":"words"}}"#,
            "=words",
        );
        check(
            r#"{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"},{"type":"new"}]}}"#,
            r#"=a | ~[new block, kept as text] {"type":"new"}"#,
        );
        check(r#"{"type":"document","source":{"type":"url","url":"u"}}"#, "file document.pdf at u");
        check(
            r#"{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"c"}]}"#,
            "=t | =s | =c",
        );
        check(r#"{"type":"text","text":7}"#, r#"~[text block, kept as text] {"type":"text","text":7}"#);
        check("7", "~[unknown block, kept as text] 7");
    }
}
