//! Names of types and files, and the size of structs.

use std::collections::{BTreeMap, BTreeSet};

use super::source::SourceFile;

/// Public type names that may occur more than once: those that every Rust reader expects per crate.
const SHARED_NAMES: [&str; 1] = ["Error"];

/// File stems that say nothing about what the file holds.
const EMPTY_STEMS: [&str; 14] = [
    "words", "told", "said", "asked", "wanted", "around", "aside", "line", "data", "things", "misc", "util",
    "utils", "helpers",
];

/// The most fields of a struct, but for those in [`LARGE_STRUCTS`].
const FIELDS_MAX: usize = 14;

/// Settings, command-line arguments and records of a file or wire format, whose fields are given from outside.
const LARGE_STRUCTS: [&str; 10] = [
    "Boundary",
    "ContextPolicy",
    "EvalTotals",
    "ImportReport",
    "LedgerRow",
    "ModelCapabilities",
    "ReplayOptions",
    "ReplayReport",
    "SessionSnapshot",
    "Settings",
];

/// Public types that share their name with another public type of the workspace.
pub(crate) fn duplicate_types(files: &[SourceFile], is_wanted: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<(&SourceFile, usize)>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_library) {
        for definition in file.types().into_iter().filter(|definition| definition.is_public) {
            places.entry(definition.name).or_default().push((file, definition.line));
        }
    }
    places
        .iter()
        .filter(|(name, places)| places.len() > 1 && !SHARED_NAMES.contains(&name.as_str()))
        .filter(|(_, places)| places.iter().any(|(file, _)| is_wanted(&file.crate_name)))
        .map(|(name, places)| {
            let places: Vec<String> =
                places.iter().map(|(file, line)| format!("{}:{line}", file.path)).collect();
            format!("public type {name} is defined {} times: {}", places.len(), places.join(", "))
        })
        .collect()
}

/// Files with an empty name, and structs with too many fields.
pub(crate) fn violations(files: &[SourceFile]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        if EMPTY_STEMS.contains(&stem(&file.path)) {
            found.push(format!("{}: name the file by what it holds", file.path));
        }
        for definition in file.types() {
            if definition.fields > FIELDS_MAX && !LARGE_STRUCTS.contains(&definition.name.as_str()) {
                found.push(format!(
                    "{}:{}: {} has {} fields, more than {FIELDS_MAX}",
                    file.path, definition.line, definition.name, definition.fields
                ));
            }
        }
    }
    found
}

/// Share of types whose name another type has, mean length of names, and share of files whose stem another file has.
pub(crate) fn figures(files: &[SourceFile]) -> String {
    let types: Vec<String> = files
        .iter()
        .filter(|file| file.is_library)
        .flat_map(|file| file.types().into_iter().map(|definition| definition.name))
        .collect();
    let stems: Vec<&str> = files.iter().filter(|file| file.is_library).map(|file| stem(&file.path)).collect();
    let letters: usize = types.iter().map(|name| name.chars().count()).sum();
    format!(
        "{} types, {} share their name ({}%), mean length {:.1}; {} files, {} share their stem ({}%)",
        types.len(),
        shared(&types),
        percent(shared(&types), types.len()),
        letters as f64 / types.len().max(1) as f64,
        stems.len(),
        shared(&stems),
        percent(shared(&stems), stems.len()),
    )
}

fn stem(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path).trim_end_matches(".rs")
}

/// The number of values that occur more than once.
fn shared<T: Ord>(values: &[T]) -> usize {
    let mut once = BTreeSet::new();
    let mut again = BTreeSet::new();
    for value in values {
        if !once.insert(value) {
            again.insert(value);
        }
    }
    values.iter().filter(|value| again.contains(value)).count()
}

fn percent(part: usize, whole: usize) -> usize {
    (part * 100 + whole / 2) / whole.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_are_seen() {
        let fields: String = (0..15).map(|number| format!("    field_{number}: u8,\n")).collect();
        let files = [
            SourceFile::new("crates/pal-a/src/words.rs", format!("pub struct Large {{\n{fields}}}\n")),
            SourceFile::new("crates/pal-b/src/large.rs", "pub struct Large;\npub struct Error;\n".to_owned()),
        ];
        assert_eq!(violations(&files).len(), 2, "{:?}", violations(&files));
        assert_eq!(duplicate_types(&files, &|_| true).len(), 1);
        assert!(figures(&files).starts_with("3 types, 2 share their name (67%), mean length 5.0"));
    }
}
