//! The one place where permission rules are looked at before permissions get them.

use pal_permissions::PermissionRule;
use serde_json::Value;

/// Checks a list of rules; the error describes a valid one.
pub(crate) fn check(value: &Value, wanted: &str) -> Result<(), String> {
    for item in value.as_array().ok_or(wanted)? {
        let text = item.as_str().ok_or(wanted)?;
        text.parse::<PermissionRule>().map_err(|error| format!("{wanted}, and {error}"))?;
    }
    Ok(())
}
