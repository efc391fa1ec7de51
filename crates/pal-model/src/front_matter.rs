//! Front matter: the block between two `---` lines at the start of a file.

/// Splits a file into front matter and body. Returns none unless the first line is `---` and another `---` line follows.
pub fn split_front_matter(file: &str) -> Option<(&str, &str)> {
    let first = file.split_inclusive('\n').next()?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut end = first.len();
    for line in file[first.len()..].split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&file[first.len()..end], &file[end + line.len()..]));
        }
        end += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_split_at_its_closing_line() {
        assert_eq!(split_front_matter("---\nname: a\n---\ntext\n"), Some(("name: a\n", "text\n")));
        assert_eq!(split_front_matter("---\r\nname: a\r\n---\r\ntext"), Some(("name: a\r\n", "text")));
        assert_eq!(split_front_matter("---\n---\n"), Some(("", "")));
        assert_eq!(split_front_matter("text\n---\n"), None);
        assert_eq!(split_front_matter("---\nnever ends\n"), None);
    }
}
