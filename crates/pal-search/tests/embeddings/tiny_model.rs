//! A tiny generated model, written to a directory.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Map, Value, json};

pub(crate) const PIECES: &[&str] = &["[UNK]", "[CLS]", "[SEP]", "one", "two", "three", "four", "five", ","];

pub(crate) struct TinyModel {
    pub(crate) beginning: &'static str,
    pub(crate) seed: u64,
    pub(crate) width: usize,
    pub(crate) inner_width: usize,
    pub(crate) n_heads: usize,
    pub(crate) n_layers: usize,
    pub(crate) n_positions: usize,
}

impl Default for TinyModel {
    fn default() -> TinyModel {
        TinyModel {
            beginning: "",
            seed: 1,
            width: 20,
            inner_width: 37,
            n_heads: 2,
            n_layers: 3,
            n_positions: 12,
        }
    }
}

impl TinyModel {
    /// All tensors by name, each with its shape.
    pub(crate) fn tensors(&self) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
        let (width, wide) = (self.width, self.inner_width);
        let mut shapes = vec![
            ("embeddings.word_embeddings.weight".into(), vec![PIECES.len(), width]),
            ("embeddings.position_embeddings.weight".into(), vec![self.n_positions, width]),
            ("embeddings.token_type_embeddings.weight".into(), vec![2, width]),
            ("embeddings.LayerNorm.weight".into(), vec![width]),
            ("embeddings.LayerNorm.bias".into(), vec![width]),
        ];
        for layer in 0..self.n_layers {
            for (name, to, from) in [
                ("attention.self.query", width, width),
                ("attention.self.key", width, width),
                ("attention.self.value", width, width),
                ("attention.output.dense", width, width),
                ("intermediate.dense", wide, width),
                ("output.dense", width, wide),
            ] {
                shapes.push((format!("encoder.layer.{layer}.{name}.weight"), vec![to, from]));
                shapes.push((format!("encoder.layer.{layer}.{name}.bias"), vec![to]));
            }
            for name in ["attention.output", "output"] {
                shapes.push((format!("encoder.layer.{layer}.{name}.LayerNorm.weight"), vec![width]));
                shapes.push((format!("encoder.layer.{layer}.{name}.LayerNorm.bias"), vec![width]));
            }
        }
        let mut state = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut number = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1_u64 << 24) as f32 * 2.0 - 1.0
        };
        let mut filled = |shape: Vec<usize>| {
            let numbers = (0..shape.iter().product()).map(|_| number()).collect();
            (shape, numbers)
        };
        shapes.into_iter().map(|(name, shape)| (name, filled(shape))).collect()
    }

    /// Table of the file, and its numbers.
    pub(crate) fn table(&self) -> (Map<String, Value>, Vec<u8>) {
        let mut table = Map::from_iter([("__metadata__".into(), json!({ "format": "pt" }))]);
        let mut bytes = Vec::new();
        for (name, (shape, numbers)) in self.tensors() {
            let from = bytes.len();
            numbers.iter().for_each(|number: &f32| bytes.extend(number.to_le_bytes()));
            let line = json!({ "dtype": "F32", "shape": shape, "data_offsets": [from, bytes.len()] });
            table.insert(format!("{}{name}", self.beginning), line);
        }
        (table, bytes)
    }

    pub(crate) fn config(&self) -> Value {
        json!({
            "model_type": "bert", "hidden_act": "gelu", "hidden_size": self.width, "intermediate_size": self.inner_width,
            "num_attention_heads": self.n_heads, "num_hidden_layers": self.n_layers,
            "max_position_embeddings": self.n_positions, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
        })
    }

    pub(crate) fn folder(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let (table, bytes) = self.table();
        fs::write(folder.path().join("model.safetensors"), file(&table, &bytes)).unwrap();
        fs::write(folder.path().join("config.json"), self.config().to_string()).unwrap();
        fs::write(folder.path().join("vocab.txt"), PIECES.join("\n")).unwrap();
        folder
    }
}

/// Encodes a table and numbers as a file.
pub(crate) fn file(table: &Map<String, Value>, bytes: &[u8]) -> Vec<u8> {
    let table = Value::from(table.clone()).to_string();
    [&(table.len() as u64).to_le_bytes(), table.as_bytes(), bytes].concat()
}
