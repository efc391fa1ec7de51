//! Jupyter notebooks as JSON text: a change rewrites the cell that it is about and leaves every other byte as it is.

use pal_model::{JsonField, array_items, member, member_string, object_fields};
use serde_json::{Map, Value, json};

/// A notebook and its cells, as slices of its text.
pub(super) struct Notebook<'a> {
    text: &'a str,
    cells: Vec<&'a str>,
    /// Byte range of the list of cells.
    list: std::ops::Range<usize>,
    /// White space of one nesting level; none if the file is one line.
    indent: Option<String>,
    has_ids: bool,
}

/// Kind of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CellKind {
    Code,
    Markdown,
    Raw,
}

impl CellKind {
    fn from_name(name: &str) -> Option<CellKind> {
        [CellKind::Code, CellKind::Markdown, CellKind::Raw].into_iter().find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            CellKind::Code => "code",
            CellKind::Markdown => "markdown",
            CellKind::Raw => "raw",
        }
    }
}

impl<'a> Notebook<'a> {
    /// Parses a notebook; the error says what it lacks.
    pub(super) fn parse(text: &'a str) -> Result<Notebook<'a>, String> {
        let fields = object_fields(text).map_err(|error| format!("it is no JSON object: {error}"))?;
        let list = member(&fields, "cells")
            .ok_or("it has no `cells`; notebooks older than format 4 have to be converted first")?;
        let cells = array_items(list).map_err(|_| "its `cells` are no list")?;
        let start = list.as_ptr() as usize - text.as_ptr() as usize;
        let number = |name: &str| member(&fields, name).and_then(|number| number.parse::<u64>().ok());
        let version = (number("nbformat").unwrap_or(4), number("nbformat_minor").unwrap_or(0));
        Ok(Notebook {
            text,
            cells,
            list: start..start + list.len(),
            indent: indent(text),
            has_ids: version >= (4, 5),
        })
    }

    /// Index of a cell by its id, or by its number in the form `cell-0`.
    pub(super) fn find(&self, id: &str) -> Result<usize, String> {
        let has_id = |cell: &&str| {
            object_fields(cell).is_ok_and(|fields| member_string(&fields, "id").as_deref() == Some(id))
        };
        if let Some(at) = self.cells.iter().position(has_id) {
            return Ok(at);
        }
        let number = id.strip_prefix("cell-").and_then(|number| number.parse::<usize>().ok());
        number.filter(|at| *at < self.cells.len()).ok_or_else(|| match self.cells.len() {
            0 => format!("there is no cell `{id}`: the notebook is empty"),
            count => format!("there is no cell `{id}`; by number they are cell-0 to cell-{}", count - 1),
        })
    }

    /// Text with a cell's source replaced. Outputs of a code cell belong to the old source and are removed.
    pub(super) fn replace(&self, at: usize, source: &str, kind: Option<CellKind>) -> Result<String, String> {
        let fields = object_fields(self.cells[at]).map_err(|_| format!("cell-{at} is no JSON object"))?;
        let old = member_string(&fields, "cell_type").and_then(|name| CellKind::from_name(&name));
        let kind = kind.or(old).ok_or_else(|| format!("cell-{at} has no known `cell_type`; give one"))?;
        let cell = self.render_replaced(&fields, source, kind);
        let start = self.cells[at].as_ptr() as usize - self.text.as_ptr() as usize;
        Ok(self.splice(start..start + self.cells[at].len(), &cell))
    }

    /// Text with a new cell before the one with this index.
    pub(super) fn insert(&self, at: usize, source: &str, kind: CellKind, seed: &str) -> String {
        let mut cell = Map::new();
        cell.insert(String::from("cell_type"), json!(kind.name()));
        if kind == CellKind::Code {
            cell.insert(String::from("execution_count"), Value::Null);
        }
        if self.has_ids {
            cell.insert(String::from("id"), json!(self.new_id(seed)));
        }
        cell.insert(String::from("metadata"), json!({}));
        if kind == CellKind::Code {
            cell.insert(String::from("outputs"), json!([]));
        }
        cell.insert(String::from("source"), source_lines(source));
        let mut cells: Vec<String> = self.cells.iter().map(|cell| (*cell).to_owned()).collect();
        cells.insert(at, self.render(&Value::Object(cell), 2));
        self.splice(self.list.clone(), &self.render_list(&cells))
    }

    /// Text without a cell.
    pub(super) fn delete(&self, at: usize) -> String {
        let mut cells: Vec<String> = self.cells.iter().map(|cell| (*cell).to_owned()).collect();
        cells.remove(at);
        self.splice(self.list.clone(), &self.render_list(&cells))
    }

    fn splice(&self, range: std::ops::Range<usize>, part: &str) -> String {
        format!("{}{part}{}", &self.text[..range.start], &self.text[range.end..])
    }

    /// The list of cells, each rendered already.
    fn render_list(&self, cells: &[String]) -> String {
        match &self.indent {
            _ if cells.is_empty() => String::from("[]"),
            None => format!("[{}]", cells.join(",")),
            Some(indent) => {
                let between = format!(",\n{}", indent.repeat(2));
                format!("[\n{}{}\n{indent}]", indent.repeat(2), cells.join(&between))
            }
        }
    }

    /// A cell with a new source: all other fields keep their order and their bytes.
    fn render_replaced(&self, fields: &[JsonField<'_>], source: &str, kind: CellKind) -> String {
        let mut new: Vec<(String, String)> = Vec::new();
        for (name, value) in fields {
            let value = match name.as_ref() {
                "source" => self.render(&source_lines(source), 3),
                "cell_type" => format!("\"{}\"", kind.name()),
                "outputs" | "execution_count" if kind != CellKind::Code => continue,
                "outputs" => String::from("[]"),
                "execution_count" => String::from("null"),
                _ => (*value).to_owned(),
            };
            new.push((name.to_string(), value));
        }
        let mut add = |name: &str, value: String| {
            if !new.iter().any(|(known, _)| known == name) {
                new.push((name.to_owned(), value));
            }
        };
        if kind == CellKind::Code {
            add("execution_count", String::from("null"));
            add("outputs", String::from("[]"));
        }
        add("cell_type", format!("\"{}\"", kind.name()));
        add("metadata", String::from("{}"));
        add("source", self.render(&source_lines(source), 3));
        let field = |(name, value): &(String, String)| format!("{}: {value}", json!(name));
        let fields: Vec<String> = new.iter().map(field).collect();
        match &self.indent {
            None => format!("{{{}}}", fields.join(", ")),
            Some(indent) => {
                let between = format!(",\n{}", indent.repeat(3));
                format!("{{\n{}{}\n{}}}", indent.repeat(3), fields.join(&between), indent.repeat(2))
            }
        }
    }

    /// A value in the style of the file, at a nesting level.
    fn render(&self, value: &Value, level: usize) -> String {
        let Some(indent) = &self.indent else { return value.to_string() };
        let mut bytes = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
        let text = match serde::Serialize::serialize(value, &mut serializer) {
            Ok(()) => String::from_utf8(bytes).unwrap_or_default(),
            Err(_) => value.to_string(),
        };
        // Strings in JSON hold no raw line breaks, so every line is a token of its own.
        text.replace('\n', &format!("\n{}", indent.repeat(level)))
    }

    /// Id of a new cell, unique in the notebook.
    fn new_id(&self, seed: &str) -> String {
        let id = |number: u64| {
            let print = xxhash_rust::xxh3::xxh3_64(format!("{seed}\0{number}").as_bytes());
            format!("{:08x}", print as u32)
        };
        let is_free = |id: &String| !self.text.contains(id.as_str());
        (0..).map(id).find(is_free).unwrap_or_default()
    }

    /// Number of cells.
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }
}

/// White space of the first indented line.
fn indent(text: &str) -> Option<String> {
    let line = text.lines().nth(1)?;
    let indent = &line[..line.len() - line.trim_start().len()];
    (!indent.is_empty()).then(|| indent.to_owned())
}

/// A source as notebooks hold it: a list of lines with their line ends.
fn source_lines(source: &str) -> Value {
    Value::Array(source.split_inclusive('\n').map(|line| json!(line)).collect())
}
