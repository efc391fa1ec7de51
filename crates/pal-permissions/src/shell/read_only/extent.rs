//! Whether a search through folders meets hidden files, where credentials are.

use super::options::Argument;

/// Endings of names that are no credentials by custom.
const ENDINGS: [&str; 52] = [
    "rs", "toml", "md", "txt", "py", "pyi", "js", "jsx", "mjs", "cjs", "ts", "tsx", "go", "java", "kt",
    "kts", "c", "h", "cc", "cpp", "cxx", "hpp", "cs", "rb", "php", "swift", "scala", "lua", "hs", "ml", "ex",
    "exs", "erl", "clj", "dart", "zig", "nim", "r", "jl", "sql", "proto", "html", "htm", "css", "scss",
    "less", "vue", "svelte", "xml", "yaml", "yml", "json",
];

/// Types of `rg` that hold hidden files with credentials.
const OPEN_TYPES: [&str; 2] = ["all", "sh"];

/// Whether `grep -r` leaves hidden files out.
pub(super) fn grep_is_tame(arguments: &[Argument<'_>]) -> bool {
    let includes = values(arguments, "include");
    let is_narrow = !includes.is_empty() && includes.iter().all(|glob| has_harmless_ending(glob));
    // What is excluded first and included later is searched again.
    let is_without = includes.is_empty() && values(arguments, "exclude").contains(&".*");
    is_narrow || is_without
}

fn values<'a>(arguments: &[Argument<'a>], name: &str) -> Vec<&'a str> {
    let mut values = Vec::new();
    for argument in arguments {
        match argument {
            Argument::Option(found, Some(value)) if *found == name => values.push(*value),
            _ => {}
        }
    }
    values
}

/// Whether `rg` leaves hidden files out, as it does unless it is told otherwise.
pub(super) fn ripgrep_is_tame(arguments: &[Argument<'_>]) -> bool {
    arguments.iter().all(|argument| match argument {
        Argument::Option("u" | "." | "hidden" | "unrestricted", _) => false,
        Argument::Option(name, _) if name.starts_with("no-ignore") => false,
        // Files that are asked for by a pattern are shown even if they are hidden.
        Argument::Option("g" | "glob" | "iglob", Some(glob)) => {
            glob.starts_with('!') || has_harmless_ending(glob)
        }
        Argument::Option("t" | "type", Some(name)) => !OPEN_TYPES.contains(name),
        _ => true,
    })
}

/// Whether a pattern of names is only about names with a harmless ending: `*.rs`, `src/**/*.{ts,tsx}`.
pub(super) fn has_harmless_ending(glob: &str) -> bool {
    let name = glob.rsplit('/').next().unwrap_or(glob);
    let Some((start, ending)) = name.rsplit_once('.') else { return false };
    let endings = ending.strip_prefix('{').and_then(|list| list.strip_suffix('}')).unwrap_or(ending);
    let is_plain = !start.starts_with('.') && !start.contains(['{', '}', ',']);
    is_plain && endings.split(',').all(|ending| ENDINGS.contains(&ending))
}
