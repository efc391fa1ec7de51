//! The front matter of a file: what stands before its text between two lines of `---`.

/// What stands between a first line `---` and the next such line, and what follows; none if there is no such line first, or
/// none behind it.
pub fn front_matter(file: &str) -> Option<(&str, &str)> {
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
    fn front_matter_ends_where_its_line_ends() {
        assert_eq!(front_matter("---\nname: a\n---\ntext\n"), Some(("name: a\n", "text\n")));
        assert_eq!(front_matter("---\r\nname: a\r\n---\r\ntext"), Some(("name: a\r\n", "text")));
        assert_eq!(front_matter("---\n---\n"), Some(("", "")));
        assert_eq!(front_matter("text\n---\n"), None);
        assert_eq!(front_matter("---\nnever ends\n"), None);
    }
}
