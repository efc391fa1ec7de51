//! Asking every later session's question, in several ways.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pal_memory::{Author, Embeddings, Head, Kind, Memory, Topic, first_sentence};
use pal_model::Timestamp;
use pal_search::{Document, Index};

use crate::figures::Asked;
use crate::recorded::{Repository, Session, Turn};

/// What the others are measured by, and what the program does.
pub(crate) const BASELINE: &str = "BM25 alone";
pub(crate) const SHIPPED: &str = "as shipped: the same, varied";

/// Memories that a question may bring.
const SHOWN: usize = 5;
/// Characters of a prompt and of an answer that go into a memory.
const TEXT_MOST: usize = 2_000;

/// What came of all questions, by ranking.
#[derive(Default)]
pub(crate) struct Ways {
    asked: BTreeMap<&'static str, Vec<Asked>>,
    order: Vec<&'static str>,
    n_memories: usize,
    n_repositories: usize,
}

impl Ways {
    pub(crate) fn ask(repositories: &[Repository], embeddings: Option<&Arc<Embeddings>>) -> Ways {
        let mut ways = Ways::default();
        for repository in repositories {
            let mut kept = Kept::new(&repository.name, embeddings);
            let before = ways.questions();
            for session in &repository.sessions {
                ways.question(&mut kept, session);
                kept.learn(session);
            }
            ways.n_memories += kept.notes.len();
            ways.n_repositories += usize::from(ways.questions() > before);
        }
        ways
    }

    pub(crate) fn questions(&self) -> usize {
        self.asked.values().map(Vec::len).max().unwrap_or(0)
    }

    pub(crate) fn memories(&self) -> usize {
        self.n_memories
    }

    pub(crate) fn repositories(&self) -> usize {
        self.n_repositories
    }

    pub(crate) fn asked(&self, way: &str) -> &[Asked] {
        &self.asked[way]
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &[Asked])> {
        self.order.iter().map(|way| (*way, self.asked[way].as_slice()))
    }

    /// Asks with the first prompt of a session, if there is anything to be found.
    fn question(&mut self, kept: &mut Kept, session: &Session) {
        let touched = session.touched();
        let findable: BTreeSet<&str> = touched
            .into_iter()
            .filter(|file| kept.notes.values().any(|note| note.files.contains(*file)))
            .collect();
        if findable.is_empty() {
            return;
        }
        let findable: BTreeSet<String> = findable.into_iter().map(str::to_owned).collect();
        for (way, ranking) in kept.rankings(&session.prompt, session.began) {
            if !self.order.contains(&way) {
                self.order.push(way);
            }
            let asked = judged(&ranking, &findable, &kept.notes);
            self.asked.entry(way).or_default().push(asked);
        }
    }
}

fn judged(ranking: &[String], wanted: &BTreeSet<String>, notes: &BTreeMap<String, Note>) -> Asked {
    let files = |slug: &String| notes[slug].files.intersection(wanted);
    let found: BTreeSet<&String> = ranking.iter().take(SHOWN).flat_map(files).collect();
    let first = ranking.iter().position(|slug| files(slug).next().is_some());
    Asked {
        recall: found.len() as f64 / wanted.len() as f64,
        reciprocal: first.map_or(0.0, |at| 1.0 / (at + 1) as f64),
    }
}

/// A memory as we know it.
struct Note {
    files: BTreeSet<String>,
    at: Timestamp,
    uses: u64,
    used: Option<Timestamp>,
}

/// What is remembered of a repository so far.
struct Kept {
    _folder: tempfile::TempDir,
    memory: Memory,
    index: Index,
    notes: BTreeMap<String, Note>,
    meaning: Option<Meaning>,
}

/// The same memories for a model.
struct Meaning {
    embeddings: Arc<Embeddings>,
    memory: Memory,
    vectors: BTreeMap<String, Vec<f32>>,
}

impl Meaning {
    /// All memories, the nearest first.
    fn nearest(&self, prompt: &str) -> Vec<(String, f64)> {
        let question = self.embeddings.embed(prompt).unwrap();
        let near = |vector: &[f32]| vector.iter().zip(&question).map(|(one, other)| one * other).sum::<f32>();
        let mut all: Vec<(String, f64)> =
            self.vectors.iter().map(|(slug, vector)| (slug.clone(), f64::from(near(vector)))).collect();
        all.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        all
    }
}

