//! The README and its picture show what `pal demo` prints. Figures may differ by a tenth, since they depend on the length of
//! temporary paths; words may not differ. `cargo run -p xtask -- readme` renews both.

use std::process::Command;

fn root_file(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn demo_output() -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pal"))
        .arg("demo")
        .env("NO_COLOR", "1")
        .env("COLUMNS", "80")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Words of a text with its figures apart. Grouping, units and signs are part of the words.
fn words_and_figures(text: &str) -> (Vec<String>, Vec<f64>) {
    let (mut words, mut figures) = (Vec::new(), Vec::new());
    for word in text.split_whitespace() {
        let plain = word.replace(',', "");
        let digits: String =
            plain.chars().filter(|letter| letter.is_ascii_digit() || *letter == '.').collect();
        let figure = digits.trim_matches('.').parse::<f64>().ok();
        words.push(if figure.is_some() { "#".to_owned() } else { word.to_owned() });
        figures.extend(figure);
    }
    (words, figures)
}

/// Whether a shown text is in the output, with all words the same and all figures within a tenth.
fn assert_shown(shown: &str, output: &str, place: &str) {
    let (words, figures) = words_and_figures(shown);
    let (all_words, all_figures) = words_and_figures(output);
    let count = |words: &[String]| words.iter().filter(|word| *word == "#").count();
    let found = all_words.windows(words.len()).enumerate().any(|(at, window)| {
        let first = count(&all_words[..at]);
        let printed = &all_figures[first..first + count(window)];
        window == words
            && figures.iter().zip(printed).all(|(one, other)| (one - other).abs() <= other.abs() * 0.1 + 1.0)
    });
    assert!(found, "{place} is stale, run `cargo run -p xtask -- readme`; the demo does not print:\n{shown}");
}

#[test]
fn readme_shows_what_the_demo_prints() {
    let output = demo_output();
    let readme = root_file("README.md");
    let table = readme.split("<!-- demo -->").nth(1).and_then(|rest| rest.split("```").nth(1)).unwrap();
    let table = table.strip_prefix("text\n").unwrap();
    assert!(table.lines().count() > 5, "the README shows no table");
    for line in table.lines().filter(|line| line.contains("  ")).filter(|line| !line.contains("took")) {
        assert_shown(line, &output, "README.md");
    }
    let picture = root_file("docs/demo.svg");
    let lines = picture.lines().filter_map(|line| line.strip_prefix("<text ")?.split_once('>'));
    let lines: Vec<String> = lines
        .map(|(_, text)| text.trim_end_matches("</text>"))
        .map(|text| text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        .filter(|line| !line.trim().is_empty() && !line.starts_with('$'))
        .collect();
    assert!(lines.len() > 15, "the picture shows nothing");
    for line in lines {
        assert_shown(&line, &output, "docs/demo.svg");
    }
}
