//! The calibration rows and the labelled corpus, reduced to structural counts.

use std::error::Error;
use std::fs;
use std::path::Path;

use pal_view::TextCounts;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// One number per structural count.
pub(super) type Vector = [f64; TextCounts::LEN];

/// Categories of the corpus that are written in other scripts than Latin.
pub(super) const SCRIPTS: [&str; 5] = ["cjk_zh", "cjk_ja", "korean", "russian", "arabic"];

/// All that calibration reads.
pub(super) struct Data {
    pub(super) claude_46: Vec<ClaudeRow>,
    pub(super) claude_47: Vec<ClaudeRow>,
    pub(super) codex: Vec<CodexRow>,
    pub(super) corpus: Vec<CorpusFile>,
}

/// Where a row comes from.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) session: String,
    pub(super) repository: String,
}

/// Text appended between two calls of a Claude model, and the growth of the context.
pub(super) struct ClaudeRow {
    pub(super) source: Source,
    /// Counts of the tool results.
    pub(super) results: Vector,
    /// Counts of the model's own text and tool inputs.
    pub(super) own: Vector,
    pub(super) calls: f64,
    pub(super) growth: f64,
    /// Reliable from 4.7 on; before, mostly the figure of a response's first line.
    pub(super) reported_output: f64,
    pub(super) result_characters: f64,
    pub(super) own_characters: f64,
}

/// Tool output of a Codex session with its exact number of tokens.
pub(super) struct CodexRow {
    pub(super) source: Source,
    pub(super) text: Vector,
    pub(super) tokens: f64,
    pub(super) characters: f64,
    /// Tokens beyond the text where the row holds one result and the growth is explained by it.
    pub(super) frame: Option<f64>,
}

/// A labelled file.
pub(super) struct CorpusFile {
    pub(super) category: String,
    pub(super) source: String,
    pub(super) text: Vector,
    pub(super) o200k: f64,
    pub(super) cl100k: f64,
    pub(super) anthropic_2023: f64,
    pub(super) characters: f64,
}

impl CorpusFile {
    /// Tokens of an average tokenizer: between a vocabulary of 100,000 tokens, which Llama 3 and Qwen extend, and one of
    /// 65,000.
    pub(super) fn neutral(&self) -> f64 {
        (self.cl100k + self.anthropic_2023) / 2.0
    }

    pub(super) fn is_script(&self) -> bool {
        SCRIPTS.contains(&self.category.as_str())
    }
}

#[derive(Deserialize)]
struct RawClaude {
    src: String,
    tokenizer: String,
    delta_tokens: f64,
    reported_output_tokens: f64,
    result_chars: f64,
    own_chars: f64,
    tools: Vec<String>,
    results: Vec<String>,
    own: Vec<String>,
}

#[derive(Deserialize)]
struct RawCodex {
    src: String,
    delta_minus_output: f64,
    o200k: f64,
    chars: f64,
    exact: bool,
    text: String,
}

#[derive(Deserialize)]
struct RawLabel {
    file: String,
    category: String,
    source: String,
    chars: f64,
    o200k: f64,
    cl100k: f64,
    anthropic2023: f64,
}

impl Data {
    /// Reads the folder that holds `calibration` and `corpus`.
    pub(super) fn load(folder: &Path) -> Result<Data, Box<dyn Error>> {
        let claude: Vec<RawClaude> = read_lines(&folder.join("calibration/claude_calib.jsonl"))?;
        let codex: Vec<RawCodex> = read_lines(&folder.join("calibration/codex_calib.jsonl"))?;
        let (older, newer): (Vec<_>, Vec<_>) =
            claude.into_iter().partition(|row| row.tokenizer == "claude<=4.6");
        Ok(Data {
            claude_46: older.iter().map(claude_row).collect(),
            claude_47: newer.iter().map(claude_row).collect(),
            codex: codex.iter().map(codex_row).collect(),
            corpus: read_corpus(&folder.join("corpus"))?,
        })
    }
}

fn read_text(path: &Path) -> Result<String, Box<dyn Error>> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn read_lines<Row: DeserializeOwned>(path: &Path) -> Result<Vec<Row>, Box<dyn Error>> {
    let text = read_text(path)?;
    let rows = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    rows.map_err(|error| format!("{}: {error}", path.display()).into())
}

fn read_corpus(folder: &Path) -> Result<Vec<CorpusFile>, Box<dyn Error>> {
    let labels: Vec<RawLabel> = serde_json::from_str(&read_text(&folder.join("_labels.json"))?)?;
    let mut texts: Vec<String> = Vec::new();
    let mut files = Vec::new();
    for label in labels {
        let text = read_text(&folder.join(&label.file))?;
        // A copy of a file in both halves of a split would not be held out.
        if texts.contains(&text) {
            continue;
        }
        files.push(CorpusFile {
            category: label.category,
            source: label.source,
            text: vector(&text),
            o200k: label.o200k,
            cl100k: label.cl100k,
            anthropic_2023: label.anthropic2023,
            characters: label.chars,
        });
        texts.push(text);
    }
    Ok(files)
}

fn claude_row(raw: &RawClaude) -> ClaudeRow {
    ClaudeRow {
        source: source(&raw.src),
        results: sum(&raw.results),
        own: sum(&raw.own),
        calls: raw.tools.len() as f64,
        growth: raw.delta_tokens,
        reported_output: raw.reported_output_tokens,
        result_characters: raw.result_chars,
        own_characters: raw.own_chars,
    }
}

fn codex_row(raw: &RawCodex) -> CodexRow {
    let is_single = raw.exact && raw.text.matches("Chunk ID:").count() == 1;
    CodexRow {
        source: source(&raw.src),
        text: vector(&raw.text),
        tokens: raw.o200k,
        characters: raw.chars,
        frame: is_single.then_some(raw.delta_minus_output - raw.o200k),
    }
}

fn source(path: &str) -> Source {
    let repository = path.split('/').next().unwrap_or(path);
    Source { session: path.to_owned(), repository: repository.to_owned() }
}

fn vector(text: &str) -> Vector {
    TextCounts::from_text(text).as_array().map(f64::from)
}

fn sum(texts: &[String]) -> Vector {
    let mut total = [0.0; TextCounts::LEN];
    for text in texts {
        for (cell, count) in total.iter_mut().zip(vector(text)) {
            *cell += count;
        }
    }
    total
}
