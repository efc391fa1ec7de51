//! Shapes of JSON values as data, and the check of a value against them.
//!
//! The check recurses only as deep as the tables and never into free-form values, so its stack is bounded.

use super::api_error::ApiError;
use super::json::{JsonNode, NodeText, NodeType};
use super::json_path::JsonPath;
use super::request_rules::{ApiVersion, Beta, MessagesEndpoint, RequestRules};
use super::text_format::TextFormat;

/// Required kind of a value.
#[derive(Clone, Copy)]
pub(crate) enum ValueKind {
    /// Anything but null.
    Any,
    Bool,
    Text,
    /// A string with at least one character.
    FilledText,
    /// A string with a maximum length in characters.
    ShortText(usize),
    Formatted(TextFormat),
    OneOf(&'static [&'static str]),
    /// An integer with a minimum.
    Integer(i64),
    Number,
    /// An object with any fields.
    Dictionary,
    Object(&'static ObjectShape),
    List(&'static ValueKind),
    /// An object whose shape depends on its `type`.
    Tagged(&'static TaggedUnion),
    /// The first of these kinds that matches the JSON type.
    Either(&'static [ValueKind]),
}

/// Condition under which a field is accepted.
#[derive(Clone, Copy)]
pub(crate) enum FieldGate {
    Always,
    /// One of these betas is enabled.
    Betas(&'static [Beta]),
    /// The API version of 2023.
    OldVersion,
    /// The `Messages` endpoint only.
    Answers,
}

/// A field of an object.
pub(crate) struct FieldRule {
    name: &'static str,
    kind: ValueKind,
    required: bool,
    nullable: bool,
    gate: FieldGate,
}

/// The fields of an object; in a union, those of one tag.
pub(crate) struct ObjectShape {
    pub(crate) tag: ShapeTag,
    pub(crate) fields: &'static [FieldRule],
    /// Accepts other fields.
    pub(crate) open: bool,
    /// Accepts `cache_control`.
    pub(crate) accepts_cache_control: bool,
    /// One of these betas must be enabled; empty for no condition.
    pub(crate) betas: &'static [Beta],
}

/// The `type` of a shape in a union.
#[derive(Clone, Copy)]
pub(crate) enum ShapeTag {
    None,
    Word(&'static str),
    /// A word, an underscore and a date of eight digits.
    Dated(&'static str),
}

/// Shapes distinguished by `type`.
pub(crate) struct TaggedUnion {
    pub(crate) shapes: &'static [&'static ObjectShape],
    /// Tag of an object without `type`.
    pub(crate) default: Option<&'static str>,
    /// Accepts `cache_control` on members whose shape does.
    pub(crate) accepts_cache_control: bool,
}

pub(crate) const fn required(name: &'static str, kind: ValueKind) -> FieldRule {
    FieldRule { name, kind, required: true, nullable: false, gate: FieldGate::Always }
}

pub(crate) const fn optional(name: &'static str, kind: ValueKind) -> FieldRule {
    FieldRule { name, kind, required: false, nullable: false, gate: FieldGate::Always }
}

impl FieldRule {
    pub(crate) const fn or_null(self) -> FieldRule {
        FieldRule { nullable: true, ..self }
    }

    pub(crate) const fn when(self, gate: FieldGate) -> FieldRule {
        FieldRule { gate, ..self }
    }
}

impl ObjectShape {
    /// An object outside any union.
    pub(crate) const fn plain(fields: &'static [FieldRule]) -> ObjectShape {
        ObjectShape { tag: ShapeTag::None, fields, open: false, accepts_cache_control: false, betas: &[] }
    }

    /// A member of a union.
    pub(crate) const fn tagged(tag: &'static str, fields: &'static [FieldRule]) -> ObjectShape {
        ObjectShape {
            tag: ShapeTag::Word(tag),
            fields,
            open: false,
            accepts_cache_control: false,
            betas: &[],
        }
    }

    pub(crate) const fn with_cache_control(self) -> ObjectShape {
        ObjectShape { accepts_cache_control: true, ..self }
    }

    pub(crate) const fn open(self) -> ObjectShape {
        ObjectShape { open: true, ..self }
    }

    pub(crate) const fn beta(self, betas: &'static [Beta]) -> ObjectShape {
        ObjectShape { betas, ..self }
    }
}

/// Maximum fields per table.
const FIELDS_MAX: usize = 32;

/// `cache_control`, wherever it is accepted.
static MARK: ValueKind = ValueKind::Tagged(&TaggedUnion {
    shapes: &[&ObjectShape::tagged(
        "ephemeral",
        &[
            optional("ttl", ValueKind::OneOf(&["5m", "1h"])),
            optional("scope", ValueKind::OneOf(&["global"])).when(FieldGate::Betas(&[Beta::CacheScopes])),
        ],
    )],
    default: None,
    accepts_cache_control: false,
});

/// Checks a value and everything below it that its shape describes.
pub(crate) fn check_value(
    node: JsonNode<'_>,
    kind: &ValueKind,
    at: &JsonPath<'_>,
    rules: &RequestRules,
) -> Result<(), ApiError> {
    match kind {
        ValueKind::Any if node.is_null() => Err(at.invalid("Field required")),
        ValueKind::Any => Ok(()),
        ValueKind::Bool => expect(node, NodeType::Bool, at, "Input should be a valid boolean"),
        ValueKind::Number => expect(node, NodeType::Number, at, "Input should be a valid number"),
        ValueKind::Dictionary => expect(node, NodeType::Object, at, "Input should be a valid dictionary"),
        ValueKind::Integer(least) => check_integer(node, *least, at),
        ValueKind::Text
        | ValueKind::FilledText
        | ValueKind::ShortText(_)
        | ValueKind::Formatted(_)
        | ValueKind::OneOf(_) => check_text(node, kind, at),
        ValueKind::Object(shape) => {
            expect(node, NodeType::Object, at, "Input should be a valid dictionary")?;
            check_fields(node, shape, shape.accepts_cache_control, at, rules)
        }
        ValueKind::List(item) => {
            expect(node, NodeType::Array, at, "Input should be a valid list")?;
            node.items().enumerate().try_for_each(|(i, node)| check_value(node, item, &at.index(i), rules))
        }
        ValueKind::Tagged(union) => check_tagged(node, union, at, rules),
        ValueKind::Either(kinds) => {
            let chosen = kinds.iter().find(|kind| kind.json_type() == Some(node.kind())).or(kinds.last());
            chosen.map_or(Ok(()), |kind| check_value(node, kind, at, rules))
        }
    }
}

impl ValueKind {
    fn json_type(&self) -> Option<NodeType> {
        match self {
            ValueKind::Any | ValueKind::Either(_) => None,
            ValueKind::Bool => Some(NodeType::Bool),
            ValueKind::Number | ValueKind::Integer(_) => Some(NodeType::Number),
            ValueKind::Dictionary | ValueKind::Object(_) | ValueKind::Tagged(_) => Some(NodeType::Object),
            ValueKind::List(_) => Some(NodeType::Array),
            ValueKind::Text
            | ValueKind::FilledText
            | ValueKind::ShortText(_)
            | ValueKind::Formatted(_)
            | ValueKind::OneOf(_) => Some(NodeType::Text),
        }
    }
}

fn expect(node: JsonNode<'_>, kind: NodeType, at: &JsonPath<'_>, complaint: &str) -> Result<(), ApiError> {
    if node.kind() == kind { Ok(()) } else { Err(at.invalid(complaint)) }
}

fn check_integer(node: JsonNode<'_>, least: i64, at: &JsonPath<'_>) -> Result<(), ApiError> {
    match node.integer() {
        None => Err(at.invalid("Input should be a valid integer")),
        Some(value) if value < least => {
            Err(at.invalid(format_args!("Input should be greater than or equal to {least}")))
        }
        Some(_) => Ok(()),
    }
}

fn check_text(node: JsonNode<'_>, kind: &ValueKind, at: &JsonPath<'_>) -> Result<(), ApiError> {
    let Some(text) = node.text() else {
        return Err(match kind {
            ValueKind::OneOf(words) => at.invalid(choice(words)),
            _ => at.invalid("Input should be a valid string"),
        });
    };
    match *kind {
        ValueKind::FilledText if text.is_empty() => {
            Err(at.invalid("String should have at least 1 character"))
        }
        ValueKind::ShortText(most) if text.chars().count() > most => {
            Err(at.invalid(format_args!("String should have at most {most} characters")))
        }
        ValueKind::Formatted(format) if !format.fits(text) => Err(at.invalid(format.complaint())),
        ValueKind::OneOf(words) if text.one_of(words).is_none() => Err(at.invalid(choice(words))),
        _ => Ok(()),
    }
}

/// `Input should be 'a', 'b' or 'c'`.
fn choice(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    match quoted.split_last() {
        Some((last, [])) => format!("Input should be {last}"),
        Some((last, others)) => format!("Input should be {} or {last}", others.join(", ")),
        None => "Input is not permitted".to_owned(),
    }
}

fn check_tagged(
    node: JsonNode<'_>,
    union: &TaggedUnion,
    at: &JsonPath<'_>,
    rules: &RequestRules,
) -> Result<(), ApiError> {
    expect(node, NodeType::Object, at, "Input should be a valid dictionary")?;
    let word = match (node.get("type"), union.default) {
        (Some(tag), _) => match tag.text() {
            Some(tag) => tag.decoded(),
            None => return Err(at.key("type").invalid("Input should be a valid string")),
        },
        (None, Some(default)) => default.into(),
        (None, None) => return Err(at.key("type").invalid("Field required")),
    };
    let known = |shape: &&&ObjectShape| shape.betas.is_empty() || rules.betas.has_any(shape.betas);
    match union.shapes.iter().filter(known).find(|shape| shape.tag.fits(&word)) {
        Some(shape) => check_fields(
            node,
            shape,
            union.accepts_cache_control && shape.accepts_cache_control,
            &at.key(&word),
            rules,
        ),
        None => {
            let expected: Vec<String> =
                union.shapes.iter().filter(known).map(|shape| shape.tag.quoted()).collect();
            let expected = expected.join(", ");
            Err(at.invalid(format_args!(
                "Input tag '{word}' found using 'type' does not match any of the expected tags: {expected}"
            )))
        }
    }
}

impl ShapeTag {
    fn fits(self, word: &str) -> bool {
        match self {
            ShapeTag::None => false,
            ShapeTag::Word(tag) => word == tag,
            ShapeTag::Dated(tag) => word
                .strip_prefix(tag)
                .and_then(|rest| rest.strip_prefix('_'))
                .is_some_and(|date| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit())),
        }
    }

    fn quoted(self) -> String {
        match self {
            ShapeTag::None => String::new(),
            ShapeTag::Word(tag) => format!("'{tag}'"),
            ShapeTag::Dated(tag) => format!("'{tag}_<date>'"),
        }
    }
}

/// Checks the fields in the order of the table, then unknown fields, as the provider does.
fn check_fields(
    node: JsonNode<'_>,
    shape: &ObjectShape,
    accepts_cache_control: bool,
    at: &JsonPath<'_>,
    rules: &RequestRules,
) -> Result<(), ApiError> {
    let mut found: [Option<JsonNode<'_>>; FIELDS_MAX] = [None; FIELDS_MAX];
    let mut mark = None;
    let mut tag = None;
    let mut extra: Option<NodeText<'_>> = None;
    for (key, value) in node.entries() {
        let slot = shape.fields.iter().zip(&mut found).find(|(field, _)| key.is(field.name));
        let slot = match slot {
            Some((field, slot)) if field.gate.is_open(rules) => slot,
            None if accepts_cache_control && key.is("cache_control") => &mut mark,
            None if !matches!(shape.tag, ShapeTag::None) && key.is("type") => &mut tag,
            _ => {
                extra = extra.or(Some(key).filter(|_| !shape.open));
                continue;
            }
        };
        if slot.replace(value).is_some() {
            return Err(at.key(&key.decoded()).invalid("Field must not be given twice"));
        }
    }
    for (field, value) in shape.fields.iter().zip(found) {
        let at = at.key(field.name);
        match value {
            Some(value) if value.is_null() && field.nullable => {}
            Some(value) => check_value(value, &field.kind, &at, rules)?,
            None if field.required && field.gate.is_open(rules) => return Err(at.invalid("Field required")),
            None => {}
        }
    }
    if let Some(mark) = mark.filter(|mark| !mark.is_null()) {
        check_value(mark, &MARK, &at.key("cache_control"), rules)?;
    }
    match extra {
        Some(key) => Err(at.key(&key.decoded()).invalid("Extra inputs are not permitted")),
        None => Ok(()),
    }
}

impl FieldGate {
    fn is_open(self, rules: &RequestRules) -> bool {
        match self {
            FieldGate::Always => true,
            FieldGate::Betas(betas) => rules.betas.has_any(betas),
            FieldGate::OldVersion => rules.version < ApiVersion::V2026_10_21,
            FieldGate::Answers => rules.endpoint == MessagesEndpoint::Messages,
        }
    }
}