impl Kept {
    fn new(name: &str, embeddings: Option<&Arc<Embeddings>>) -> Kept {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name.replace('/', "-"));
        let memory = Memory::open(&path, Timestamp::from_milliseconds(0)).unwrap();
        let meaning = embeddings.map(|embeddings| {
            let again = Memory::open(&path, Timestamp::from_milliseconds(0)).unwrap();
            let memory = again.with_embeddings(Some(Arc::clone(embeddings)));
            Meaning { embeddings: Arc::clone(embeddings), memory, vectors: BTreeMap::new() }
        });
        let index = Index::in_memory(3).unwrap();
        Kept { _folder: folder, memory, index, notes: BTreeMap::new(), meaning }
    }

    /// Takes over what a session leaves behind.
    fn learn(&mut self, session: &Session) {
        let touched = session.touched();
        for (slug, note) in &mut self.notes {
            // Whoever works on a file again uses what is known of it.
            if note.files.iter().any(|file| touched.contains(file.as_str())) {
                note.uses += 1;
                note.used = Some(session.began);
                self.memory.note_used(slug, session.began, None).unwrap();
            }
        }
        for turn in &session.turns {
            self.remember(turn);
        }
    }

    fn remember(&mut self, turn: &Turn) {
        let name = first_sentence(&turn.prompt, 60);
        let slug = self.memory.free_slug(&name);
        let files: Vec<&str> = turn.files.iter().map(String::as_str).collect();
        let description = files.join(", ");
        let cut = |text: &str| text.chars().take(TEXT_MOST).collect::<String>();
        let body =
            format!("{}\n\n{}\n\n{}\n", cut(&turn.prompt), cut(&turn.said), cut(&turn.commands.join("\n")));
        let head = Head {
            name: name.clone(),
            description: description.clone(),
            kind: Kind::Project,
            modified: None,
            origin: Author::program(),
        };
        self.memory.write(&slug, &Topic::new(head, body.clone()), &Author::program(), turn.at).unwrap();
        let fields = [name.as_str(), &description, &body];
        self.index.put(&[Document { key: &slug, stamp: "", fields: &fields }]).unwrap();
        if let Some(meaning) = &mut self.meaning {
            let vector = meaning.embeddings.embed(&format!("{name}\n{description}\n{body}")).unwrap();
            meaning.vectors.insert(slug.clone(), vector);
        }
        let note = Note { files: turn.files.clone(), at: turn.at, uses: 0, used: None };
        self.notes.insert(slug, note);
    }

    /// What a question brings, ranking by ranking.
    fn rankings(&mut self, prompt: &str, now: Timestamp) -> Vec<(&'static str, Vec<String>)> {
        let plain = self.found(prompt, &[1.0, 1.0, 1.0]);
        let weighted = self.found(prompt, &[4.0, 2.0, 1.0]);
        let shipped = self.memory.search(prompt, SHOWN, now).unwrap();
        let mut shipped: Vec<String> = shipped.into_iter().map(|found| found.memory.slug).collect();
        let used = self.weighed(&weighted, now, 0.3, 2.0);
        and_the_rest(&mut shipped, &used);
        let mut rankings = vec![
            ("newest first, whatever is asked", self.newest()),
            (BASELINE, slugs(&plain)),
            ("BM25, names and descriptions count more", slugs(&weighted)),
            ("… and recency", self.weighed(&weighted, now, 0.3, 0.0)),
            ("… and recency, use up to 30 %", self.weighed(&weighted, now, 0.3, 0.3)),
            ("… and recency, use up to 200 %", used),
            (SHIPPED, shipped),
        ];
        rankings.extend(self.with_embeddings(prompt, &weighted, now));
        rankings
    }

    /// The same with a model, if there is one.
    fn with_embeddings(
        &mut self,
        prompt: &str,
        weighted: &[(String, f64)],
        now: Timestamp,
    ) -> Vec<(&'static str, Vec<String>)> {
        let Some(meaning) = &mut self.meaning else { return Vec::new() };
        let nearest = meaning.nearest(prompt);
        assert!(meaning.memory.embed_some(|| false).unwrap());
        let shipped = meaning.memory.search(prompt, SHOWN, now).unwrap();
        let mut shipped: Vec<String> = shipped.into_iter().map(|found| found.memory.slug).collect();
        let mut fused: BTreeMap<&String, f64> = BTreeMap::new();
        for order in [weighted, &nearest] {
            for (place, (slug, _)) in order.iter().enumerate() {
                *fused.entry(slug).or_default() += 1.0 / (61 + place) as f64;
            }
        }
        let mut fused: Vec<(String, f64)> =
            fused.into_iter().map(|(slug, score)| (slug.clone(), score)).collect();
        fused.sort_by(|one, other| other.1.total_cmp(&one.1));
        let used = self.weighed(&fused, now, 0.3, 2.0);
        and_the_rest(&mut shipped, &used);
        vec![
            ("embeddings alone", slugs(&nearest)),
            ("embeddings and BM25, fused by rank", slugs(&fused)),
            ("… and recency, use up to 200 %, with them", used),
            ("as shipped, with embeddings", shipped),
        ]
    }

    fn found(&self, prompt: &str, weights: &[f64]) -> Vec<(String, f64)> {
        let hits = self.index.search(prompt, weights, 10_000).unwrap();
        hits.into_iter().map(|hit| (hit.key, hit.score)).collect()
    }

    fn newest(&self) -> Vec<String> {
        let mut all: Vec<(&Timestamp, &String)> =
            self.notes.iter().map(|(slug, note)| (&note.at, slug)).collect();
        all.sort_by(|one, other| other.cmp(one));
        all.into_iter().map(|(_, slug)| slug.clone()).collect()
    }

    /// What newness and use make of an order, as much as that.
    fn weighed(&self, hits: &[(String, f64)], now: Timestamp, recency: f64, uses: f64) -> Vec<String> {
        let mut all: Vec<(f64, &String)> = hits
            .iter()
            .map(|(slug, score)| {
                let note = &self.notes[slug];
                let touched = note.used.map_or(note.at, |used| used.max(note.at));
                let days = (now.milliseconds() - touched.milliseconds()).max(0) as f64 / 86_400_000.0;
                let newness = 0.5_f64.powf(days / 30.0);
                let used = note.uses as f64 / (note.uses as f64 + 4.0);
                (score * (1.0 + recency * newness + uses * used), slug)
            })
            .collect();
        all.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1)));
        all.into_iter().map(|(_, slug)| slug.clone()).collect()
    }
}

/// Behind those that are shown, the rest in their order: for the place of the first that fits.
fn and_the_rest(shown: &mut Vec<String>, all: &[String]) {
    let rest: Vec<String> = all.iter().filter(|slug| !shown.contains(slug)).cloned().collect();
    shown.extend(rest);
}

fn slugs(hits: &[(String, f64)]) -> Vec<String> {
    hits.iter().map(|(slug, _)| slug.clone()).collect()
}
