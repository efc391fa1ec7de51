//! File paths in free text, and whole-word search.
//!
//! Precise rather than complete: a path needs an extension or a well-known root directory. Words merely
//! joined by slashes (`and/or`, `origin/main`, dates, MIME types, routes), patterns, addresses and lists of
//! alternatives are no paths.

use memchr::memmem;

/// Characters that delimit words that may be paths.
const DELIMITERS: &str = "\"'`“”‘’()<>[]{},;=|";
/// A word next to one of these characters is part of something larger.
const CLOSING: &str = ")]}>*";
const OPENING: &str = "([{<*$";
/// Characters of patterns, variables and addresses that file names seldom contain.
const FOREIGN: &str = "*?^$|\\%~!&";
/// Root directories: a path that begins with one needs no extension.
const ROOTS: [&str; 14] = [
    "home",
    "Users",
    "usr",
    "etc",
    "tmp",
    "var",
    "opt",
    "root",
    "mnt",
    "srv",
    "private",
    "workspace",
    "testbed",
    "Library",
];
/// First parts of MIME types.
const MEDIA: [&str; 9] =
    ["application", "text", "image", "audio", "video", "multipart", "font", "message", "model"];
/// Last parts of domains.
const DOMAINS: [&str; 14] =
    ["com", "org", "net", "io", "dev", "ai", "app", "co", "gov", "edu", "uk", "de", "sh", "rs"];
/// Extensions of hand-written files. A part with one, other than the last, makes a list of alternatives; a
/// bare name with one is a file.
const WRITTEN: [&str; 40] = [
    "rs", "py", "pyi", "ts", "tsx", "js", "jsx", "mjs", "cjs", "go", "java", "kt", "c", "h", "cc", "cpp",
    "hpp", "cs", "rb", "php", "swift", "scala", "sh", "bash", "sql", "html", "css", "scss", "vue", "svelte",
    "md", "rst", "txt", "toml", "yaml", "yml", "json", "jsonl", "xml", "ipynb",
];
/// Product names that look like files.
const PRODUCTS: [&str; 12] = [
    "node.js",
    "next.js",
    "vue.js",
    "react.js",
    "nuxt.js",
    "express.js",
    "three.js",
    "d3.js",
    "deno.js",
    "ember.js",
    "chart.js",
    "asp.net",
];

/// Finds the file paths in a text, in order, each once. Positions (`:12`, `#L3`, `::test`) are removed.
pub fn find_paths(text: &str) -> Vec<&str> {
    let mut seen = rustc_hash::FxHashSet::default();
    candidates(text).filter_map(path).filter(|path| seen.insert(*path)).collect()
}

/// Returns true if a text contains `words` bounded by word ends, so that `ok` is not found in `token`.
pub fn contains_bounded(text: &str, words: &str) -> bool {
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let (opens, closes) = (is_letter(words.chars().next()), is_letter(words.chars().next_back()));
    memmem::find_iter(text.as_bytes(), words).any(|at| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + words.len()..).and_then(|after| after.chars().next());
        !(opens && is_letter(before) || closes && is_letter(after))
    })
}

