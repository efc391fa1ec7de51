//! History of prompts in a file, one JSON string per line.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use pal_model::{escape_into, unescape};

/// Maximum number of loaded prompts.
const PROMPTS_MAX: usize = 500;
/// Maximum number of bytes read from the end of the file.
const BYTES_MAX: usize = 1 << 20;

/// The history file.
pub(crate) struct PromptHistory {
    path: Option<PathBuf>,
}

impl PromptHistory {
    /// Uses a file, or keeps no history.
    pub(crate) fn new(path: Option<PathBuf>) -> PromptHistory {
        PromptHistory { path }
    }

    /// Reads earlier prompts, oldest first; empty if the file cannot be read.
    pub(crate) fn read(&self) -> Vec<String> {
        let Some(bytes) = self.path.as_ref().and_then(|path| fs::read(path).ok()) else { return Vec::new() };
        let bytes = &bytes[bytes.len().saturating_sub(BYTES_MAX)..];
        let text = String::from_utf8_lossy(bytes);
        let prompts: Vec<String> =
            text.lines().filter_map(|line| Some(unescape(line)?.into_owned())).collect();
        prompts[prompts.len().saturating_sub(PROMPTS_MAX)..].to_vec()
    }

    /// Keeps a prompt. It is a convenience: a disk that is full does not stop anybody from speaking.
    pub(crate) fn add(&self, prompt: &str) {
        let Some(path) = &self.path else { return };
        let mut line = String::new();
        escape_into(&mut line, prompt);
        line.push('\n');
        let file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
