//! Rules of the tree that a reviewer would otherwise have to remember, checked by a test.
//!
//! [`layers`]: crates use only lower layers, pure crates touch nothing outside, ARCHITECTURE.md names what exists.
//! [`names`]: public type names are unique, files are named by what they hold, structs stay small.
//! [`comments`]: doc comments state contracts, in plain words.
//! [`rings`]: modules of a crate do not depend on each other in a circle.
//! [`sections`]: every § that the source cites is a section of docs/behaviour.md.

mod comments;
mod layers;
mod names;
mod rings;
mod sections;
mod source;

use std::error::Error;
use std::path::{Path, PathBuf};

use source::SourceFile;

/// Prints every violation, and the figures of the tree; fails if there is a violation. With crate names, prints only theirs.
pub(crate) fn run(crates: &[String]) -> Result<(), Box<dyn Error>> {
    let root = root();
    let is_wanted = |name: &str| crates.is_empty() || crates.iter().any(|wanted| wanted == name);
    let mut files = source::read_tree(&root)?;
    let mut found = names::duplicate_types(&files, &is_wanted);
    files.retain(|file| is_wanted(&file.crate_name));
    found.extend(file_violations(&files));
    if crates.is_empty() {
        found.extend(layers::violations(&root)?);
        found.extend(sections::violations(&root, &files)?);
    }
    for violation in &found {
        println!("{violation}");
    }
    println!("{}", names::figures(&files));
    println!("{}", comments::figures(&files));
    if found.is_empty() { Ok(()) } else { Err(format!("{} violations", found.len()).into()) }
}

fn file_violations(files: &[SourceFile]) -> Vec<String> {
    let mut found = names::violations(files);
    found.extend(comments::violations(files));
    found.extend(rings::violations(files));
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_keeps_its_rules() {
        let files = source::read_tree(&root()).unwrap();
        let mut found = names::duplicate_types(&files, &|_| true);
        found.extend(file_violations(&files));
        found.extend(layers::violations(&root()).unwrap());
        found.extend(sections::violations(&root(), &files).unwrap());
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
