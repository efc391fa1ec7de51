//! From model directory to vectors, with tiny generated models and a real one if available.

// A test that panics has failed.
#![allow(clippy::unwrap_used)]

mod bad_models;
mod naive_bert;
mod tiny_model;

use pal_search::embeddings::Embedder;

use tiny_model::TinyModel;

#[test]
fn vectors_equal_the_naive_model() {
    for beginning in ["", "bert."] {
        let small = TinyModel { beginning, ..TinyModel::default() };
        let folder = small.folder();
        let embedder = Embedder::open(folder.path()).unwrap();
        // One token, several, and more than there are positions.
        for (text, tokens) in [
            ("", vec![1, 2]),
            ("one", vec![1, 3, 2]),
            ("One two, three four five", vec![1, 3, 4, 8, 5, 6, 7, 2]),
            ("one two three four five one two three four five", vec![1, 3, 4, 5, 6, 7, 3, 4, 5, 6, 7, 2]),
            (&"two ".repeat(40), [vec![1], vec![4; 10], vec![2]].concat()),
        ] {
            let found = embedder.embed(text).unwrap();
            let wanted = naive_bert::embed(&small, &tokens);
            assert_eq!(found.len(), small.width);
            for (found, wanted) in found.iter().zip(&wanted) {
                assert!((f64::from(*found) - wanted).abs() < 2e-5, "{text:?}: {found} {wanted}");
            }
        }
    }
}

#[test]
fn vocabulary_is_read_from_tokenizer_json() {
    let small = TinyModel::default();
    let folder = small.folder();
    let wanted = Embedder::open(folder.path()).unwrap().embed("one three").unwrap();
    std::fs::remove_file(folder.path().join("vocab.txt")).unwrap();
    let pieces: serde_json::Map<String, serde_json::Value> =
        tiny_model::PIECES.iter().enumerate().map(|(at, piece)| ((*piece).to_owned(), at.into())).collect();
    let page = serde_json::json!({ "model": { "vocab": pieces } });
    std::fs::write(folder.path().join("tokenizer.json"), page.to_string()).unwrap();
    assert_eq!(Embedder::open(folder.path()).unwrap().embed("one three").unwrap(), wanted);
}

#[test]
fn identity_depends_on_content_not_path() {
    let identity = |small: &TinyModel| {
        let folder = small.folder();
        Embedder::open(folder.path()).unwrap().identity().unwrap()
    };
    let first = identity(&TinyModel::default());
    assert_eq!(first, identity(&TinyModel::default()));
    assert_ne!(first, identity(&TinyModel { seed: 2, ..TinyModel::default() }));
    assert_ne!(first, identity(&TinyModel { n_heads: 1, ..TinyModel::default() }));
    // A change of a single tensor counts.
    let folder = TinyModel::default().folder();
    let (table, mut bytes) = TinyModel::default().table();
    let offset = table["encoder.layer.2.output.dense.bias"]["data_offsets"][0].as_u64().unwrap() as usize;
    bytes[offset] ^= 1;
    std::fs::write(folder.path().join("model.safetensors"), tiny_model::file(&table, &bytes)).unwrap();
    assert_ne!(first, Embedder::open(folder.path()).unwrap().identity().unwrap());
}

/// Reference values published by the model's authors.
#[test]
fn real_model_matches_published_values() {
    let Some(folder) = std::env::var_os("PAL_EMBEDDINGS") else {
        println!("SKIPPED: PAL_EMBEDDINGS does not name the folder of all-MiniLM-L6-v2");
        return;
    };
    let embedder = Embedder::open(folder.as_ref()).unwrap();
    let embed = |text| embedder.embed(text).unwrap();
    let cosine =
        |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f32>();
    let weather = embed("The weather is lovely today.");
    let sun = embed("It's so sunny outside!");
    let stadium = embed("He drove to the stadium.");
    for (one, other, wanted) in
        [(&weather, &sun, 0.6660), (&weather, &stadium, 0.1046), (&sun, &stadium, 0.1411)]
    {
        let found = cosine(one, other);
        println!("{found:.4} {wanted}");
        assert!((found - wanted).abs() < 0.002, "{found} {wanted}");
    }
    assert!((cosine(&sun, &sun) - 1.0).abs() < 1e-5);
}
