//! Diagnostic log of the program. Off by default, and limited to this project's own crates.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tracing_subscriber::filter::{EnvFilter, FilterExt, filter_fn};
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

/// Prefix of our own modules. Dependencies log headers and bodies at verbose levels, and so keys.
const OURS: &str = "pal_";

/// The log cannot be begun.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter is none.
    #[error(
        "`log` is `{filter}`, which is no filter: {why}; write for instance debug, or pal_provider=debug,info"
    )]
    Filter {
        /// Filter as given.
        filter: String,
        /// Error in it.
        why: String,
    },
    /// The file cannot be written.
    #[error("the log cannot be written to {}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A log was begun before.
    #[error("a log was begun already")]
    Twice,
}

/// Begins to log what passes the filter, to the end of a file or to standard error. To be called once, by a program.
pub fn start_log(filter: &str, file: Option<&Path>) -> Result<(), LogError> {
    let wrong = |error: &dyn std::fmt::Display| LogError::Filter {
        filter: filter.to_owned(),
        why: error.to_string(),
    };
    let levels = EnvFilter::builder().parse(filter).map_err(|error| wrong(&error))?;
    let chosen = levels.and(filter_fn(|data| data.target().starts_with(OURS)));
    let lines = fmt::layer().with_ansi(false).with_span_events(FmtSpan::NONE);
    let begun = match file {
        Some(path) => {
            let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
            let file = opened.map_err(|source| LogError::File { path: path.to_owned(), source })?;
            let file = Mutex::new(MaskingWriter(file));
            Registry::default().with(lines.with_writer(file).with_filter(chosen)).try_init()
        }
        None => {
            let stderr = || MaskingWriter(io::stderr());
            Registry::default().with(lines.with_writer(stderr).with_filter(chosen)).try_init()
        }
    };
    begun.map_err(|_| LogError::Twice)
}

/// Masks the secrets of every line before it is written: messages of libraries and commands may quote anything. A line comes
/// in one piece.
struct MaskingWriter<W>(W);

impl<W: Write> Write for MaskingWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.write_all(pal_secrets::mask_secrets(&text).text.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_reach_the_log() {
        let mut written = Vec::new();
        let line = "WARN pal_mcp: server said: password=hunter2!x and postgres://a:s3cr3t-Pa55@db/x\n";
        MaskingWriter(&mut written).write_all(line.as_bytes()).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert!(!written.contains("hunter2") && !written.contains("s3cr3t"), "{written}");
        assert!(written.starts_with("WARN pal_mcp: server said: password=[secret: password]"), "{written}");
        assert!(written.ends_with("@db/x\n"), "{written}");
    }
}
