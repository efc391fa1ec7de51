//! Line prefixes of runners and servers: labels and times.

/// Removes the job, step and time that server logs put before a line.
pub(super) fn without_time(line: &str) -> &str {
    let mut rest = line;
    let mut fields = line.splitn(3, '\t');
    if let (Some(_), Some(_), Some(third)) = (fields.next(), fields.next(), fields.next())
        && is_date(third)
    {
        rest = third;
    }
    rest = rest.trim_start_matches(['[', ' ']);
    if is_date(rest) {
        let end = rest.find(' ').unwrap_or(rest.len());
        let after_date = rest[end..].trim_start();
        return if rest[..end].contains(':') { after_date } else { without_clock(after_date) };
    }
    if rest.as_bytes().first().is_some_and(u8::is_ascii_digit) { without_clock(rest) } else { line }
}

/// Returns true if a line begins with a date or a time of day.
pub(super) fn has_time(line: &str) -> bool {
    let line = line.trim_start_matches(['[', ' ']);
    is_date(line) || without_clock(line).len() < line.len()
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() > 10 && bytes[..4].iter().all(u8::is_ascii_digit) && bytes[4] == b'-' && bytes[7] == b'-'
}

fn without_clock(text: &str) -> &str {
    let bytes = text.as_bytes();
    let is_clock = bytes.len() > 8
        && [0, 1, 3, 4, 6, 7].iter().all(|&at| bytes[at].is_ascii_digit())
        && bytes[2] == b':'
        && bytes[5] == b':';
    if is_clock { text.find(' ').map_or("", |end| text[end..].trim_start()) } else { text }
}

/// Removes the label that multi-package runners put before each line: `core test: `, `web:build: `, `api | `,
/// `#12 0.345 `, `[vite] `; `None` if there is none.
pub(super) fn without_label(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix('#') {
        let rest = rest.trim_start_matches(|character: char| character.is_ascii_digit());
        let rest = rest.strip_prefix(' ')?;
        return Some(
            rest.trim_start_matches(|character: char| character.is_ascii_digit() || character == '.'),
        );
    }
    let bytes = line.as_bytes();
    let ends_label = |at: &usize| {
        let at = *at;
        bytes[at] == b':' && bytes.get(at + 1) == Some(&b' ') || bytes[at..].starts_with(b" | ")
    };
    let end = (0..bytes.len().min(60)).find(ends_label)?;
    let label = &line[..end];
    let is_label = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@/._-: ".contains(&byte))
        && label.bytes().filter(|byte| *byte == b' ').count() <= 1;
    is_label.then(|| without_time(line[end + 2..].trim_start_matches(['|', ' '])))
}
