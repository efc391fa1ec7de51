//! Conversion of function-call arguments, a string that should be a JSON object, to the input of a tool-use block.

use pal_model::escape_into;
use serde_json::value::RawValue;

use crate::messages::without_line_breaks;

/// Writes the member `input`. If the arguments are not an object, writes an empty one and keeps the text beside it, where
/// [`crate::unparsed_input`] finds it.
pub(crate) fn write_input(json: &mut String, arguments: &str) {
    let arguments = arguments.trim_matches([' ', '\t', '\n', '\r']);
    if arguments.is_empty() {
        json.push_str(r#","input":{}"#);
    } else if arguments.starts_with('{') && serde_json::from_str::<&RawValue>(arguments).is_ok() {
        json.push_str(r#","input":"#);
        json.push_str(&without_line_breaks(arguments));
    } else {
        json.push_str(r#","input":{},"unparsed_input":"#);
        escape_into(json, arguments);
    }
}
