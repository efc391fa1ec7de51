//! Asks the first prompt of every later session, with several rankings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pal_memory::{Author, EmbeddingModel, MemoryFile, MemoryHeader, MemoryKind, MemoryStore, first_sentence};
use pal_model::Timestamp;
use pal_search::{SearchDocument, SearchIndex};

use crate::recorded_sessions::{RecordedRepository, RecordedSession, RecordedTurn};
use crate::score_intervals::QuestionScore;

/// Baseline ranking, and the one in use.
pub(crate) const BASELINE: &str = "BM25 alone";
pub(crate) const SHIPPED: &str = "as shipped: the same, varied";

/// Results per question.
const SHOWN: usize = 5;
/// Maximum characters of a prompt and of an answer in a memory.
const TEXT_MAX: usize = 2_000;

/// Scores of all questions, by ranking.
#[derive(Default)]
pub(crate) struct RankingResults {
    asked: BTreeMap<&'static str, Vec<QuestionScore>>,
    order: Vec<&'static str>,
    n_memories: usize,
    n_repositories: usize,
}

impl RankingResults {
    pub(crate) fn ask(
        repositories: &[RecordedRepository],
        embeddings: Option<&Arc<EmbeddingModel>>,
    ) -> RankingResults {
        let mut ways = RankingResults::default();
        for repository in repositories {
            let mut kept = RepositoryMemory::new(&repository.name, embeddings);
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

    pub(crate) fn asked(&self, way: &str) -> &[QuestionScore] {
        &self.asked[way]
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &[QuestionScore])> {
        self.order.iter().map(|way| (*way, self.asked[way].as_slice()))
    }

    /// Asks the first prompt of a session, if there is anything to find.
    fn question(&mut self, kept: &mut RepositoryMemory, session: &RecordedSession) {
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
            let asked = score_ranking(&ranking, &findable, &kept.notes);
            self.asked.entry(way).or_default().push(asked);
        }
    }
}

fn score_ranking(
    ranking: &[String],
    wanted: &BTreeSet<String>,
    notes: &BTreeMap<String, NoteRecord>,
) -> QuestionScore {
    let files = |slug: &String| notes[slug].files.intersection(wanted);
    let found: BTreeSet<&String> = ranking.iter().take(SHOWN).flat_map(files).collect();
    let first = ranking.iter().position(|slug| files(slug).next().is_some());
    QuestionScore {
        recall: found.len() as f64 / wanted.len() as f64,
        reciprocal: first.map_or(0.0, |at| 1.0 / (at + 1) as f64),
    }
}

/// Metadata of a memory.
struct NoteRecord {
    files: BTreeSet<String>,
    at: Timestamp,
    uses: u64,
    used: Option<Timestamp>,
}

/// Memories of a repository so far.
struct RepositoryMemory {
    _folder: tempfile::TempDir,
    memory: MemoryStore,
    index: SearchIndex,
    notes: BTreeMap<String, NoteRecord>,
    meaning: Option<EmbeddingRanker>,
}

/// Vectors of the same memories.
struct EmbeddingRanker {
    embeddings: Arc<EmbeddingModel>,
    memory: MemoryStore,
    vectors: BTreeMap<String, Vec<f32>>,
}

impl EmbeddingRanker {
    /// All memories, nearest first.
    fn nearest(&self, prompt: &str) -> Vec<(String, f64)> {
        let question = self.embeddings.embed(prompt).unwrap();
        let near = |vector: &[f32]| vector.iter().zip(&question).map(|(one, other)| one * other).sum::<f32>();
        let mut all: Vec<(String, f64)> =
            self.vectors.iter().map(|(slug, vector)| (slug.clone(), f64::from(near(vector)))).collect();
        all.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        all
    }
}

impl RepositoryMemory {
    fn new(name: &str, embeddings: Option<&Arc<EmbeddingModel>>) -> RepositoryMemory {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name.replace('/', "-"));
        let memory = MemoryStore::open(&path, Timestamp::from_milliseconds(0)).unwrap();
        let meaning = embeddings.map(|embeddings| {
            let again = MemoryStore::open(&path, Timestamp::from_milliseconds(0)).unwrap();
            let memory = again.with_embeddings(Some(Arc::clone(embeddings)));
            EmbeddingRanker { embeddings: Arc::clone(embeddings), memory, vectors: BTreeMap::new() }
        });
        let index = SearchIndex::in_memory(3).unwrap();
        RepositoryMemory { _folder: folder, memory, index, notes: BTreeMap::new(), meaning }
    }

