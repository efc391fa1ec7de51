//! Front matter as it is written by people and programs: keys at the beginning of lines, each with what belongs to it. Nothing
//! that is not understood is lost.

/// One key with all its lines, as they stand in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Item {
    key: String,
    lines: String,
}

impl Item {
    /// A key with its value in one line.
    pub(crate) fn new(key: &str, value: &str) -> Item {
        Item { key: key.to_owned(), lines: format!("{key}: {}\n", spelled(value)) }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The lines themselves.
    pub(crate) fn lines(&self) -> &str {
        &self.lines
    }

    /// The value as text: what is quoted without its quotes, what goes over several lines as one.
    pub(crate) fn value(&self) -> String {
        let mut lines = self.lines.lines();
        let first = lines.next().and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim());
        let rest: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
        let is_block = matches!(first, ">" | ">-" | ">+" | "|" | "|-" | "|+");
        let words: Vec<&str> =
            (!is_block).then_some(first).into_iter().chain(rest).filter(|part| !part.is_empty()).collect();
        read(&words.join(" "))
    }
}

/// The keys in the text between the two lines of `---`.
pub(crate) fn items(matter: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for line in matter.split_inclusive('\n') {
        match (key_of(line), items.last_mut()) {
            (None, Some(item)) => item.lines.push_str(line),
            (key, _) => items.push(Item { key: key.unwrap_or("").to_owned(), lines: line.to_owned() }),
        }
    }
    if let Some(last) = items.last_mut().filter(|last| !last.lines.ends_with('\n')) {
        last.lines.push('\n');
    }
    items
}

/// The key that a line begins with, at its very beginning.
fn key_of(line: &str) -> Option<&str> {
    let (key, _) = line.split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    (is_key && !key.starts_with('-')).then_some(key)
}

/// A value without its quotes.
fn read(value: &str) -> String {
    if let Some(inner) = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return inner.replace("''", "'");
    }
    if value.len() > 1 && value.starts_with('"') && value.ends_with('"') {
        return serde_json::from_str(value).unwrap_or_else(|_| value[1..value.len() - 1].to_owned());
    }
    value.to_owned()
}

/// A value as it can be written in one line: as it is where that is safe, else in quotes.
fn spelled(value: &str) -> String {
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
    fn values_are_read_as_people_write_them() {
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
        fn what_is_written_is_read_again(value in ".{0,60}") {
            let item = Item::new("key", &value);
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
