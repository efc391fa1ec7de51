//! The examples in the documentation parse.

use pal_sim::{FaultPlan, ScriptedModel};

fn document() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/simulator.md");
    std::fs::read_to_string(path).unwrap()
}

/// Fenced blocks that begin with this line.
fn fenced(opening: &str) -> Vec<String> {
    let text = document();
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        open = match (open, line.strip_prefix("```")) {
            (None, Some(kind)) => Some((kind.to_owned(), String::new())),
            (Some((kind, block)), Some(_)) => {
                if kind == opening {
                    blocks.push(block);
                }
                None
            }
            (Some((kind, block)), None) => Some((kind, block + line + "\n")),
            (None, None) => None,
        };
    }
    blocks
}

#[test]
fn scripts_in_the_docs_parse() {
    let scripts = fenced("toml");
    assert!(scripts.len() >= 2);
    for toml in scripts {
        ScriptedModel::parse(&toml).unwrap_or_else(|error| panic!("{error}\n{toml}"));
    }
}

#[test]
fn fault_plans_in_the_docs_parse() {
    let examples = fenced("").into_iter().find(|block| block.starts_with("429")).unwrap();
    assert!(examples.lines().count() >= 8);
    for line in examples.lines() {
        let plan = line.split_whitespace().next().unwrap();
        FaultPlan::parse(plan).unwrap_or_else(|error| panic!("{error}"));
    }
    // Every kind in the tables exists: an unknown kind is refused with the list of known ones.
    let known = FaultPlan::parse("nonsense-kind").unwrap_err().to_string();
    let document = document();
    let tables = document.split("## Faults").nth(1).unwrap().split("## Models").next().unwrap();
    let listed: Vec<&str> = known.rsplit("one of: ").next().unwrap().split(", ").collect();
    for kind in listed {
        assert!(tables.contains(&format!("| `{kind}")), "{kind} is not in the tables");
    }
}
