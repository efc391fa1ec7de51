//! Detection of recursive searches that read hidden files, where credentials are.

use super::option_parser::CommandArgument;

/// Extensions of files that by convention hold no credentials.
const ENDINGS: [&str; 52] = [
    "rs", "toml", "md", "txt", "py", "pyi", "js", "jsx", "mjs", "cjs", "ts", "tsx", "go", "java", "kt",
    "kts", "c", "h", "cc", "cpp", "cxx", "hpp", "cs", "rb", "php", "swift", "scala", "lua", "hs", "ml", "ex",
    "exs", "erl", "clj", "dart", "zig", "nim", "r", "jl", "sql", "proto", "html", "htm", "css", "scss",
    "less", "vue", "svelte", "xml", "yaml", "yml", "json",
];

/// File types of `rg` that include hidden files with credentials.
const OPEN_TYPES: [&str; 2] = ["all", "sh"];

/// Returns whether `grep -r` skips hidden files.
pub(super) fn grep_skips_hidden(arguments: &[CommandArgument<'_>]) -> bool {
    let includes = values(arguments, "include");
    let is_narrow = !includes.is_empty() && includes.iter().all(|glob| has_harmless_ending(glob));
    // A later `--include` overrides an earlier `--exclude`.
    let is_without = includes.is_empty() && values(arguments, "exclude").contains(&".*");
    is_narrow || is_without
}

fn values<'a>(arguments: &[CommandArgument<'a>], name: &str) -> Vec<&'a str> {
    let mut values = Vec::new();
    for argument in arguments {
        match argument {
            CommandArgument::Option(found, Some(value)) if *found == name => values.push(*value),
            _ => {}
        }
    }
    values
}

/// Returns whether `rg` skips hidden files, which is its default.
pub(super) fn ripgrep_skips_hidden(arguments: &[CommandArgument<'_>]) -> bool {
    arguments.iter().all(|argument| match argument {
        CommandArgument::Option("u" | "." | "hidden" | "unrestricted", _) => false,
        CommandArgument::Option(name, _) if name.starts_with("no-ignore") => false,
        // Files that match a given glob are shown even if hidden.
        CommandArgument::Option("g" | "glob" | "iglob", Some(glob)) => {
            glob.starts_with('!') || has_harmless_ending(glob)
        }
        CommandArgument::Option("t" | "type", Some(name)) => !OPEN_TYPES.contains(name),
        _ => true,
    })
}

/// Returns whether a glob matches only harmless extensions: `*.rs`, `src/**/*.{ts,tsx}`.
pub(super) fn has_harmless_ending(glob: &str) -> bool {
    let name = glob.rsplit('/').next().unwrap_or(glob);
    let Some((start, ending)) = name.rsplit_once('.') else { return false };
    let endings = ending.strip_prefix('{').and_then(|list| list.strip_suffix('}')).unwrap_or(ending);
    let is_plain = !start.starts_with('.') && !start.contains(['{', '}', ',']);
    is_plain && endings.split(',').all(|ending| ENDINGS.contains(&ending))
}
