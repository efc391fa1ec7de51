//! Tool names on the wire: letters, digits, `_` and `-`, at most 128 characters, unique.

use std::collections::BTreeSet;

use smol_str::SmolStr;
use xxhash_rust::xxh3::xxh3_64;

use super::{ToolOrigin, ToolSpec};

/// Most characters of a name that providers take.
const NAME_MAX: usize = 128;

/// The name that a tool would have if it were alone.
pub(crate) fn plain_name(spec: &ToolSpec) -> String {
    match &spec.origin {
        ToolOrigin::BuiltIn => sanitize_name(&spec.name),
        ToolOrigin::Mcp { server } => {
            format!("mcp__{}__{}", sanitize_name(server), sanitize_name(&spec.name))
        }
    }
}

/// A name for a tool that no other has; none if even its fingerprint is taken.
pub(crate) fn pick_free_name(spec: &ToolSpec, taken: &BTreeSet<SmolStr>) -> Option<SmolStr> {
    let plain = plain_name(spec);
    if plain.len() <= NAME_MAX && !taken.contains(plain.as_str()) {
        return Some(SmolStr::new(plain));
    }
    let server = spec.origin.server().unwrap_or_default();
    // The separator keeps (`a`, `bc`) and (`ab`, `c`) apart.
    let print = xxh3_64(format!("{server}\0{}", spec.name).as_bytes());
    let ending = format!("_{:08x}", print as u32);
    let stem = &plain[..plain.len().min(NAME_MAX - ending.len())];
    let name = SmolStr::new(format!("{stem}{ending}"));
    (!taken.contains(&name)).then_some(name)
}

fn sanitize_name(name: &str) -> String {
    name.chars()
        .map(
            |letter| if letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-') { letter } else { '_' },
        )
        .collect()
}
