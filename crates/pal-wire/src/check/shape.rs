//! Shapes as data: which fields an object has and of what type, and the walk that checks a value against them.
//!
//! The walk goes as deep as the tables do and never into free-form values, so its stack is bounded.

use super::error::ApiError;
use super::formats::Format;
use super::json::{Node, Text, Type};
use super::path::Path;
use super::rules::{ApiVersion, Beta, Endpoint, Rules};

/// What a value must be.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Anything but null.
    Any,
    Bool,
    Text,
    /// A string with at least one character.
    FilledText,
    /// A string of at most so many characters.
    ShortText(usize),
    Formatted(Format),
    OneOf(&'static [&'static str]),
    /// An integer not below this.
    Integer(i64),
    Number,
    /// An object with any fields.
    Dictionary,
    Object(&'static Shape),
    List(&'static Kind),
    /// An object whose `type` says which shape it has.
    Tagged(&'static Union),
    /// The first of these that the JSON type fits.
    Either(&'static [Kind]),
}

/// When a field exists.
#[derive(Clone, Copy)]
pub(crate) enum Gate {
    Always,
    /// One of these is on.
    Betas(&'static [Beta]),
    /// The API version of 2023.
    OldVersion,
    /// The endpoint that answers.
    Answers,
}

/// A field of an object.
pub(crate) struct Field {
    name: &'static str,
    kind: Kind,
    required: bool,
    nullable: bool,
    gate: Gate,
}

/// The fields of an object; in a union, those of one tag.
pub(crate) struct Shape {
    pub(crate) tag: Tag,
    pub(crate) fields: &'static [Field],
    /// Whether other fields are accepted.
    pub(crate) open: bool,
    /// Whether `cache_control` is accepted.
    pub(crate) marks: bool,
    /// One of these must be on for the tag to exist; empty for none.
    pub(crate) betas: &'static [Beta],
}

/// The `type` of a shape in a union.
#[derive(Clone, Copy)]
pub(crate) enum Tag {
    None,
    Word(&'static str),
    /// A word, an underscore and a date of eight digits.
    Dated(&'static str),
}

/// Shapes told apart by `type`.
pub(crate) struct Union {
    pub(crate) shapes: &'static [&'static Shape],
    /// The tag of an object without `type`.
    pub(crate) default: Option<&'static str>,
    /// Whether the members may carry `cache_control`, if their shape says so.
    pub(crate) marks: bool,
}

pub(crate) const fn required(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: true, nullable: false, gate: Gate::Always }
}

pub(crate) const fn optional(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: false, nullable: false, gate: Gate::Always }
}

impl Field {
    pub(crate) const fn or_null(self) -> Field {
        Field { nullable: true, ..self }
    }

    pub(crate) const fn when(self, gate: Gate) -> Field {
        Field { gate, ..self }
    }
}

impl Shape {
    /// An object outside any union.
    pub(crate) const fn plain(fields: &'static [Field]) -> Shape {
        Shape { tag: Tag::None, fields, open: false, marks: false, betas: &[] }
    }

    /// A member of a union.
    pub(crate) const fn tagged(tag: &'static str, fields: &'static [Field]) -> Shape {
        Shape { tag: Tag::Word(tag), fields, open: false, marks: false, betas: &[] }
    }

    pub(crate) const fn with_marks(self) -> Shape {
        Shape { marks: true, ..self }
    }

    pub(crate) const fn open(self) -> Shape {
        Shape { open: true, ..self }
    }

    pub(crate) const fn beta(self, betas: &'static [Beta]) -> Shape {
        Shape { betas, ..self }
    }
}

/// The most fields in a table.
const MAX_FIELDS: usize = 32;

/// `cache_control`, wherever it is accepted.
static MARK: Kind = Kind::Tagged(&Union {
    shapes: &[&Shape::tagged(
        "ephemeral",
        &[
            optional("ttl", Kind::OneOf(&["5m", "1h"])),
            optional("scope", Kind::OneOf(&["global"])).when(Gate::Betas(&[Beta::CacheScopes])),
        ],
    )],
    default: None,
    marks: false,
});

/// Checks a value and everything below it that the tables describe.
pub(crate) fn check_value(node: Node<'_>, kind: &Kind, at: &Path<'_>, rules: &Rules) -> Result<(), ApiError> {
    match kind {
        Kind::Any if node.is_null() => Err(at.invalid("Field required")),
        Kind::Any => Ok(()),
        Kind::Bool => expect(node, Type::Bool, at, "Input should be a valid boolean"),
        Kind::Number => expect(node, Type::Number, at, "Input should be a valid number"),
        Kind::Dictionary => expect(node, Type::Object, at, "Input should be a valid dictionary"),
        Kind::Integer(least) => check_integer(node, *least, at),
        Kind::Text | Kind::FilledText | Kind::ShortText(_) | Kind::Formatted(_) | Kind::OneOf(_) => {
            check_text(node, kind, at)
        }
        Kind::Object(shape) => {
            expect(node, Type::Object, at, "Input should be a valid dictionary")?;
            check_fields(node, shape, shape.marks, at, rules)
        }
        Kind::List(item) => {
            expect(node, Type::Array, at, "Input should be a valid list")?;
            node.items().enumerate().try_for_each(|(i, node)| check_value(node, item, &at.index(i), rules))
        }
        Kind::Tagged(union) => check_tagged(node, union, at, rules),
        Kind::Either(kinds) => {
            let chosen = kinds.iter().find(|kind| kind.json_type() == Some(node.kind())).or(kinds.last());
            chosen.map_or(Ok(()), |kind| check_value(node, kind, at, rules))
        }
    }
}

impl Kind {
    fn json_type(&self) -> Option<Type> {
        match self {
            Kind::Any | Kind::Either(_) => None,
            Kind::Bool => Some(Type::Bool),
            Kind::Number | Kind::Integer(_) => Some(Type::Number),
            Kind::Dictionary | Kind::Object(_) | Kind::Tagged(_) => Some(Type::Object),
            Kind::List(_) => Some(Type::Array),
            Kind::Text | Kind::FilledText | Kind::ShortText(_) | Kind::Formatted(_) | Kind::OneOf(_) => {
                Some(Type::Text)
            }
        }
    }
}

fn expect(node: Node<'_>, kind: Type, at: &Path<'_>, complaint: &str) -> Result<(), ApiError> {
    if node.kind() == kind { Ok(()) } else { Err(at.invalid(complaint)) }
}

fn check_integer(node: Node<'_>, least: i64, at: &Path<'_>) -> Result<(), ApiError> {
    match node.integer() {
        None => Err(at.invalid("Input should be a valid integer")),
        Some(value) if value < least => {
            Err(at.invalid(format_args!("Input should be greater than or equal to {least}")))
        }
        Some(_) => Ok(()),
    }
}

fn check_text(node: Node<'_>, kind: &Kind, at: &Path<'_>) -> Result<(), ApiError> {
    let Some(text) = node.text() else {
        return Err(match kind {
            Kind::OneOf(words) => at.invalid(choice(words)),
            _ => at.invalid("Input should be a valid string"),
        });
    };
    match *kind {
        Kind::FilledText if text.is_empty() => Err(at.invalid("String should have at least 1 character")),
        Kind::ShortText(most) if text.chars().count() > most => {
            Err(at.invalid(format_args!("String should have at most {most} characters")))
        }
        Kind::Formatted(format) if !format.fits(text) => Err(at.invalid(format.complaint())),
        Kind::OneOf(words) if text.one_of(words).is_none() => Err(at.invalid(choice(words))),
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

fn check_tagged(node: Node<'_>, union: &Union, at: &Path<'_>, rules: &Rules) -> Result<(), ApiError> {
    expect(node, Type::Object, at, "Input should be a valid dictionary")?;
    let word = match (node.get("type"), union.default) {
        (Some(tag), _) => match tag.text() {
            Some(tag) => tag.decoded(),
            None => return Err(at.key("type").invalid("Input should be a valid string")),
        },
        (None, Some(default)) => default.into(),
        (None, None) => return Err(at.key("type").invalid("Field required")),
    };
    let known = |shape: &&&Shape| shape.betas.is_empty() || rules.betas.has_any(shape.betas);
    match union.shapes.iter().filter(known).find(|shape| shape.tag.fits(&word)) {
        Some(shape) => check_fields(node, shape, union.marks && shape.marks, &at.key(&word), rules),
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

impl Tag {
    fn fits(self, word: &str) -> bool {
        match self {
            Tag::None => false,
            Tag::Word(tag) => word == tag,
            Tag::Dated(tag) => word
                .strip_prefix(tag)
                .and_then(|rest| rest.strip_prefix('_'))
                .is_some_and(|date| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit())),
        }
    }

    fn quoted(self) -> String {
        match self {
            Tag::None => String::new(),
            Tag::Word(tag) => format!("'{tag}'"),
            Tag::Dated(tag) => format!("'{tag}_<date>'"),
        }
    }
}

/// Checks the fields in the order of the table, then what else there is, as the provider does.
fn check_fields(
    node: Node<'_>,
    shape: &Shape,
    marks: bool,
    at: &Path<'_>,
    rules: &Rules,
) -> Result<(), ApiError> {
    let mut found: [Option<Node<'_>>; MAX_FIELDS] = [None; MAX_FIELDS];
    let mut mark = None;
    let mut tag = None;
    let mut extra: Option<Text<'_>> = None;
    for (key, value) in node.entries() {
        let slot = shape.fields.iter().zip(&mut found).find(|(field, _)| key.is(field.name));
        let slot = match slot {
            Some((field, slot)) if field.gate.is_open(rules) => slot,
            None if marks && key.is("cache_control") => &mut mark,
            None if !matches!(shape.tag, Tag::None) && key.is("type") => &mut tag,
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

impl Gate {
    fn is_open(self, rules: &Rules) -> bool {
        match self {
            Gate::Always => true,
            Gate::Betas(betas) => rules.betas.has_any(betas),
            Gate::OldVersion => rules.version < ApiVersion::V2026_10_21,
            Gate::Answers => rules.endpoint == Endpoint::Messages,
        }
    }
}
