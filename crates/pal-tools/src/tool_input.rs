//! Input of a tool call, with errors that a model can act on.

use pal_model::text::cut_with_ellipsis;
use pal_model::{SharedText, array_items, member_string, object_fields};
use serde::de::DeserializeOwned;

/// Characters of a malformed input that an error message quotes.
const SHOWN_CHARS_MAX: usize = 100;

pub(crate) mod lenient;

/// Input of a tool call: a JSON object as received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolInput(pub SharedText);

impl ToolInput {
    /// String field of the input.
    pub fn text(&self, name: &str) -> Option<String> {
        member_string(&object_fields(&self.0).ok()?, name).map(|text| text.into_owned())
    }

    /// Parses the input; the error names the field, the expected and the actual value.
    ///
    /// ```
    /// use pal_tools::ToolInput;
    /// #[derive(serde::Deserialize, Debug)]
    /// struct Page { number: u32 }
    /// let wrong = ToolInput(pal_model::SharedText::from(r#"{"number": "many"}"#)).read::<Page>().unwrap_err();
    /// assert!(wrong.contains("`number`") && wrong.contains("\"many\""), "{wrong}");
    /// ```
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, String> {
        let text = self.0.as_str();
        if object_fields(text).is_err() {
            return Err(format!(
                "The input has to be a JSON object, but is: {}",
                cut_with_ellipsis(text, SHOWN_CHARS_MAX)
            ));
        }
        serde_json::from_str(text).map_err(|err| {
            let said = err.to_string();
            let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
            let path = offset(text, err.line(), err.column()).and_then(|at| path_to(text, at));
            // The message itself names missing and unknown fields.
            let place = path
                .filter(|_| !said.starts_with("missing field") && !said.starts_with("unknown field"))
                .map_or(String::new(), |path| format!("`{path}`: "));
            format!("The input does not fit the tool's schema: {place}{said}.")
        })
    }
}

/// Byte offset of a line and column, both counted from 1.
fn offset(text: &str, line: usize, column: usize) -> Option<usize> {
    let before: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    Some(before + column)
}

/// Path of names and indices to the value at a byte offset.
fn path_to(json: &str, at: usize) -> Option<String> {
    let place = |value: &str| (value.as_ptr() as usize).wrapping_sub(json.as_ptr() as usize);
    let is_in = |value: &str| (place(value)..=place(value) + value.len()).contains(&at);
    if json.trim_start().starts_with('[') {
        let items = array_items(json).ok()?;
        let (number, item) = items.into_iter().enumerate().find(|(_, item)| is_in(item))?;
        return Some(joined(&format!("[{number}]"), path_to(item, at - place(item))));
    }
    let (name, value) = object_fields(json).ok()?.into_iter().find(|(_, value)| is_in(value))?;
    Some(joined(&name, path_to(value, at - place(value))))
}

fn joined(name: &str, rest: Option<String>) -> String {
    match rest {
        None => name.to_owned(),
        Some(rest) if rest.starts_with('[') => format!("{name}{rest}"),
        Some(rest) => format!("{name}.{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only read from JSON")]
    struct SampleInput {
        file_path: String,
        #[serde(default, deserialize_with = "lenient::whole_number")]
        limit: Option<u64>,
        #[serde(default)]
        edits: Vec<SampleEdit>,
    }

    #[derive(Deserialize, Debug)]
    #[allow(dead_code, reason = "only read from JSON")]
    struct SampleEdit {
        old: String,
        #[serde(default, deserialize_with = "lenient::bool_or_false")]
        all: bool,
    }

    fn read(text: &str) -> Result<SampleInput, String> {
        ToolInput(SharedText::from(text)).read()
    }

    #[test]
    fn input_errors_name_the_field() {
        for (text, expected) in [
            ("[]", "JSON object, but is: []"),
            ("{\"file_path\":", "JSON object, but is"),
            ("{}", "missing field `file_path`."),
            (r#"{"file_path":"a","path":"b"}"#, "unknown field `path`, expected one of `file_path`"),
            ("{\"file_path\":\n  7}", "`file_path`: invalid type: integer `7`, expected a string."),
            (
                r#"{"limit":"ten","file_path":"a"}"#,
                r#"`limit`: invalid type: string "ten", expected a whole number"#,
            ),
            (
                r#"{"limit":-3,"file_path":"a"}"#,
                "`limit`: invalid type: integer `-3`, expected a whole number",
            ),
            (r#"{"file_path":"a","edits":[{"old":"x"},{"old":null}]}"#, "`edits[1].old`: invalid type: null"),
            (r#"{"file_path":"a","edits":[{"old":"x","all":"maybe"}]}"#, "`edits[0].all`: invalid type"),
            (r#"{"file_path":"a","edits":[{"all":true}]}"#, "missing field `old`"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }

    #[test]
    fn quoted_numbers_and_booleans_are_accepted() {
        let wanted = read(r#"{"file_path":"a","limit":"10","edits":[{"old":"x","all":"true"}]}"#).unwrap();
        assert_eq!((wanted.limit, wanted.edits[0].all), (Some(10), true));
        assert_eq!(read(r#"{"file_path":"a","limit":10.0}"#).unwrap().limit, Some(10));
        assert_eq!(read(r#"{"file_path":"a","limit":null}"#).unwrap().limit, None);
        assert_eq!(read(r#"{"file_path":"a","limit":""}"#).unwrap().limit, None);
    }
}