    /// Adds the memories of a session.
    fn learn(&mut self, session: &RecordedSession) {
        let touched = session.touched();
        for (slug, note) in &mut self.notes {
            // Working on a file again counts as a use of its memories.
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

    fn remember(&mut self, turn: &RecordedTurn) {
        let name = first_sentence(&turn.prompt, 60);
        let slug = self.memory.unused_slug(&name);
        let files: Vec<&str> = turn.files.iter().map(String::as_str).collect();
        let description = files.join(", ");
        let cut = |text: &str| text.chars().take(TEXT_MAX).collect::<String>();
        let body =
            format!("{}\n\n{}\n\n{}\n", cut(&turn.prompt), cut(&turn.said), cut(&turn.commands.join("\n")));
        let head = MemoryHeader {
            name: name.clone(),
            description: description.clone(),
            kind: MemoryKind::Project,
            modified: None,
            origin: Author::program(),
        };
        self.memory.write(&slug, &MemoryFile::new(head, body.clone()), &Author::program(), turn.at).unwrap();
        let fields = [name.as_str(), &description, &body];
        self.index.put(&[SearchDocument { key: &slug, stamp: "", fields: &fields }]).unwrap();
        if let Some(meaning) = &mut self.meaning {
            let vector = meaning.embeddings.embed(&format!("{name}\n{description}\n{body}")).unwrap();
            meaning.vectors.insert(slug.clone(), vector);
        }
        let note = NoteRecord { files: turn.files.clone(), at: turn.at, uses: 0, used: None };
        self.notes.insert(slug, note);
    }

    /// Results of a question, by ranking.
    fn rankings(&mut self, prompt: &str, now: Timestamp) -> Vec<(&'static str, Vec<String>)> {
        let plain = self.found(prompt, &[1.0, 1.0, 1.0]);
        let weighted = self.found(prompt, &[4.0, 2.0, 1.0]);
        let shipped = self.memory.search(prompt, SHOWN, now).unwrap();
        let mut shipped: Vec<String> = shipped.into_iter().map(|found| found.memory.slug).collect();
        let used = self.reorder(&weighted, now, 0.3, 2.0);
        append_rest(&mut shipped, &used);
        let mut rankings = vec![
            ("newest first, whatever is asked", self.newest()),
            (BASELINE, slugs(&plain)),
            ("BM25, names and descriptions count more", slugs(&weighted)),
            ("… and recency", self.reorder(&weighted, now, 0.3, 0.0)),
            ("… and recency, use up to 30 %", self.reorder(&weighted, now, 0.3, 0.3)),
            ("… and recency, use up to 200 %", used),
            (SHIPPED, shipped),
        ];
        rankings.extend(self.with_embeddings(prompt, &weighted, now));
        rankings
    }

    /// Rankings with the model, if there is one.
    fn with_embeddings(
        &mut self,
        prompt: &str,
        weighted: &[(String, f64)],
        now: Timestamp,
    ) -> Vec<(&'static str, Vec<String>)> {
        let Some(meaning) = &mut self.meaning else { return Vec::new() };
        let nearest = meaning.nearest(prompt);
        assert!(meaning.memory.embed_missing(|| false).unwrap());
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
        let used = self.reorder(&fused, now, 0.3, 2.0);
        append_rest(&mut shipped, &used);
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

    /// Reorders hits by recency and use, with these weights.
    fn reorder(&self, hits: &[(String, f64)], now: Timestamp, recency: f64, uses: f64) -> Vec<String> {
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

/// Appends the remaining results, to rank the first relevant one.
fn append_rest(shown: &mut Vec<String>, all: &[String]) {
    let rest: Vec<String> = all.iter().filter(|slug| !shown.contains(slug)).cloned().collect();
    shown.extend(rest);
}

fn slugs(hits: &[(String, f64)]) -> Vec<String> {
    hits.iter().map(|(slug, _)| slug.clone()).collect()
}
