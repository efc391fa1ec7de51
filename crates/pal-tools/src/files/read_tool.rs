//! `Read` tool: shows a file.

use std::fs::File;
use std::io::{self, Read as _, Seek};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pal_model::{ContentBlock, KnownFile, SharedText};
use pal_permissions::ToolAccess;
use serde::Deserialize;
use smol_str::SmolStr;

use super::file_io;
use super::text_page::{LineRange, TextPage, read_page};
use crate::path_resolution::describe_io_error;
use crate::tool_input::lenient;
use crate::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

/// Default number of displayed lines.
const LINES_DEFAULT: u64 = 2_000;

/// Maximum bytes of an image.
const IMAGE_BYTES_MAX: u64 = 5 * 1024 * 1024;

/// Maximum bytes of a PDF: base64 adds a third, and a request holds 32 MB.
const DOCUMENT_BYTES_MAX: u64 = 24 * 1024 * 1024;

/// Maximum bytes of a text, all of which is read for the fingerprint.
const TEXT_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Number of leading bytes that determine the kind of a file.
const SNIFFED_BYTES: u64 = 8 * 1024;

/// Shows a file: text with line numbers, images and PDFs as media blocks.
#[derive(Clone, Copy, Debug)]
pub struct ReadTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadInput {
    file_path: String,
    #[serde(default, deserialize_with = "lenient::whole_number")]
    offset: Option<u64>,
    #[serde(default, deserialize_with = "lenient::whole_number")]
    limit: Option<u64>,
}

impl ToolHandler for ReadTool {
    fn name(&self) -> &'static str {
        "Read"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn required_access(&self, input: &ToolInput, workspace: &Workspace) -> Result<Vec<ToolAccess>, String> {
        let fields: ReadInput = input.read()?;
        Ok(vec![ToolAccess::Read(workspace.resolve(&fields.file_path))])
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>) -> ToolOutput {
        read(input, context).unwrap_or_else(|wrong| ToolOutput::error(&wrong))
    }
}

