//! `pal demo`: what it claims is so.

use std::path::Path;

use serde_json::Value;

use crate::program::{CommandOutput, TestHome};

/// Runs it with this folder for temporary files.
fn run(arguments: &[&str], temporary: &Path) -> CommandOutput {
    // Its tools are real ones and have to be found.
    let path = std::env::var("PATH").unwrap_or_default();
    let variables = [("PATH", path.as_str()), ("TMPDIR", temporary.to_str().unwrap())];
    TestHome::new().run_with_environment(arguments, &variables)
}

fn left_in(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn the_demo_keeps_all_its_promises() {
    let temporary = tempfile::tempdir().unwrap();
    let said = run(&["demo", "--json"], temporary.path());
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    assert_eq!(left_in(temporary.path()), 0, "nothing is left behind");
    let figures: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(figures["missing"], Value::Array(Vec::new()));
    let spills = figures["spills"].as_array().unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let large = spills.iter().find(|spill| spill["is_condensed"] == false).unwrap();
    assert!(number(&large["characters"]) > 50_000 && number(&large["shown"]) < 3_000, "{large}");
    assert_eq!(figures["cold_return"]["read"], 0);
    let compaction = &figures["compaction"];
    assert!(number(&compaction["tokens_after"]) < number(&compaction["tokens_before"]), "{compaction}");
    let restored = compaction["restored"].as_array().unwrap();
    assert!(restored.iter().any(|path| path == "src/mean.awk"), "{compaction}");
    let resume = &figures["resume"];
    assert_eq!((&resume["is_exact"], number(&resume["runs"])), (&Value::Bool(true), 1), "{resume}");
    assert_eq!(number(&resume["blocks"]), number(&resume["blocks_before"]), "{resume}");
    assert!(number(&resume["blocks_after"]) > number(&resume["blocks"]), "{resume}");
    assert!(number(&resume["bytes"]) > 10_000, "{resume}");
    // Only what a decision announced may change what was sent: the clearing after the pause, and the compaction.
    let prefixes = &figures["prefixes"];
    assert_eq!(number(&prefixes["pairs"]) - number(&prefixes["exact"]), 2, "{prefixes}");
    for layer in figures["layers"].as_array().unwrap() {
        assert!(number(&layer["times"]) > 0 && number(&layer["tokens"]) > 0, "{layer}");
        assert!(layer["worth_usd"].as_f64().unwrap() > 0.0, "{layer}");
    }
    let contexts = figures["requests"].as_array().unwrap().iter().filter_map(|row| row["context"].as_u64());
    assert!(contexts.max().unwrap() < number(&figures["window"]));
}

#[test]
fn the_narration_fits_eighty_columns_and_keep_leaves_the_files() {
    let temporary = tempfile::tempdir().unwrap();
    let said = run(&["demo", "--keep"], temporary.path());
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    const KEPT: &str = "All files are in ";
    for line in said.out.lines().filter(|line| !line.starts_with(KEPT)) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for words in
        ["condensed", "to disk", "cleared", "compacted", "restored", "kill -9", "byte for byte", "not twice"]
    {
        assert!(said.out.contains(words), "{words}\n{}", said.out);
    }
    assert!(!said.out.contains('\u{1b}'), "no colours where nobody looks");
    let folder = Path::new(said.out.lines().find_map(|line| line.strip_prefix(KEPT)).unwrap());
    let mean = std::fs::read_to_string(folder.join("tidebook/src/mean.awk")).unwrap();
    assert!(mean.contains("seen[$1]++; sum"), "{mean}");
    assert!(left_in(&folder.join("exchanges")) > 20);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
}
