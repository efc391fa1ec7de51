//! Layers of crates: each uses only lower ones, pure crates touch nothing outside of them, and the paths that
//! ARCHITECTURE.md names exist.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Paths that a pure crate does not mention outside of its tests.
const IMPURE: [&str; 12] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::thread",
    "std::io::std",
    "Instant::now",
    "SystemTime",
    "Timestamp::now",
    "Uuid::",
    "rand::",
    "tokio",
];

/// Dependencies that a pure crate does not have.
const IMPURE_CRATES: [&str; 8] =
    ["tokio", "reqwest", "rustix", "tempfile", "rand", "getrandom", "uuid", "axum"];

/// One row of the crate table in ARCHITECTURE.md.
#[derive(Debug)]
struct CrateRule {
    layer: u32,
    is_pure: bool,
}

/// Dependencies against the layers, impurities, and names in ARCHITECTURE.md that lead nowhere.
pub(crate) fn violations(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let architecture = fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    let rules = rules(&architecture);
    let mut found = missing_paths(root, &architecture);
    if architecture.lines().count() > 200 {
        found.push(String::from("ARCHITECTURE.md has more than 200 lines"));
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        folders.push(entry?.path());
    }
    folders.push(root.join("xtask"));
    folders.sort();
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let manifest: toml::Table = toml::from_str(&fs::read_to_string(folder.join("Cargo.toml"))?)?;
        found.extend(wrong_dependencies(&name, &manifest, &rules));
        if rules.get(&name).is_some_and(|rule| rule.is_pure) {
            found.extend(impure_lines(&folder.join("src"))?);
        }
    }
    Ok(found)
}

/// The rows `| layer | crate | kind |` of the document.
fn rules(architecture: &str) -> BTreeMap<String, CrateRule> {
    let mut rules = BTreeMap::new();
    for line in architecture.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", layer, name, kind, ..] = cells.as_slice()
            && let Some(name) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`'))
            && let Ok(layer) = layer.parse()
        {
            rules.insert(name.to_owned(), CrateRule { layer, is_pure: *kind == "pure" });
        }
    }
    rules
}

fn wrong_dependencies(
    name: &str,
    manifest: &toml::Table,
    rules: &BTreeMap<String, CrateRule>,
) -> Vec<String> {
    let Some(rule) = rules.get(name) else {
        return vec![format!("{name} is not in the crate table of ARCHITECTURE.md")];
    };
    let empty = toml::Table::new();
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table).unwrap_or(&empty);
    let mut found = Vec::new();
    for dependency in dependencies.keys() {
        if let Some(other) = rules.get(dependency)
            && other.layer >= rule.layer
        {
            found.push(format!("{name} (layer {}) uses {dependency} (layer {})", rule.layer, other.layer));
        }
        if rule.is_pure && IMPURE_CRATES.contains(&dependency.as_str()) {
            found.push(format!("{name} is pure and depends on {dependency}"));
        }
    }
    found
}

/// Lines of a pure crate that reach outside; what stands in `#[cfg(test)]` at the end of a file is left out.
fn impure_lines(folder: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(impure_lines(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            found.extend(impure_text(&path, &fs::read_to_string(&path)?));
        }
    }
    Ok(found)
}

fn impure_text(path: &Path, text: &str) -> Vec<String> {
    let code = text.lines().enumerate().take_while(|(_, line)| line.trim() != "#[cfg(test)]");
    code.filter(|(_, line)| !line.trim_start().starts_with("//"))
        .flat_map(|(at, line)| {
            let hits = IMPURE.iter().filter(move |word| line.contains(*word));
            hits.map(move |word| format!("{}:{}: a pure crate uses {word}", path.display(), at + 1))
        })
        .collect()
}

/// Paths in backquotes that the document names and the tree does not have.
fn missing_paths(root: &Path, architecture: &str) -> Vec<String> {
    let named = architecture.split('`').skip(1).step_by(2);
    let is_path = |name: &&str| {
        (name.starts_with("crates/")
            || name.starts_with("xtask/")
            || name.starts_with("docs/")
            || name.starts_with("fuzz/"))
            && !name.contains(['*', ' ', '<'])
    };
    named
        .filter(is_path)
        .filter(|name| !root.join(name).exists())
        .map(|name| format!("ARCHITECTURE.md names {name}, which does not exist"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_are_seen() {
        let table = "| layer | crate | kind | owns |\n| 1 | `pal-b` | pure | x |\n| 2 | `pal-a` | pure | x |\n\
                     | 2 | `pal-d` | disk | x |\n";
        let rules = rules(table);
        let manifest =
            toml::from_str("[dependencies]\npal-b = \"1\"\npal-d = \"1\"\ntokio = \"1\"\n").unwrap();
        assert_eq!(wrong_dependencies("pal-a", &manifest, &rules).len(), 2);
        assert_eq!(wrong_dependencies("pal-new", &manifest, &rules).len(), 1);
        let text = "// std::fs in a comment\nuse std::fs;\n#[cfg(test)]\nmod tests { use std::env; }\n";
        assert_eq!(impure_text(Path::new("a.rs"), text), ["a.rs:2: a pure crate uses std::fs"]);
        assert_eq!(missing_paths(&super::super::root(), "`crates/pal-view` `crates/nowhere`").len(), 1);
    }
}
