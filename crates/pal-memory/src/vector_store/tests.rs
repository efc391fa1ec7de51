//! Semantic search with a generated model of nine words.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use pal_model::Timestamp;
use serde_json::{Map, json};
use tempfile::TempDir;

use super::*;
use crate::author::Author;
use crate::embedding_model::EmbeddingModel;

/// Words of one row are synonyms. The first row stands for unknown words.
const ROWS: [&[&str]; 5] = [&["[UNK]"], &["[CLS]"], &["[SEP]"], &["car", "automobile"], &["bread", "loaf"]];

/// A model without layers: each row is one axis, scaled by `scale`.
fn model(scale: f32) -> (TempDir, Arc<EmbeddingModel>) {
    let folder = tempfile::tempdir().unwrap();
    let (width, n_positions) = (ROWS.len(), 64);
    let words: Vec<(usize, &str)> =
        ROWS.iter().enumerate().flat_map(|(row, words)| words.iter().map(move |word| (row, *word))).collect();
    let rows = words.iter().flat_map(|(row, _)| {
        (0..width).map(move |column| {
            // Markers that every text has carry no meaning.
            if *row >= 3 && column == *row { scale } else { 0.0 }
        })
    });
    let tensors: [(&str, Vec<usize>, Vec<f32>); 5] = [
        ("embeddings.word_embeddings.weight", vec![words.len(), width], rows.collect()),
        ("embeddings.position_embeddings.weight", vec![n_positions, width], vec![0.0; n_positions * width]),
        ("embeddings.token_type_embeddings.weight", vec![1, width], vec![0.0; width]),
        ("embeddings.LayerNorm.weight", vec![width], vec![1.0; width]),
        ("embeddings.LayerNorm.bias", vec![width], vec![0.0; width]),
    ];
    let (mut table, mut bytes) = (Map::new(), Vec::new());
    for (name, shape, numbers) in tensors {
        let from = bytes.len();
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        table.insert(
            name.into(),
            json!({ "dtype": "F32", "shape": shape, "data_offsets": [from, bytes.len()] }),
        );
    }
    let table = json!(table).to_string();
    let file = [&(table.len() as u64).to_le_bytes(), table.as_bytes(), &bytes].concat();
    fs::write(folder.path().join("model.safetensors"), file).unwrap();
    let config = json!({
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": width, "intermediate_size": 1, "num_attention_heads": 1,
        "num_hidden_layers": 0, "max_position_embeddings": n_positions, "type_vocab_size": 1, "layer_norm_eps": 1e-12,
    });
    fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let words: Vec<&str> = words.iter().map(|(_, word)| *word).collect();
    fs::write(folder.path().join("vocab.txt"), words.join("\n")).unwrap();
    let embeddings = EmbeddingModel::open(folder.path()).unwrap();
    (folder, embeddings)
}

fn now() -> Timestamp {
    Timestamp::from_milliseconds(1_800_000_000_000)
}

fn open(path: &Path, embeddings: &Arc<EmbeddingModel>) -> MemoryStore {
    MemoryStore::open(path, now()).unwrap().with_embeddings(Some(Arc::clone(embeddings)))
}

fn write(memory: &mut MemoryStore, slug: &str, text: &str) {
    let file = format!("---\nname: {text}\ndescription: {text}\ntype: project\n---\n\n{text}\n");
    memory.write_file(slug, &file, &Author::Person, now()).unwrap();
}

fn found(memory: &mut MemoryStore, question: &str) -> String {
    let found = memory.search(question, 5, now()).unwrap();
    found.into_iter().map(|found| found.memory.slug).collect::<Vec<_>>().join(" ")
}

fn embed_all(memory: &mut MemoryStore) {
    assert!(memory.embed_missing(|| false).unwrap());
}

/// Two memories with vectors.
fn of_two(path: &Path, embeddings: &Arc<EmbeddingModel>) -> MemoryStore {
    let mut memory = open(path, embeddings);
    write(&mut memory, "one", "car");
    write(&mut memory, "two", "bread");
    embed_all(&mut memory);
    memory
}

