//! Rings of modules: siblings that depend on each other in a circle.
//!
//! Modules are compared with their siblings only; what is inside of a module counts as the module. A path to an ancestor of both
//! sides, as to an item of `lib.rs` itself, is no dependency between siblings, but a name that an ancestor re-exports counts as
//! the module that defines it.

use std::collections::{BTreeMap, BTreeSet};

use super::source::SourceFile;

/// A module by its names from the root of the crate: empty for the root.
type ModulePath = Vec<String>;

/// One line for every ring.
pub(crate) fn violations(files: &[SourceFile]) -> Vec<String> {
    let mut crates: Vec<&str> = files.iter().map(|file| file.crate_name.as_str()).collect();
    crates.dedup();
    let mut found = Vec::new();
    for name in crates {
        let own: Vec<&SourceFile> =
            files.iter().filter(|file| file.crate_name == name && file.is_library).collect();
        for ring in rings(&own) {
            found.push(format!("{name}: modules depend on each other in a circle: {}", ring.join(" → ")));
        }
    }
    found
}

/// The rings of one crate, each by the names of its modules.
fn rings(files: &[&SourceFile]) -> Vec<Vec<String>> {
    let modules: BTreeMap<ModulePath, &SourceFile> =
        files.iter().filter_map(|file| Some((module_path(&file.path)?, *file))).collect();
    let tree = ModuleTree::new(&modules);
    // Edges between siblings, by their common parent.
    let mut edges: BTreeMap<ModulePath, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (from, file) in &modules {
        for to in tree.dependencies(from, file) {
            let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
            if let (Some(one), Some(other)) = (from.get(common), to.get(common)) {
                let siblings = edges.entry(from[..common].to_vec()).or_default();
                siblings.entry(one.clone()).or_default().insert(other.clone());
            }
        }
    }
    let mut found = Vec::new();
    for (parent, graph) in &edges {
        for component in components(graph).into_iter().filter(|component| component.len() > 1) {
            let path = |name: &String| [parent.as_slice(), std::slice::from_ref(name)].concat().join("::");
            found.push(component.iter().map(path).collect());
        }
    }
    found
}

/// `src/a/b.rs` and `src/a/b/mod.rs` are `a::b`. None for programs beside the library.
fn module_path(path: &str) -> Option<ModulePath> {
    let (_, inside) = path.split_once("/src/")?;
    if inside.starts_with("bin/") {
        return None;
    }
    let inside = inside.trim_end_matches(".rs");
    let mut names: ModulePath = inside.split('/').map(String::from).collect();
    if matches!(names.last().map(String::as_str), Some("mod")) || matches!(inside, "lib" | "main") {
        names.pop();
    }
    Some(names)
}

/// The modules of a crate and what they re-export.
struct ModuleTree {
    modules: BTreeSet<ModulePath>,
    /// Module and name to the path that the name is re-exported from.
    exports: BTreeMap<(ModulePath, String), ModulePath>,
}

impl ModuleTree {
    fn new(modules: &BTreeMap<ModulePath, &SourceFile>) -> ModuleTree {
        let mut tree = ModuleTree { modules: modules.keys().cloned().collect(), exports: BTreeMap::new() };
        let mut exports = BTreeMap::new();
        for (module, file) in modules {
            for (is_public, path) in uses(&code_of(file)) {
                if let (true, Some(name)) = (is_public, path.last())
                    && let Some(whole) = tree.absolute(module, &path)
                {
                    exports.insert((module.clone(), name.clone()), whole);
                }
            }
        }
        tree.exports = exports;
        tree
    }

    /// Modules that a file names.
    fn dependencies(&self, module: &ModulePath, file: &SourceFile) -> BTreeSet<ModulePath> {
        let code = code_of(file);
        let mut paths: Vec<ModulePath> =
            uses(&code).into_iter().filter(|(is_public, _)| !is_public).map(|(_, path)| path).collect();
        paths.extend(inline_paths(&code));
        paths
            .iter()
            .filter_map(|path| self.absolute(module, path))
            .filter_map(|path| self.module_of(path))
            .filter(|to| to != module)
            .collect()
    }

    /// A path from the root of the crate; none if it leads to another crate.
    fn absolute(&self, module: &ModulePath, path: &[String]) -> Option<ModulePath> {
        let first = path.first()?.as_str();
        let child = || [module.as_slice(), &path[..1]].concat();
        match first {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([module.as_slice(), &path[1..]].concat()),
            "super" => {
                let ups = path.iter().take_while(|part| *part == "super").count();
                let parent = module.len().checked_sub(ups)?;
                Some([&module[..parent], &path[ups..]].concat())
            }
            _ if self.modules.contains(&child()) => Some([module.as_slice(), path].concat()),
            _ => None,
        }
    }

