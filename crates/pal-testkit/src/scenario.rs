//! Scenarios: behavior as data. A Markdown file in `scenarios/` tells in prose what must happen; fenced blocks give a
//! log as a script and what must come out of it.
//!
//! Each heading opens a case. In it, a block fenced as `log` is a script, and every other fenced block is an
//! expectation under the name of its fence.

use std::path::Path;

/// One case of a scenario file.
#[derive(Debug)]
pub struct Scenario {
    /// The file and the heading.
    pub name: String,
    /// The script.
    pub log: String,
    /// Expected results by the name of their code block.
    pub expected: Vec<(String, String)>,
}

/// All cases of a file in `scenarios/`; fails with what is wrong in it.
pub fn scenarios(file: &str) -> Result<Vec<Scenario>, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(file);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut cases: Vec<Scenario> = Vec::new();
    let mut fence: Option<(String, String)> = None;
    for line in text.lines() {
        match &mut fence {
            Some((name, block)) if line == "```" => {
                let case =
                    cases.last_mut().ok_or_else(|| format!("{file}: a block before the first heading"))?;
                if name == "log" {
                    case.log = std::mem::take(block);
                } else {
                    case.expected.push((std::mem::take(name), std::mem::take(block)));
                }
                fence = None;
            }
            Some((_, block)) => {
                block.push_str(line);
                block.push('\n');
            }
            None => {
                if let Some(name) = line.strip_prefix("```") {
                    fence = Some((name.to_owned(), String::new()));
                } else if let Some(heading) = line.strip_prefix("## ") {
                    let name = format!("{file}: {heading}");
                    cases.push(Scenario { name, log: String::new(), expected: Vec::new() });
                }
            }
        }
    }
    match cases.iter().find(|case| case.log.is_empty() || case.expected.is_empty()) {
        Some(case) => Err(format!("{}: a case wants a log and an expectation", case.name)),
        None => Ok(cases),
    }
}
