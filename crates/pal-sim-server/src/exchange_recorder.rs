//! Directory with every request and reply as sent, without keys.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pal_sim::{HttpReply, HttpRequest, ReplyEnding};
use pal_store::create_private_directory;

/// Writes exchanges to a directory.
#[derive(Debug)]
pub(crate) struct ExchangeRecorder {
    folder: PathBuf,
    /// Highest number left by earlier runs; numbering continues from it.
    earlier: u64,
}

impl ExchangeRecorder {
    /// Opens the directory, creating it if needed.
    pub(crate) fn open(folder: &Path) -> io::Result<ExchangeRecorder> {
        create_private_directory(folder).map_err(io::Error::other)?;
        let mut earlier = 0;
        for file in fs::read_dir(folder)? {
            let name = file?.file_name();
            let number = name
                .to_str()
                .and_then(|name| name.split_once('.'))
                .and_then(|(number, _)| number.parse().ok());
            earlier = earlier.max(number.unwrap_or(0));
        }
        Ok(ExchangeRecorder { folder: folder.to_owned(), earlier })
    }

    /// Writes one exchange as `0001.request.json` and `0001.response.txt`.
    pub(crate) fn record(&self, number: u64, request: &HttpRequest<'_>, reply: &HttpReply) -> io::Result<()> {
        let number = self.earlier + number;
        self.write(&format!("{number:04}.request.json"), request.body)?;
        let mut response =
            format!("{} {}\nHTTP {}\n", request.method, request.path, reply.status).into_bytes();
        for (name, value) in &reply.headers {
            response.extend_from_slice(format!("{name}: {value}\n").as_bytes());
        }
        response.push(b'\n');
        response.extend_from_slice(&reply.body());
        response.extend_from_slice(match reply.ending {
            ReplyEnding::Whole => b"",
            ReplyEnding::Cut => b"\n[the connection broke here]\n",
            ReplyEnding::Silent => b"\n[nothing more came]\n",
        });
        self.write(&format!("{number:04}.response.txt"), &response)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.folder.join(name);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
    }
}
