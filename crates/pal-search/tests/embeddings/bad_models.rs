//! Incomplete, malformed and unsupported models are refused with a message.

use std::fs;
use std::path::Path;

use pal_search::embeddings::{EmbedError, Embedder};
use serde_json::{Map, Value, json};

use crate::tiny_model::{TinyModel, file};

const WORDS: &str = "embeddings.word_embeddings.weight";
const BIAS: &str = "encoder.layer.1.output.dense.bias";

/// Error message for a model whose directory was changed.
fn refusal(spoil: impl FnOnce(&Path)) -> String {
    let folder = TinyModel::default().folder();
    spoil(folder.path());
    let refused = Embedder::open(folder.path()).and_then(|embedder| embedder.embed("one").map(drop));
    let error: EmbedError = refused.unwrap_err();
    let words = error.to_string();
    let step = ["download the model again", "use all-MiniLM-L6-v2", "a model directory contains"];
    assert!(step.iter().any(|step| words.contains(step)), "no next step: {words}");
    words
}

fn check(spoil: impl FnOnce(&Path), wanted: &str) {
    let words = refusal(spoil);
    assert!(words.contains(wanted), "{words:?} does not say {wanted:?}");
}

/// Error for a model with a changed table.
fn check_table(change: impl FnOnce(&mut Map<String, Value>), wanted: &str) {
    check(
        |folder| {
            let (mut table, bytes) = TinyModel::default().table();
            change(&mut table);
            fs::write(folder.join("model.safetensors"), file(&table, &bytes)).unwrap();
        },
        wanted,
    );
}

fn check_config(key: &str, value: Value, wanted: &str) {
    check(
        |folder| {
            let mut config = TinyModel::default().config();
            config[key] = value;
            fs::write(folder.join("config.json"), config.to_string()).unwrap();
        },
        wanted,
    );
}

#[test]
fn missing_files_are_named() {
    for name in ["config.json", "model.safetensors", "vocab.txt"] {
        check(|folder| fs::remove_file(folder.join(name)).unwrap(), &format!("{name}: "));
    }
}

#[test]
fn truncated_file_is_refused() {
    let (table, bytes) = TinyModel::default().table();
    let whole = file(&table, &bytes);
    for length in [0, 7, 8, 9, 500, whole.len() - bytes.len(), whole.len() - 1] {
        refusal(|folder| fs::write(folder.join("model.safetensors"), &whole[..length]).unwrap());
    }
}

#[test]
fn wrong_lengths_are_refused() {
    for length in [u64::MAX, u64::MAX - 7, 1 << 40, 16 * 1024 * 1024 + 1] {
        let bytes = [&length.to_le_bytes()[..], b"{}"].concat();
        check(|folder| fs::write(folder.join("model.safetensors"), bytes).unwrap(), "no sensible length");
    }
    let bytes = [&1_000_u64.to_le_bytes()[..], b"{}"].concat();
    check(|folder| fs::write(folder.join("model.safetensors"), bytes).unwrap(), "ends within its table");
    let bytes = [&2_u64.to_le_bytes()[..], b"[]"].concat();
    check(|folder| fs::write(folder.join("model.safetensors"), bytes).unwrap(), "its table");
}

#[test]
fn wrong_offsets_are_refused() {
    for offsets in [
        json!([0, 84]),
        json!([80, 0]),
        json!([0, u64::MAX]),
        json!([u64::MAX - 79, u64::MAX]),
        json!([10_000_000, 10_000_080]),
    ] {
        check_table(|table| table[BIAS]["data_offsets"] = offsets, "which cannot be");
    }
    check_table(|table| table[BIAS]["data_offsets"] = json!([-1, 80]), "its table");
    check_table(|table| table[BIAS]["data_offsets"] = json!([0]), "its table");
    check_table(|table| table[WORDS]["shape"] = json!([u64::MAX, 20]), "which cannot be");
    check_table(|table| table[WORDS]["shape"] = json!([1_u64 << 62, 20]), "which cannot be");
    check_table(|table| table[WORDS]["shape"] = json!([9, 21]), "not rows of 20");
    check_table(|table| table[BIAS]["shape"] = json!([4, 5]), "not [20]");
}

#[test]
fn wrong_types_and_missing_tensors_are_refused() {
    check_table(|table| table[BIAS]["dtype"] = json!("F16"), "kept as F16, and only F32 is read");
    check_table(|table| drop(table.shift_remove(BIAS)), "it has no encoder.layer.1.output.dense.bias");
    check_table(|table| drop(table.shift_remove(WORDS)), "it has no embeddings.word_embeddings.weight");
}

#[test]
fn unsupported_models_are_refused() {
    check_config("model_type", json!("roberta"), "its type is roberta");
    check_config("hidden_act", json!("relu"), "its activation is relu");
    check_config("position_embedding_type", json!("relative_key"), "its positions are relative_key");
    check_config("num_attention_heads", json!(3), "3 heads do not share 20 numbers");
    check_config("num_attention_heads", json!(0), "0 heads");
    check_config("hidden_size", json!(-1), "config.json is malformed");
    check_config("num_hidden_layers", json!(u64::MAX), "it has no encoder.layer.3");
    check_config("max_position_embeddings", json!(0), "it takes no tokens");
    let write = |name: &'static str, value: Value| {
        move |folder: &Path| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value.to_string()).unwrap();
        }
    };
    check(write("tokenizer_config.json", json!({ "do_lower_case": false })), "it tells capitals apart");
    check(write("1_Pooling/config.json", json!({ "pooling_mode_mean_tokens": false })), "not the mean");
}

#[test]
fn mismatched_vocabulary_is_refused() {
    check(|folder| fs::write(folder.join("vocab.txt"), "one\ntwo").unwrap(), "it has no [UNK]");
    let many = "[UNK]\n[CLS]\n[SEP]\n".to_owned() + &"x\n".repeat(7);
    check(|folder| fs::write(folder.join("vocab.txt"), many).unwrap(), "it has a piece 9, the model only 9");
}

#[test]
fn nan_weights_are_an_error() {
    let (table, bytes) = TinyModel::default().table();
    let nans: Vec<u8> = bytes.chunks_exact(4).flat_map(|_| f32::NAN.to_le_bytes()).collect();
    check(
        |folder| fs::write(folder.join("model.safetensors"), file(&table, &nans)).unwrap(),
        "its weights give no vector",
    );
}
