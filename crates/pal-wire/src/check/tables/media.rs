//! Sources of images and documents.

use crate::check::formats::Format;
use crate::check::shape::{Field, Kind, Shape, Union, optional, required};

use super::blocks::TEXT;

const IMAGE_TYPES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

static IMAGE_BASE64: Shape = Shape::tagged(
    "base64",
    &[required("media_type", Kind::OneOf(IMAGE_TYPES)), required("data", Kind::Formatted(Format::Base64))],
);
static PDF_BASE64: Shape = Shape::tagged(
    "base64",
    &[
        required("media_type", Kind::OneOf(&["application/pdf"])),
        required("data", Kind::Formatted(Format::Base64)),
    ],
);
static PLAIN_TEXT: Shape = Shape::tagged(
    "text",
    &[required("media_type", Kind::OneOf(&["text/plain"])), required("data", Kind::Text)],
);
static URL: Shape = Shape::tagged("url", &[required("url", Kind::FilledText)]);
static FILE: Shape = Shape::tagged("file", &[required("file_id", Kind::FilledText)]);
static CONTENT: Shape = Shape::tagged("content", &[required("content", Kind::Either(INNER_CONTENT))]);

const INNER_CONTENT: &[Kind] = &[Kind::Text, Kind::List(&Kind::Tagged(&INNER_BLOCKS))];
static INNER_BLOCKS: Union = Union { shapes: &[&TEXT, &IMAGE], default: None, marks: false };

static IMAGE_SOURCE: Union = Union { shapes: &[&IMAGE_BASE64, &URL, &FILE], default: None, marks: false };
static DOCUMENT_SOURCE: Union =
    Union { shapes: &[&PDF_BASE64, &PLAIN_TEXT, &CONTENT, &URL, &FILE], default: None, marks: false };

static TRANSFORMATIONS: Shape =
    Shape::plain(&[optional("oversized_image", Kind::OneOf(&["downsize", "error"])).or_null()]);
static CITATIONS: Shape = Shape::plain(&[optional("enabled", Kind::Bool)]);

pub(super) const CITATIONS_CONFIG: Field = optional("citations", Kind::Object(&CITATIONS)).or_null();

pub(super) static IMAGE: Shape = Shape::tagged(
    "image",
    &[
        required("source", Kind::Tagged(&IMAGE_SOURCE)),
        optional("transformations", Kind::Object(&TRANSFORMATIONS)).or_null(),
    ],
)
.with_marks();

pub(super) static DOCUMENT: Shape = Shape::tagged(
    "document",
    &[
        required("source", Kind::Tagged(&DOCUMENT_SOURCE)),
        optional("title", Kind::Text).or_null(),
        optional("context", Kind::Text).or_null(),
        CITATIONS_CONFIG,
    ],
)
.with_marks();
