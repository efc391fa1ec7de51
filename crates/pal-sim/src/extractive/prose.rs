//! Small pieces of prose: cutting, fitting, sentences.

/// A text of at most about this many bytes; what is cut off is counted in its place.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    let left = text.len() - head.len();
    format!("{} [… {left} more bytes]", head.trim_end())
}

/// The first line of a text that says something, cut.
pub(crate) fn first_line(text: &str, most: usize) -> String {
    cut(text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default(), most)
}

/// As many lines as fit, in order, each once; the rest is counted.
pub(crate) fn fitted(lines: &[String], room: usize) -> String {
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

/// Texts that share some room: short ones stay whole, long ones are cut to a common length.
pub(crate) fn shared(texts: &[String], room: usize) -> Vec<String> {
    let mut lengths: Vec<usize> = texts.iter().map(String::len).collect();
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
    texts.iter().map(|text| cut(text, most)).collect()
}

/// The sentences of a text, as far as a full stop, a question or a line end tells them apart.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| {
            line.split_inclusive(['.', '!', '?']).scan(0, move |from, part| {
                // A stop inside a name such as `lib.rs` ends nothing.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_they_end() {
        let text = "I read src/lib.rs. Then v1.2 was out! Next: fix it?\n- a line\nend";
        let read: Vec<&str> = sentences(text).collect();
        assert_eq!(read, ["I read src/lib.rs.", "Then v1.2 was out!", "Next: fix it?", "- a line", "end"]);
    }

    #[test]
    fn room_is_shared_so_that_short_texts_stay_whole() {
        let texts = ["short".to_owned(), "x".repeat(1000), "y".repeat(500)];
        let shared = shared(&texts, 405);
        assert_eq!(shared[0], "short");
        assert_eq!(shared[1], format!("{} [… 800 more bytes]", "x".repeat(200)));
        assert_eq!(shared[2], format!("{} [… 300 more bytes]", "y".repeat(200)));
        assert_eq!(cut("漢字", 4), "漢 [… 3 more bytes]");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let lines: Vec<String> = (0..10).map(|at| format!("- line {at}")).collect();
        assert_eq!(fitted(&lines, 20), "- line 0\n- line 1\n- … and 8 more\n");
        assert_eq!(fitted(&["- a".into(), "- a".into()], 100), "- a\n");
    }
}
