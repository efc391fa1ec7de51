//! Binary form of a part of the usage index: little-endian, with a version and a checksum.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use pal_import::{ScanProgress, SessionFormat, UsageFlags, UsageRow, UsageScan};
use xxhash_rust::xxh3::xxh3_64;

use super::IndexedUsage;

/// First bytes of a file. The last byte is the version: it changes with the layout, with what scans find, and with the
/// weights of token estimates.
const MAGIC: [u8; 8] = *b"palusg\0\x01";
/// Format byte of a file that no known agent wrote.
const NO_FORMAT: u8 = 255;
const FORMATS: [SessionFormat; 7] = [
    SessionFormat::Claude,
    SessionFormat::Codex,
    SessionFormat::Pi,
    SessionFormat::Copilot,
    SessionFormat::Gemini,
    SessionFormat::MiniSweAgent,
    SessionFormat::Palimpsest,
];

pub(super) fn encode(entries: &[&IndexedUsage]) -> Vec<u8> {
    let rows: usize =
        entries.iter().filter_map(|entry| entry.scan.as_ref()).map(|scan| scan.rows.len()).sum();
    let mut out = Encoder { bytes: Vec::with_capacity(rows * 56 + entries.len() * 256 + 16) };
    out.bytes.extend_from_slice(&MAGIC);
    out.number(entries.len() as u64);
    for entry in entries {
        out.entry(entry);
    }
    let checksum = xxh3_64(&out.bytes);
    out.number(checksum);
    out.bytes
}

/// Decodes a file; `None` if it is damaged or of another version.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<IndexedUsage>> {
    let content = bytes.len().checked_sub(8)?;
    let (content, checksum) = bytes.split_at(content);
    if !content.starts_with(&MAGIC) || xxh3_64(content).to_le_bytes() != checksum {
        return None;
    }
    let mut input = Decoder { bytes: &content[MAGIC.len()..] };
    let count = input.number()?;
    let mut entries = Vec::new();
    for _ in 0..count {
        entries.push(input.entry()?);
    }
    Some(entries)
}

struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    fn number(&mut self, number: u64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text);
    }

    fn entry(&mut self, entry: &IndexedUsage) {
        self.text(entry.path.as_os_str().as_bytes());
        self.number(entry.size);
        self.number(entry.modified_ns as u64);
        self.number(entry.tail_hash);
        let Some(scan) = &entry.scan else { return self.bytes.push(NO_FORMAT) };
        // Every format is in the list.
        let format = FORMATS.iter().position(|format| *format == scan.format).unwrap_or(0);
        self.bytes.push(format as u8);
        self.text(scan.program.as_bytes());
        self.text(scan.foreign_id.as_deref().unwrap_or_default().as_bytes());
        self.text(scan.cwd.as_deref().unwrap_or_default().as_bytes());
        let progress = &scan.progress;
        self.number(progress.bytes);
        self.number(progress.bad_lines);
        self.text(progress.model.as_bytes());
        self.number(progress.totals);
        self.bytes.push(u8::from(progress.is_changed) | u8::from(progress.is_own) << 1);
        self.number(scan.models.len() as u64);
        for model in &scan.models {
            self.text(model.as_bytes());
        }
        self.number(scan.rows.len() as u64);
        for row in &scan.rows {
            self.row(row);
        }
    }

    fn row(&mut self, row: &UsageRow) {
        self.number(row.key);
        self.number(row.at_ms as u64);
        self.number(row.recorded_cost);
        for tokens in
            [row.uncached, row.read, row.written, row.written_1h, row.output, row.estimate, row.break_tokens]
        {
            self.bytes.extend_from_slice(&tokens.to_le_bytes());
        }
        self.bytes.extend_from_slice(&row.model.to_le_bytes());
        self.bytes.extend_from_slice(&[row.flags.0, row.cause]);
    }
}

struct Decoder<'a> {
    bytes: &'a [u8],
}

impl<'a> Decoder<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn tokens(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn slice(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (head, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(head)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.slice()?.to_vec()).ok()
    }

    fn optional(&mut self) -> Option<Option<String>> {
        Some(Some(self.text()?).filter(|text| !text.is_empty()))
    }

    fn entry(&mut self) -> Option<IndexedUsage> {
        let path = PathBuf::from(OsString::from_vec(self.slice()?.to_vec()));
        let (size, modified_ns, tail_hash) = (self.number()?, self.number()? as i64, self.number()?);
        let scan = match self.byte()? {
            NO_FORMAT => None,
            format => Some(self.scan(*FORMATS.get(usize::from(format))?)?),
        };
        Some(IndexedUsage { path, size, modified_ns, tail_hash, scan, is_deleted: false })
    }

    fn scan(&mut self, format: SessionFormat) -> Option<UsageScan> {
        let mut scan = UsageScan::new(format);
        scan.program = self.text()?;
        scan.foreign_id = self.optional()?;
        scan.cwd = self.optional()?;
        let (bytes, bad_lines) = (self.number()?, self.number()?);
        let (model, totals, bits) = (self.text()?, self.number()?, self.byte()?);
        scan.progress = ScanProgress {
            bytes,
            bad_lines,
            model,
            totals,
            is_changed: bits & 1 != 0,
            is_own: bits & 2 != 0,
        };
        for _ in 0..self.number()? {
            scan.models.push(self.text()?);
        }
        let count = usize::try_from(self.number()?).ok()?;
        // A row has 56 bytes, so a damaged count cannot reserve more than the file holds.
        scan.rows.reserve(count.min(self.bytes.len() / 56));
        for _ in 0..count {
            scan.rows.push(self.row()?);
        }
        Some(scan)
    }

    fn row(&mut self) -> Option<UsageRow> {
        let (key, at_ms, recorded_cost) = (self.number()?, self.number()? as i64, self.number()?);
        Some(UsageRow {
            key,
            at_ms,
            recorded_cost,
            uncached: self.tokens()?,
            read: self.tokens()?,
            written: self.tokens()?,
            written_1h: self.tokens()?,
            output: self.tokens()?,
            estimate: self.tokens()?,
            break_tokens: self.tokens()?,
            model: self.array().map(u16::from_le_bytes)?,
            flags: UsageFlags(self.byte()?),
            cause: self.byte()?,
        })
    }
}
