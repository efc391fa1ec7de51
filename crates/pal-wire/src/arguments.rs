//! The arguments of a function call, a string that ought to be a JSON object, as the input of a block.

use pal_model::escape_into;
use serde_json::value::RawValue;

use crate::messages::on_one_line;

/// Writes the member `input`; where the arguments are no object, an empty one, and the text beside it, so that
/// [`crate::unparsed_input`] finds it.
pub(crate) fn write_input(json: &mut String, arguments: &str) {
    let arguments = arguments.trim_matches([' ', '\t', '\n', '\r']);
    if arguments.is_empty() {
        json.push_str(r#","input":{}"#);
    } else if arguments.starts_with('{') && serde_json::from_str::<&RawValue>(arguments).is_ok() {
        json.push_str(r#","input":"#);
        json.push_str(&on_one_line(arguments));
    } else {
        json.push_str(r#","input":{},"unparsed_input":"#);
        escape_into(json, arguments);
    }
}