#[test]
fn synonyms_are_found_by_meaning() {
    let (folder, (_model, embeddings)) = (tempfile::tempdir().unwrap(), model(1.0));
    let mut memory = open(&folder.path().join("memory"), &embeddings);
    embed_all(&mut memory);
    assert!(!memory.folder.exists(VECTORS), "there is nothing to keep");
    write(&mut memory, "one", "car");
    write(&mut memory, "two", "bread");
    assert_eq!(found(&mut memory, "automobile"), "", "nothing was made of any yet");
    assert_eq!(found(&mut memory, "car"), "one");
    embed_all(&mut memory);
    assert_eq!(found(&mut memory, "automobile"), "one");
    assert_eq!(found(&mut memory, "the loaf"), "two");
    assert_eq!(
        found(&mut memory, "automobile bread"),
        "two one",
        "words and meaning count for more than meaning"
    );
    write(&mut memory, "three", "automobile");
    assert_eq!(found(&mut memory, "automobile"), "one three", "one by its meaning, the other by its words");
}

#[test]
fn vectors_are_stored_and_reused() {
    let (folder, (_model, embeddings)) = (tempfile::tempdir().unwrap(), model(1.0));
    let path = folder.path().join("memory");
    of_two(&path, &embeddings);
    let kept = path.join(VECTORS);
    let written = fs::metadata(&kept).unwrap();
    assert_eq!(written.permissions().mode() & 0o777, 0o600);
    assert_eq!(written.len(), 8 + 32 + 4 + 2 * (32 + 5 * 4));
    let mut again = open(&path, &embeddings);
    assert_eq!(found(&mut again, "automobile"), "one");
    let stamp = again.folder.stamp(VECTORS).unwrap();
    embed_all(&mut again);
    assert_eq!(again.folder.stamp(VECTORS).unwrap(), stamp, "nothing is made twice");
    assert_eq!(found(&mut MemoryStore::open(&path, now()).unwrap(), "automobile"), "", "without a model");
}

#[test]
fn vectors_of_changed_texts_are_dropped() {
    let (folder, (_model, embeddings)) = (tempfile::tempdir().unwrap(), model(1.0));
    let path = folder.path().join("memory");
    let mut memory = of_two(&path, &embeddings);
    write(&mut memory, "one", "bread");
    assert_eq!(found(&mut memory, "automobile"), "");
    embed_all(&mut memory);
    assert_eq!(found(&mut memory, "loaf"), "one two");
    assert_eq!(
        fs::metadata(path.join(VECTORS)).unwrap().len(),
        8 + 32 + 4 + 2 * (32 + 5 * 4),
        "no third one"
    );
}

#[test]
fn vectors_of_another_model_are_dropped() {
    let (folder, (_first, first), (_second, second)) =
        (tempfile::tempdir().unwrap(), model(1.0), model(-1.0));
    let path = folder.path().join("memory");
    let mut memory = open(&path, &first);
    write(&mut memory, "one", "car");
    embed_all(&mut memory);
    let mut memory = open(&path, &second);
    assert_eq!(found(&mut memory, "automobile"), "", "the numbers mean something else to it");
    embed_all(&mut memory);
    assert_eq!(found(&mut memory, "automobile"), "one");
    assert_eq!(found(&mut open(&path, &first), "automobile"), "");
}

#[test]
fn corrupt_vector_file_is_rebuilt() {
    let (folder, (_model, embeddings)) = (tempfile::tempdir().unwrap(), model(1.0));
    let path = folder.path().join("memory");
    let mut memory = open(&path, &embeddings);
    write(&mut memory, "one", "car");
    embed_all(&mut memory);
    let whole = fs::read(path.join(VECTORS)).unwrap();
    let mut wide = whole.clone();
    wide[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
    for spoilt in [&whole[..whole.len() - 1], &whole[..20], &[], b"nonsense", &wide] {
        fs::write(path.join(VECTORS), spoilt).unwrap();
        let mut memory = open(&path, &embeddings);
        assert_eq!(found(&mut memory, "automobile"), "");
        embed_all(&mut memory);
        assert_eq!(fs::read(path.join(VECTORS)).unwrap(), whole);
    }
}

#[test]
fn embedding_stops_on_request() {
    let (folder, (_model, embeddings)) = (tempfile::tempdir().unwrap(), model(1.0));
    let path = folder.path().join("memory");
    let mut memory = open(&path, &embeddings);
    (0..5).for_each(|at| write(&mut memory, &format!("memory-{at}"), &format!("car {at}")));
    assert!(!memory.embed_missing(|| true).unwrap());
    assert!(!memory.folder.exists(VECTORS));
    let mut left = 2;
    let is_enough = || {
        left -= 1;
        left < 0
    };
    assert!(!memory.embed_missing(is_enough).unwrap());
    assert_eq!(
        found(&mut open(&path, &embeddings), "automobile").split(' ').count(),
        2,
        "what was made is kept"
    );
}
