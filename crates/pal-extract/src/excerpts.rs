//! Text excerpts: truncating, fitting, splitting into sentences, finding lines.

use memchr::{memchr, memmem, memrchr};

/// Truncates a text to about `most` bytes; a note counts what was cut off.
pub fn truncate(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    let left = text.len() - head.len();
    format!("{} [… {left} more bytes]", head.trim_end())
}

/// First non-blank line of a text, truncated.
pub fn first_line(text: &str, most: usize) -> String {
    truncate(text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default(), most)
}

/// Joins as many lines as fit, in order, each once; a note counts the rest.
pub fn fit_lines(lines: &[String], room: usize) -> String {
    let mut out = String::new();
    let mut seen = rustc_hash::FxHashSet::default();
    for (at, line) in lines.iter().enumerate() {
        if !seen.insert(line.as_str()) {
            continue;
        }
        if out.len() + line.len() + 1 > room {
            out.push_str(&format!("- … and {} more\n", lines.len() - at));
            break;
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// Fits texts into shared room: short ones stay whole, long ones are truncated to a common length.
pub(crate) fn shared(texts: &[&str], room: usize) -> Vec<String> {
    let mut lengths: Vec<usize> = texts.iter().map(|text| text.len()).collect();
    lengths.sort_unstable();
    let mut left = room;
    let mut most = usize::MAX;
    for (at, length) in lengths.iter().enumerate() {
        let share = left / (lengths.len() - at);
        if *length > share {
            most = share;
            break;
        }
        left -= length;
    }
    texts.iter().map(|text| truncate(text, most)).collect()
}

/// Splits a text into sentences at full stops, question marks and line ends.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| {
            line.split_inclusive(['.', '!', '?']).scan(0, move |from, part| {
                // A dot inside a name such as `lib.rs` ends no sentence.
                let start = *from;
                *from += part.len();
                Some((line, start, part))
            })
        })
        .scan((0usize, 0usize), |(open, end), (line, start, part)| {
            if start == 0 {
                *open = 0;
            }
            *end = start + part.len();
            let is_end = line.get(*end..).is_none_or(|rest| rest.is_empty() || rest.starts_with(' '));
            let sentence = is_end.then(|| line.get(*open..*end).unwrap_or_default().trim());
            if is_end {
                *open = *end;
            }
            Some(sentence)
        })
        .flatten()
        .filter(|sentence| !sentence.is_empty())
}

/// Lines of a text that contain one of these lower-case words, in order. ASCII case is ignored. One pass per
/// word instead of one per line and word, because tool results are long.
pub(crate) fn lines_with<'a>(text: &'a str, words: &[&str]) -> Vec<&'a str> {
    let lower = text.to_ascii_lowercase();
    let bytes = lower.as_bytes();
    let mut lines: Vec<(usize, usize)> = Vec::new();
    for word in words {
        let finder = memmem::Finder::new(*word);
        let mut from = 0;
        while let Some(found) = bytes.get(from..).and_then(|rest| finder.find(rest)) {
            let at = from + found;
            let start = bytes.get(..at).and_then(|before| memrchr(b'\n', before)).map_or(0, |end| end + 1);
            let end =
                bytes.get(at..).and_then(|after| memchr(b'\n', after)).map_or(bytes.len(), |end| at + end);
            lines.push((start, end));
            from = end.max(at + 1);
        }
    }
    lines.sort_unstable();
    lines.dedup();
    lines.into_iter().filter_map(|(start, end)| text.get(start..end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_split_at_their_ends() {
        let text = "I read src/lib.rs. Then v1.2 was out! Next: fix it?\n- a line\nend";
        let read: Vec<&str> = sentences(text).collect();
        assert_eq!(read, ["I read src/lib.rs.", "Then v1.2 was out!", "Next: fix it?", "- a line", "end"]);
    }

    #[test]
    fn lines_are_found_by_their_words() {
        let text = "all good\nERROR: one\nfine\nan error: two, error: three\n\nFailed\nend";
        assert_eq!(
            lines_with(text, &["error:", "failed"]),
            ["ERROR: one", "an error: two, error: three", "Failed"]
        );
        assert_eq!(lines_with("Ünïcode ERROR", &["error"]), ["Ünïcode ERROR"]);
        assert!(lines_with("", &["error"]).is_empty() && lines_with("x", &[]).is_empty());
    }

    #[test]
    fn room_is_shared_so_that_short_texts_stay_whole() {
        let (long, longer) = ("y".repeat(500), "x".repeat(1000));
        let shared = shared(&["short", &longer, &long], 405);
        assert_eq!(shared[0], "short");
        assert_eq!(shared[1], format!("{} [… 800 more bytes]", "x".repeat(200)));
        assert_eq!(shared[2], format!("{} [… 300 more bytes]", "y".repeat(200)));
        assert_eq!(truncate("漢字", 4), "漢 [… 3 more bytes]");
    }

    #[test]
    fn omitted_lines_are_counted() {
        let lines: Vec<String> = (0..10).map(|at| format!("- line {at}")).collect();
        assert_eq!(fit_lines(&lines, 20), "- line 0\n- line 1\n- … and 8 more\n");
        assert_eq!(fit_lines(&["- a".into(), "- a".into()], 100), "- a\n");
    }
}
