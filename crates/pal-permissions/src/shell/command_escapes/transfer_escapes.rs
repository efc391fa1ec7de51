//! Options by which transfer programs run others, or read and write files that rules do not see.

use super::{find, is_letter_before, is_short_for};
use crate::shell::ShellWord;

/// Long options of `curl` that read, write or send files.
const CURL: [&str; 33] = [
    "config",
    "output",
    "output-dir",
    "remote-name",
    "remote-name-all",
    "remote-header-name",
    "dump-header",
    "cookie",
    "cookie-jar",
    "trace",
    "trace-ascii",
    "trace-config",
    "stderr",
    "etag-save",
    "etag-compare",
    "upload-file",
    "form",
    "libcurl",
    "hsts",
    "alt-svc",
    "engine",
    "netrc",
    "netrc-file",
    "netrc-optional",
    "unix-socket",
    "abstract-unix-socket",
    "url-query",
    "ssl-sessions",
    "data-urlencode",
    "quote",
    "variable",
    "expand-data",
    "telnet-option",
];

const WGET: [&str; 21] = [
    "execute",
    "use-askpass",
    "config",
    "output-document",
    "output-file",
    "append-output",
    "directory-prefix",
    "post-file",
    "body-file",
    "input-file",
    "input-metalink",
    "save-cookies",
    "load-cookies",
    "warc-file",
    "warc-tempdir",
    "hsts-file",
    "rejected-log",
    "private-key",
    "base",
    "recursive",
    "mirror",
];

/// Finds the word from which `tar` may do anything. It takes letters without a dash, and an archive name with
/// a colon is remote.
pub(super) fn tar(words: &[ShellWord]) -> Option<usize> {
    let is_bundle = |text: &str| !text.starts_with('-') && text.contains(['I', 'F', 'P']);
    let bundle = words.get(1).and_then(|word| word.text.as_deref()).filter(|text| is_bundle(text)).map(|_| 1);
    let option = find(words, |text| {
        (text.starts_with('-') && !text.starts_with("--") && text.contains('P')) || text.contains(':')
    });
    bundle.into_iter().chain(option).min()
}

pub(super) fn curl(words: &[ShellWord]) -> Option<usize> {
    find(words, |text| {
        is_letter_before(text, "KoOJDcTFbnQ", "XHAeumwxyYzrtUCPdE")
            || CURL.iter().any(|long| is_short_for(text, long))
            // `@name` stands for the content of a file.
            || (text.contains('@') && !text.contains("://"))
            || text.contains("%output")
            || text.to_lowercase().contains("file:")
    })
}

pub(super) fn wget(words: &[ShellWord]) -> Option<usize> {
    find(words, |text| {
        is_letter_before(text, "eOPoaiBrm", "UtTwQADRIXl") || WGET.iter().any(|long| is_short_for(text, long))
    })
}
