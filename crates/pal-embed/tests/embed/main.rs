//! A model from its folder to its vectors: small ones made here, and a real one where there is one.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used)]

mod faults;
mod naive;
mod small;

use pal_embed::Embedder;

use small::Small;

#[test]
fn vectors_are_those_of_a_plain_reading_of_the_paper() {
    for beginning in ["", "bert."] {
        let small = Small { beginning, ..Small::default() };
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
            let wanted = naive::embed(&small, &tokens);
            assert_eq!(found.len(), small.width);
            for (found, wanted) in found.iter().zip(&wanted) {
                assert!((f64::from(*found) - wanted).abs() < 2e-5, "{text:?}: {found} {wanted}");
            }
        }
    }
}

#[test]
fn a_vocabulary_may_stand_in_the_tokenizers_own_file() {
    let small = Small::default();
    let folder = small.folder();
    let wanted = Embedder::open(folder.path()).unwrap().embed("one three").unwrap();
    std::fs::remove_file(folder.path().join("vocab.txt")).unwrap();
    let pieces: serde_json::Map<String, serde_json::Value> =
        small::PIECES.iter().enumerate().map(|(at, piece)| ((*piece).to_owned(), at.into())).collect();
    let page = serde_json::json!({ "model": { "vocab": pieces } });
    std::fs::write(folder.path().join("tokenizer.json"), page.to_string()).unwrap();
    assert_eq!(Embedder::open(folder.path()).unwrap().embed("one three").unwrap(), wanted);
}

#[test]
fn a_model_is_known_by_what_it_is_and_not_by_where() {
    let identity = |small: &Small| {
        let folder = small.folder();
        Embedder::open(folder.path()).unwrap().identity().unwrap()
    };
    let first = identity(&Small::default());
    assert_eq!(first, identity(&Small::default()));
    assert_ne!(first, identity(&Small { seed: 2, ..Small::default() }));
    assert_ne!(first, identity(&Small { n_heads: 1, ..Small::default() }));
    // One tensor alone may be another.
    let folder = Small::default().folder();
    let (table, mut bytes) = Small::default().table();
    let offset = table["encoder.layer.2.output.dense.bias"]["data_offsets"][0].as_u64().unwrap() as usize;
    bytes[offset] ^= 1;
    std::fs::write(folder.path().join("model.safetensors"), small::file(&table, &bytes)).unwrap();
    assert_ne!(first, Embedder::open(folder.path()).unwrap().identity().unwrap());
}

/// The values that the authors of the model give for it.
#[test]
fn the_real_model_finds_what_its_authors_say() {
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
