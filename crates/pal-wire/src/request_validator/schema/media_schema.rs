//! Schema of text, image and document blocks and their sources.

use crate::request_validator::text_format::TextFormat;
use crate::request_validator::value_shape::{
    FieldRule, ObjectShape, TaggedUnion, ValueKind, optional, required,
};

const IMAGE_TYPES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

static IMAGE_BASE64: ObjectShape = ObjectShape::tagged(
    "base64",
    &[
        required("media_type", ValueKind::OneOf(IMAGE_TYPES)),
        required("data", ValueKind::Formatted(TextFormat::Base64)),
    ],
);
static PDF_BASE64: ObjectShape = ObjectShape::tagged(
    "base64",
    &[
        required("media_type", ValueKind::OneOf(&["application/pdf"])),
        required("data", ValueKind::Formatted(TextFormat::Base64)),
    ],
);
static PLAIN_TEXT: ObjectShape = ObjectShape::tagged(
    "text",
    &[required("media_type", ValueKind::OneOf(&["text/plain"])), required("data", ValueKind::Text)],
);
static URL: ObjectShape = ObjectShape::tagged("url", &[required("url", ValueKind::FilledText)]);
static FILE: ObjectShape = ObjectShape::tagged("file", &[required("file_id", ValueKind::FilledText)]);
static CONTENT: ObjectShape =
    ObjectShape::tagged("content", &[required("content", ValueKind::Either(INNER_CONTENT))]);

const INNER_CONTENT: &[ValueKind] = &[ValueKind::Text, ValueKind::List(&ValueKind::Tagged(&INNER_BLOCKS))];
static INNER_BLOCKS: TaggedUnion =
    TaggedUnion { shapes: &[&TEXT, &IMAGE], default: None, accepts_cache_control: false };

static IMAGE_SOURCE: TaggedUnion =
    TaggedUnion { shapes: &[&IMAGE_BASE64, &URL, &FILE], default: None, accepts_cache_control: false };
static DOCUMENT_SOURCE: TaggedUnion = TaggedUnion {
    shapes: &[&PDF_BASE64, &PLAIN_TEXT, &CONTENT, &URL, &FILE],
    default: None,
    accepts_cache_control: false,
};

static TRANSFORMATIONS: ObjectShape =
    ObjectShape::plain(&[optional("oversized_image", ValueKind::OneOf(&["downsize", "error"])).or_null()]);
static CITATIONS: ObjectShape = ObjectShape::plain(&[optional("enabled", ValueKind::Bool)]);

pub(super) const CITATIONS_CONFIG: FieldRule = optional("citations", ValueKind::Object(&CITATIONS)).or_null();

pub(super) static TEXT: ObjectShape = ObjectShape::tagged(
    "text",
    &[
        required("text", ValueKind::Text),
        optional("citations", ValueKind::List(&ValueKind::Dictionary)).or_null(),
    ],
)
.with_cache_control();

pub(super) static IMAGE: ObjectShape = ObjectShape::tagged(
    "image",
    &[
        required("source", ValueKind::Tagged(&IMAGE_SOURCE)),
        optional("transformations", ValueKind::Object(&TRANSFORMATIONS)).or_null(),
    ],
)
.with_cache_control();

pub(super) static DOCUMENT: ObjectShape = ObjectShape::tagged(
    "document",
    &[
        required("source", ValueKind::Tagged(&DOCUMENT_SOURCE)),
        optional("title", ValueKind::Text).or_null(),
        optional("context", ValueKind::Text).or_null(),
        CITATIONS_CONFIG,
    ],
)
.with_cache_control();