    /// The module that defines what a path leads to.
    fn module_of(&self, mut path: ModulePath) -> Option<ModulePath> {
        for _ in 0..8 {
            let length = (0..=path.len()).rev().find(|length| self.modules.contains(&path[..*length]))?;
            let (module, rest) = path.split_at(length);
            let exported = rest.first().and_then(|name| self.exports.get(&(module.to_vec(), name.clone())));
            match exported {
                Some(whole) => path = [whole.as_slice(), &rest[1..]].concat(),
                None => return Some(module.to_vec()),
            }
        }
        None
    }
}

/// The code of a file without comments and without its test module.
fn code_of(file: &SourceFile) -> String {
    let lines = file.code_lines().map(|(_, line)| line).filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Paths of `use` declarations, groups taken apart, each with whether it is re-exported.
fn uses(code: &str) -> Vec<(bool, ModulePath)> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let before = rest[..at].rsplit('\n').next().unwrap_or_default().trim_start();
        let is_declaration = before.is_empty() || (before.starts_with("pub") && !before.contains(';'));
        rest = &rest[at + 4..];
        if is_declaration && let Some(end) = rest.find(';') {
            expand(&rest[..end], &mut Vec::new(), !before.is_empty(), &mut found);
            rest = &rest[end..];
        }
    }
    found
}

/// Takes a use tree apart.
fn expand(tree: &str, prefix: &mut ModulePath, is_public: bool, found: &mut Vec<(bool, ModulePath)>) {
    let tree = tree.trim();
    let depth = prefix.len();
    let (path, group) = match tree.split_once('{') {
        Some((path, group)) => (path, Some(group.strip_suffix('}').unwrap_or(group))),
        None => (tree.split(" as ").next().unwrap_or(tree), None),
    };
    prefix.extend(
        path.split("::").map(str::trim).filter(|name| !name.is_empty() && *name != "*").map(String::from),
    );
    match group {
        Some(group) => split_group(group).into_iter().for_each(|part| expand(part, prefix, is_public, found)),
        None if prefix.last().is_some_and(|name| name == "self") && prefix.len() > 1 => {
            found.push((is_public, prefix[..prefix.len() - 1].to_vec()));
        }
        None => found.push((is_public, prefix.clone())),
    }
    prefix.truncate(depth);
}

/// Parts of a group between commas that are in no inner group.
fn split_group(group: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[start..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

/// Paths in code that begin with `crate::` or `super::`.
fn inline_paths(code: &str) -> Vec<ModulePath> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let is_inside = code[..at].chars().next_back().is_some_and(is_name);
            let end = code[at..].find(|letter| !is_name(letter)).map_or(code.len(), |length| at + length);
            if !is_inside {
                found.push(
                    code[at..end].split("::").filter(|name| !name.is_empty()).map(String::from).collect(),
                );
            }
        }
    }
    found
}

/// Strongly connected components of a small graph, by reachability.
fn components(graph: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reach = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&String> = graph.get(from).into_iter().flatten().collect();
        while let Some(node) = open.pop() {
            if seen.insert(node.clone()) {
                open.extend(graph.get(node).into_iter().flatten());
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = graph.keys().map(|node| (node, reach(node))).collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (node, nodes) in &reached {
        let component: Vec<String> = nodes
            .iter()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(*node)))
            .cloned()
            .collect();
        if component.len() > 1 {
            found.insert(component);
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile::new(&format!("crates/pal-a/src/{path}"), text.to_owned())
    }

    #[test]
    fn rings_are_seen_through_exports_and_groups() {
        let files = [
            file("lib.rs", "mod log;\nmod view;\nmod view_size;\npub use view::{View, Size};\n"),
            file("log.rs", "use crate::{View, Other};\n"),
            file("view.rs", "mod size;\npub use size::Size;\nfn a() { crate::log::open(); }\n"),
            file("view/size.rs", "use super::View;\n"),
            file("view_size.rs", "// crate::log in a comment\n#[cfg(test)]\nmod tests { use crate::log; }\n"),
        ];
        let files: Vec<&SourceFile> = files.iter().collect();
        assert_eq!(rings(&files), [["log", "view"]]);
    }

    #[test]
    fn use_trees_are_taken_apart() {
        let found = uses("pub use a::{b::C, d::{self, E as F}};\nlet x = because 1;\n");
        let paths: Vec<String> = found.iter().map(|(_, path)| path.join("::")).collect();
        assert_eq!(paths, ["a::b::C", "a::d", "a::d::E"]);
        assert!(found.iter().all(|(is_public, _)| *is_public));
    }
}
