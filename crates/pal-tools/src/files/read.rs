//! Read: shows a file.

use std::fs::File;
use std::io::{self, Read as _, Seek};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pal_model::{Block, FileSeen, Text};
use pal_permissions::Need;
use serde::Deserialize;
use smol_str::SmolStr;

use super::disk;
use super::page::{Page, Wanted, page};
use crate::input::lenient;
use crate::paths::trouble;
use crate::{Input, Output, Running, Tool, Workspace};

/// Lines that are shown unless the call says otherwise.
const LINES_DEFAULT: u64 = 2_000;

/// Most bytes of a picture.
const IMAGE_BYTES_MAX: u64 = 5 * 1024 * 1024;

/// Most bytes of a PDF: in the letters that it is sent in it is a third larger, and a request holds 32 MB.
const DOCUMENT_BYTES_MAX: u64 = 24 * 1024 * 1024;

/// Most bytes of a text: all of it is looked at for the fingerprint.
const TEXT_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Bytes from which it is told what a file is.
const SNIFFED_BYTES: u64 = 8 * 1024;

/// Shows a file: text with line numbers, pictures and PDFs as what they are.
#[derive(Clone, Copy, Debug)]
pub struct Read;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    file_path: String,
    #[serde(default, deserialize_with = "lenient::whole_number")]
    offset: Option<u64>,
    #[serde(default, deserialize_with = "lenient::whole_number")]
    limit: Option<u64>,
}

impl Tool for Read {
    fn name(&self) -> &'static str {
        "Read"
    }

    fn only_looks(&self, _: &Input) -> bool {
        true
    }

    fn needs(&self, input: &Input, workspace: &Workspace) -> Result<Vec<Need>, String> {
        let fields: Fields = input.read()?;
        Ok(vec![Need::Read(workspace.resolve(&fields.file_path))])
    }

    fn run(&self, input: &Input, running: &Running<'_>) -> Output {
        read(input, running).unwrap_or_else(|wrong| Output::error(&wrong))
    }
}

fn read(input: &Input, running: &Running<'_>) -> Result<Output, String> {
    let fields: Fields = input.read()?;
    let named = &fields.file_path;
    let real = running.readable(named)?;
    let mut file = disk::open(&real).map_err(|err| match err.kind() {
        io::ErrorKind::IsADirectory => {
            format!("{named} is a folder, not a file. List it with Glob (pattern \"*\", path \"{named}\").")
        }
        _ => trouble(named, &err),
    })?;
    match kind_of(&mut file).map_err(|err| trouble(named, &err))? {
        Kind::Text => show_text(&fields, &real, &file, running),
        Kind::Image(media_type) if running.workspace.abilities.images => {
            show_media("image", media_type, IMAGE_BYTES_MAX, &Opened { named, real: &real, file }, running)
        }
        Kind::Document if running.workspace.abilities.documents => {
            let opened = Opened { named, real: &real, file };
            show_media("document", "application/pdf", DOCUMENT_BYTES_MAX, &opened, running)
        }
        Kind::Image(media_type) => {
            Err(format!("{named} is a picture ({media_type}), and this model cannot look at pictures."))
        }
        Kind::Document => Err(format!(
            "{named} is a PDF, and this model cannot look at PDFs. A command such as pdftotext makes text of it."
        )),
        Kind::Other(what) => Err(format!(
            "{named} is no text ({what}). Look at it with a command that knows the format, such as file, strings or xxd."
        )),
    }
}