fn read(input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, String> {
    let fields: ReadInput = input.read()?;
    let named = &fields.file_path;
    let real = context.readable(named)?;
    let mut file = file_io::open(&real).map_err(|err| match err.kind() {
        io::ErrorKind::IsADirectory => {
            format!("{named} is a folder, not a file. List it with Glob (pattern \"*\", path \"{named}\").")
        }
        _ => describe_io_error(named, &err),
    })?;
    match detect_kind(&mut file).map_err(|err| describe_io_error(named, &err))? {
        FileKind::Text => show_text(&fields, &real, &file, context),
        FileKind::Image(media_type) if context.workspace.media.images => {
            show_media("image", media_type, IMAGE_BYTES_MAX, &OpenFile { named, real: &real, file }, context)
        }
        FileKind::Document if context.workspace.media.documents => {
            let opened = OpenFile { named, real: &real, file };
            show_media("document", "application/pdf", DOCUMENT_BYTES_MAX, &opened, context)
        }
        FileKind::Image(media_type) => {
            Err(format!("{named} is a picture ({media_type}), and this model cannot look at pictures."))
        }
        FileKind::Document => Err(format!(
            "{named} is a PDF, and this model cannot look at PDFs. A command such as pdftotext makes text of it."
        )),
        FileKind::Other(what) => Err(format!(
            "{named} is no text ({what}). Look at it with a command that knows the format, such as file, strings or xxd."
        )),
    }
}

/// Kind of a file for display.
enum FileKind {
    Text,
    Image(&'static str),
    Document,
    Other(&'static str),
}

/// Determines the kind of a file by its first bytes, not its name.
fn detect_kind(file: &mut File) -> io::Result<FileKind> {
    let mut beginning = Vec::new();
    file.by_ref().take(SNIFFED_BYTES).read_to_end(&mut beginning)?;
    file.rewind()?;
    let known = infer::get(&beginning).map(|known| known.mime_type());
    Ok(match known {
        Some(image @ ("image/png" | "image/jpeg" | "image/gif" | "image/webp")) => FileKind::Image(image),
        Some("application/pdf") => FileKind::Document,
        _ if !beginning.contains(&0) => FileKind::Text,
        Some(other) => FileKind::Other(other),
        None if beginning.starts_with(&[0xff, 0xfe]) || beginning.starts_with(&[0xfe, 0xff]) => {
            FileKind::Other("UTF-16, which iconv -f UTF-16 -t UTF-8 makes readable")
        }
        None => FileKind::Other("binary"),
    })
}

fn show_text(
    fields: &ReadInput,
    real: &Path,
    file: &File,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, String> {
    let named = &fields.file_path;
    let length = file.metadata().map_err(|err| describe_io_error(named, &err))?.len();
    if length > TEXT_BYTES_MAX {
        return Err(format!(
            "{named} has {length} bytes, which is too much to page through. Search it with Grep, or cut a piece out of \
             it with a command."
        ));
    }
    let wanted = LineRange {
        first: fields.offset.unwrap_or(1).max(1),
        most: fields.limit.unwrap_or(LINES_DEFAULT).max(1),
    };
    let page = read_page(file, wanted, context.cancel).map_err(|err| describe_io_error(named, &err))?;
    let lines = (page.shown < page.lines).then_some((wanted.first, page.shown));
    let seen =
        KnownFile { fingerprint: page.print.clone(), call: Some(SmolStr::new(context.call.as_str())), lines };
    // Spilled results are read because they are not visible: a reference would lead in a circle.
    let is_put_aside = real.starts_with(&context.workspace.session);
    if let Some(earlier) = context.workspace.seen_file(real).filter(|_| !is_put_aside)
        && let Some(stub) = unchanged_stub(named, &earlier, &seen, context.workspace)
    {
        return Ok(ToolOutput { touched: vec![real.to_owned()], ..ToolOutput::text(&stub) });
    }
    let mut output = ToolOutput::text(&render_page(&page, wanted));
    super::record_seen_file(&mut output, context, real, seen);
    Ok(output)
}

/// Reference to the call that showed the same lines of the same file, if its result is still visible.
fn unchanged_stub(
    named: &str,
    earlier: &KnownFile,
    now: &KnownFile,
    workspace: &Workspace,
) -> Option<String> {
    let call = earlier.call.as_ref().filter(|call| workspace.is_result_visible(call))?;
    (earlier.fingerprint == now.fingerprint && earlier.lines == now.lines).then(|| {
        format!("[{named} has not changed since call {call} showed these lines. They stand there, and still hold.]")
    })
}

/// Text of a page with notes.
fn render_page(page: &TextPage, wanted: LineRange) -> String {
    let mut notes = Vec::new();
    if page.lines == 0 {
        return String::from("[The file is empty.]");
    }
    if page.shown == 0 {
        return format!("[The file has {} lines: there is no line {}.]", page.lines, wanted.first);
    }
    let last = wanted.first + page.shown - 1;
    if last < page.lines {
        let next = last + 1;
        notes
            .push(format!("Lines {} to {last} of {}. Read on with offset {next}.", wanted.first, page.lines));
    } else if wanted.first > 1 {
        notes.push(format!("Lines {} to {last} of {last}: the end of the file.", wanted.first));
    }
    if !page.cut.is_empty() {
        notes.push(cut_lines(&page.cut));
    }
    if page.is_lossy {
        notes.push(String::from("Some bytes are no UTF-8 and are shown as \u{fffd}."));
    }
    match page.carriage_returns {
        0 => {}
        all if all == page.shown => notes.push(String::from("Lines end with CR LF; edits keep that.")),
        some => notes.push(format!("{some} of these lines end with CR LF, the others with LF.")),
    }
    if page.is_open_ended {
        notes.push(String::from("The last line has no line end."));
    }
    if notes.is_empty() { page.text.clone() } else { format!("{}\n[{}]", page.text, notes.join(" ")) }
}

fn cut_lines(cut: &[(u64, u64)]) -> String {
    const NAMED_MAX: usize = 5;
    let named: Vec<String> =
        cut.iter().take(NAMED_MAX).map(|(line, bytes)| format!("{line} ({bytes} bytes)")).collect();
    let more = match cut.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("Cut for their length: line {}{more}. A command such as cut -c shows the rest.", named.join(", "))
}

/// Open file with its name and resolved path.
struct OpenFile<'a> {
    named: &'a str,
    real: &'a Path,
    file: File,
}

/// Shows an image or a document as a media block.
fn show_media(
    block: &str,
    media_type: &str,
    bytes_max: u64,
    opened: &OpenFile<'_>,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, String> {
    let OpenFile { named, real, file } = opened;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|err| describe_io_error(named, &err))?;
    if bytes.len() as u64 > bytes_max {
        let most = bytes_max / (1024 * 1024);
        return Err(format!(
            "{named} is too large to be shown: an {media_type} may have {most} MB. Make it smaller, or take a part of \
             it, with a command."
        ));
    }
    let print = file_io::fingerprint(&bytes);
    let seen = KnownFile { fingerprint: print, call: Some(SmolStr::new(context.call.as_str())), lines: None };
    if let Some(earlier) = context.workspace.seen_file(real)
        && let Some(stub) = unchanged_stub(named, &earlier, &seen, context.workspace)
    {
        return Ok(ToolOutput { touched: vec![real.to_path_buf()], ..ToolOutput::text(&stub) });
    }
    let data = STANDARD.encode(&bytes);
    let raw = format!(
        r#"{{"type":"{block}","source":{{"type":"base64","media_type":"{media_type}","data":"{data}"}}}}"#
    );
    let mut output =
        ToolOutput { content: vec![ContentBlock::parse(SharedText::from(raw))], ..ToolOutput::default() };
    super::record_seen_file(&mut output, context, real, seen);
    Ok(output)
}
