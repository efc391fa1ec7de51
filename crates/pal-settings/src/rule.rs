//! The one place where permission rules are looked at before permissions get them.

use pal_permissions::Rule;
use serde_json::Value;

/// Whether a value is a list of rules; what is wanted instead if it is not.
pub(crate) fn check(value: &Value, wanted: &str) -> Result<(), String> {
    for item in value.as_array().ok_or(wanted)? {
        let text = item.as_str().ok_or(wanted)?;
        text.parse::<Rule>().map_err(|error| format!("{wanted}, and {error}"))?;
    }
    Ok(())
}