/// What a file is, as far as it matters for showing it.
enum Kind {
    Text,
    Image(&'static str),
    Document,
    Other(&'static str),
}

/// Tells what a file is by how it begins; its name does not count.
fn kind_of(file: &mut File) -> io::Result<Kind> {
    let mut beginning = Vec::new();
    file.by_ref().take(SNIFFED_BYTES).read_to_end(&mut beginning)?;
    file.rewind()?;
    let known = infer::get(&beginning).map(|known| known.mime_type());
    Ok(match known {
        Some(image @ ("image/png" | "image/jpeg" | "image/gif" | "image/webp")) => Kind::Image(image),
        Some("application/pdf") => Kind::Document,
        _ if !beginning.contains(&0) => Kind::Text,
        Some(other) => Kind::Other(other),
        None if beginning.starts_with(&[0xff, 0xfe]) || beginning.starts_with(&[0xfe, 0xff]) => {
            Kind::Other("UTF-16, which iconv -f UTF-16 -t UTF-8 makes readable")
        }
        None => Kind::Other("binary"),
    })
}

fn show_text(fields: &Fields, real: &Path, file: &File, running: &Running<'_>) -> Result<Output, String> {
    let named = &fields.file_path;
    let length = file.metadata().map_err(|err| trouble(named, &err))?.len();
    if length > TEXT_BYTES_MAX {
        return Err(format!(
            "{named} has {length} bytes, which is too much to page through. Search it with Grep, or cut a piece out of \
             it with a command."
        ));
    }
    let wanted = Wanted {
        first: fields.offset.unwrap_or(1).max(1),
        most: fields.limit.unwrap_or(LINES_DEFAULT).max(1),
    };
    let page = page(file, wanted, running.cancel).map_err(|err| trouble(named, &err))?;
    let lines = (page.shown < page.lines).then_some((wanted.first, page.shown));
    let seen = FileSeen { print: page.print.clone(), call: Some(SmolStr::new(running.call.as_str())), lines };
    // What was put aside is read because it is not in sight: a pointer to it would lead in a circle.
    let is_put_aside = real.starts_with(&running.workspace.session);
    if let Some(earlier) = running.workspace.seen(real).filter(|_| !is_put_aside)
        && let Some(stub) = stub(named, &earlier, &seen, running.workspace)
    {
        return Ok(Output { touched: vec![real.to_owned()], ..Output::text(&stub) });
    }
    let mut output = Output::text(&told(&page, wanted));
    super::note(&mut output, running, real, seen);
    Ok(output)
}

/// A pointer to the call that showed the same lines of the same file, if its result is still there.
fn stub(named: &str, earlier: &FileSeen, now: &FileSeen, workspace: &Workspace) -> Option<String> {
    let call = earlier.call.as_ref().filter(|call| workspace.is_shown(call))?;
    (earlier.print == now.print && earlier.lines == now.lines).then(|| {
        format!("[{named} has not changed since call {call} showed these lines. They stand there, and still hold.]")
    })
}

/// The page with what there is to say about it.
fn told(page: &Page, wanted: Wanted) -> String {
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

/// A file that is open, what the model called it and where it is.
struct Opened<'a> {
    named: &'a str,
    real: &'a Path,
    file: File,
}

/// Shows a picture or a document as a block of its own.
fn show_media(
    block: &str,
    media_type: &str,
    bytes_max: u64,
    opened: &Opened<'_>,
    running: &Running<'_>,
) -> Result<Output, String> {
    let Opened { named, real, file } = opened;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|err| trouble(named, &err))?;
    if bytes.len() as u64 > bytes_max {
        let most = bytes_max / (1024 * 1024);
        return Err(format!(
            "{named} is too large to be shown: an {media_type} may have {most} MB. Make it smaller, or take a part of \
             it, with a command."
        ));
    }
    let print = disk::print_of(&bytes);
    let seen = FileSeen { print, call: Some(SmolStr::new(running.call.as_str())), lines: None };
    if let Some(earlier) = running.workspace.seen(real)
        && let Some(stub) = stub(named, &earlier, &seen, running.workspace)
    {
        return Ok(Output { touched: vec![real.to_path_buf()], ..Output::text(&stub) });
    }
    let data = STANDARD.encode(&bytes);
    let raw = format!(
        r#"{{"type":"{block}","source":{{"type":"base64","media_type":"{media_type}","data":"{data}"}}}}"#
    );
    let mut output = Output { content: vec![Block::parse(Text::from(raw))], ..Output::default() };
    super::note(&mut output, running, real, seen);
    Ok(output)
}