/// Words that may be paths.
fn candidates(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |letter: char| letter.is_whitespace() || DELIMITERS.contains(letter);
    let start_of = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    text.split(is_end).filter(|word| word.len() > 3 && word.contains(['/', '.'])).filter(move |word| {
        let start = start_of(word);
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let after = text.get(start + word.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(|letter| CLOSING.contains(letter))
            && !after.is_some_and(|letter| OPENING.contains(letter))
    })
}

/// Returns the path in a word, if it is one.
fn path(word: &str) -> Option<&str> {
    let word = word.split("::").next().unwrap_or_default();
    let word = word.split('#').next().unwrap_or_default();
    let word = without_position(word).trim_end_matches(['.', ':', '!', '?', '/', '*', '_', '…']);
    let word = word.trim_start_matches(['*', '_']).trim_start_matches('@');
    let home = word.strip_prefix("~/");
    let rest = home.unwrap_or(word);
    if !(4..=300).contains(&word.len()) || rest.contains(|letter| FOREIGN.contains(letter)) {
        return None;
    }
    if rest.contains("//")
        || rest.contains("...")
        || rest.contains('…')
        || rest.contains(':')
        || rest.starts_with('-')
    {
        return None;
    }
    let parts: Vec<&str> =
        rest.split('/').filter(|part| !part.is_empty() && *part != "." && *part != "..").collect();
    let (last, folders) = parts.split_last()?;
    let is_rooted = rest.starts_with('/') && parts.len() > 2 && ROOTS.contains(parts.first()?);
    if folders.is_empty() {
        return (!rest.starts_with('/') && is_file(last)).then_some(word);
    }
    let is_named = extension(last).is_some() || is_rooted || (home.is_some() && parts.len() > 1);
    (is_named && !is_otherwise(rest, folders, last)).then_some(word)
}

/// Returns true if parts joined by slashes are something other than a path.
fn is_otherwise(whole: &str, folders: &[&str], last: &str) -> bool {
    let first = folders.first().copied().unwrap_or_default();
    let is_relative = !whole.starts_with('/');
    let is_domain = is_relative
        && !first.starts_with('.')
        && first
            .rsplit_once('.')
            .is_some_and(|(_, end)| DOMAINS.contains(&end.to_ascii_lowercase().as_str()));
    let is_media = is_relative
        && folders.len() == 1
        && MEDIA.contains(&first)
        && (last.contains('+') || last.starts_with("vnd.") || last.starts_with("x-"));
    let is_list = folders.iter().any(|part| is_written(part))
        || (first.starts_with('.')
            && last.starts_with('.')
            && is_relative
            && folders.len() == 1
            && extension(last).is_none());
    let is_number =
        folders.iter().chain([&last]).all(|part| !part.contains(|letter: char| letter.is_alphabetic()));
    is_domain || is_media || is_list || is_number
}

/// Returns true if a name without a directory is surely a file.
fn is_file(name: &str) -> bool {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    // A single letter behind several dots is rather a member access.
    let is_member = extension(name).is_some_and(|end| end.len() == 1) && name.matches('.').count() > 1;
    is_plain && !is_member && is_written(name) && !PRODUCTS.contains(&name.to_ascii_lowercase().as_str())
}

/// Returns true if a name has the extension of a hand-written file.
fn is_written(name: &str) -> bool {
    extension(name).is_some_and(|end| WRITTEN.contains(&end))
}

/// Extension of a name; `None` if the part behind the dot is no word.
fn extension(name: &str) -> Option<&str> {
    let (stem, end) = name.rsplit_once('.')?;
    let is_word = (1..=10).contains(&end.len())
        && end.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        && end.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    (is_word && !stem.is_empty() && !matches!(name, "e.g" | "i.e")).then_some(end)
}

/// Removes the line, column or item from a word.
fn without_position(word: &str) -> &str {
    match word.split_once(':') {
        Some((path, position)) if path.contains(['/', '.']) && !position.contains('/') => path,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_free_text() {
        let cases: &[(&str, &[&str])] = &[
            ("see src/lib.rs.", &["src/lib.rs"]),
            (
                "(crates/a/src/lib.rs:12:3) and `b/c.py`, \"d/e.ts\"",
                &["crates/a/src/lib.rs", "b/c.py", "d/e.ts"],
            ),
            (
                "**/srv/x/README.md** /home/u/project ~/.config/app",
                &["/srv/x/README.md", "/home/u/project", "~/.config/app"],
            ),
            (
                "tests/test_x.py::test_one docs/a.md#part [x](docs/b.md)",
                &["tests/test_x.py", "docs/a.md", "docs/b.md"],
            ),
            ("twice a/b.rs and a/b.rs", &["a/b.rs"]),
            ("Cargo.toml, `audit.rs` and ./x/y.json", &["Cargo.toml", "audit.rs", "./x/y.json"]),
        ];
        for (text, wanted) in cases {
            assert_eq!(find_paths(text), *wanted, "{text}");
        }
    }

    #[test]
    fn path_lookalikes_are_rejected() {
        let cases = [
            "and/or 1/2 24/7 2026/11/15 n/a I/O TCP/IP client/server",
            "https://example.com/a/b.html http://x.org/c.js www.example.com/x.html github.com/owner/repo.git",
            "application/json text/html image/svg+xml application/vnd.api+json",
            "origin/main feature/new-thing owner/repo user/image:1.2 @scope/package",
            "^/api/.*\\.js$ src/**/*.rs s/old/new/g /^foo/ [a-z]/x.rs $HOME/x.rs {a,b}/c.rs a/{b,c}.rs",
            "/help /compact /api/users GET /v1/messages",
            "read.rs/write.rs .cjs/.mjs Node.js v1.2/3.4 e.g./i.e. localhost:3000/x.html",
            ".../lib.rs …/lib.rs 3.14 foo.bar() self.items a.b.c 1.2.3",
            "app/(auth)/[id]/page.tsx",
        ];
        for text in cases {
            assert_eq!(find_paths(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn words_are_matched_at_their_ends() {
        assert!(contains_bounded("yes: ok, go", "ok") && contains_bounded("ok", "ok"));
        assert!(!contains_bounded("a token", "ok") && !contains_bounded("", "ok"));
        assert!(
            contains_bounded("tokens are ok", "ok")
                && contains_bounded("a→b", "→")
                && contains_bounded("über", "über")
        );
        assert!(!contains_bounded("lüber", "über"));
    }
}
