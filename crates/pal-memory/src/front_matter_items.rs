//! Front matter as people and programs write it: keys at the start of lines, each with its value. Unknown
//! content is preserved.

/// One key with all its lines, verbatim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FrontMatterItem {
    key: String,
    lines: String,
}

impl FrontMatterItem {
    /// A key with a one-line value.
    pub(crate) fn new(key: &str, value: &str) -> FrontMatterItem {
        FrontMatterItem { key: key.to_owned(), lines: format!("{key}: {}\n", quote_value(value)) }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Lines, verbatim.
    pub(crate) fn lines(&self) -> &str {
        &self.lines
    }

    /// Value as text, without quotes and joined to one line.
    pub(crate) fn value(&self) -> String {
        let mut lines = self.lines.lines();
        let first = lines.next().and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim());
        let rest: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
        let is_block = matches!(first, ">" | ">-" | ">+" | "|" | "|-" | "|+");
        let words: Vec<&str> =
            (!is_block).then_some(first).into_iter().chain(rest).filter(|part| !part.is_empty()).collect();
        unquote(&words.join(" "))
    }
}

/// Parses the text between the `---` lines.
pub(crate) fn items(matter: &str) -> Vec<FrontMatterItem> {
    let mut items: Vec<FrontMatterItem> = Vec::new();
    for line in matter.split_inclusive('\n') {
        match (key_of(line), items.last_mut()) {
            (None, Some(item)) => item.lines.push_str(line),
            (key, _) => {
                items.push(FrontMatterItem { key: key.unwrap_or("").to_owned(), lines: line.to_owned() })
            }
        }
    }
    if let Some(last) = items.last_mut().filter(|last| !last.lines.ends_with('\n')) {
        last.lines.push('\n');
    }
    items
}

/// Key at the start of a line.
fn key_of(line: &str) -> Option<&str> {
    let (key, _) = line.split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    (is_key && !key.starts_with('-')).then_some(key)
}

/// Removes quotes.
fn unquote(value: &str) -> String {
    if let Some(inner) = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return inner.replace("''", "'");
    }
    if value.len() > 1 && value.starts_with('"') && value.ends_with('"') {
        return serde_json::from_str(value).unwrap_or_else(|_| value[1..value.len() - 1].to_owned());
    }
    value.to_owned()
}

/// Value for one line, quoted if needed.
fn quote_value(value: &str) -> String {
    let is_plain = !value.is_empty()
        && value.trim() == value
        && !value.contains(": ")
        && !value.ends_with(':')
        && !value.contains(" #")
        && !value.chars().any(char::is_control)
        && value.starts_with(|first: char| first.is_alphanumeric() || matches!(first, '/' | '(' | '.'));
    if is_plain { value.to_owned() } else { serde_json::Value::from(value).to_string() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn common_yaml_styles_are_parsed() {
        let matter = "name: 'It''s here'\ndescription: >-\n  goes over\n  two lines\nmetadata:\n  node: a\n  b: 2\ntype: \"user\"\nplain: a: b";
        let read: Vec<(String, String)> =
            items(matter).iter().map(|item| (item.key().to_owned(), item.value())).collect();
        assert_eq!(read[0], ("name".into(), "It's here".into()));
        assert_eq!(read[1], ("description".into(), "goes over two lines".into()));
        assert_eq!(read[2].0, "metadata");
        assert_eq!(read[3], ("type".into(), "user".into()));
        assert_eq!(read[4], ("plain".into(), "a: b".into()));
    }

    proptest! {
        #[test]
        fn written_value_parses_again(value in ".{0,60}") {
            let item = FrontMatterItem::new("key", &value);
            let again = items(item.lines());
            prop_assert_eq!(again.len(), 1);
            prop_assert_eq!(again[0].value(), value);
        }

        #[test]
        fn no_line_is_lost(matter in "([a-z]{0,4}:? ?[ -~]{0,12}\n){0,8}") {
            let joined: String = items(&matter).iter().map(|item| item.lines().to_owned()).collect();
            prop_assert_eq!(joined, matter);
        }
    }
}
