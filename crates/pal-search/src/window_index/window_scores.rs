//! Scores of texts by the words that they and their neighbors contain.
//!
//! BM25 over a window: a text that contains a word adds 1 to its own frequency and, by distance, less to that of its
//! neighbors in the sequence. The length of a window is weighted in the same way.

/// Saturation of the frequency, and weight of the length, of BM25.
const SATURATION: f32 = 2.0;
const LENGTH_WEIGHT: f32 = 0.75;
/// Distance in words, from middle to middle, at which a neighbor counts 1/e.
const REACH_WORDS: f32 = 60.0;
/// Distance in words at which neighbors end to count.
const DISTANCE_MAX: usize = 140;
/// Consecutive texts of a sequence that were indexed together, of one day.
pub(super) struct Stretch {
    /// Number of the first text.
    pub(super) first: usize,
    pub(super) sequence: i64,
    /// Time in milliseconds.
    pub(super) at: i64,
    /// Words, at most 255, and kind of each text.
    pub(super) sizes: Vec<u8>,
}

/// Scores of all texts, by number.
pub(super) struct WindowScores {
    /// Words of each text; 0 for a removed one.
    words: Vec<u8>,
    /// True for texts whose predecessor is of another sequence.
    is_start: Vec<bool>,
    scores: Vec<f32>,
    /// True for texts with a term of their own: only these are found.
    has_term: Vec<bool>,
    /// Windowed frequency of the current term.
    frequency: Vec<f32>,
    /// Weight of a neighbor by its distance in words.
    by_distance: Vec<f32>,
    texts: f32,
    /// Mean length of a window.
    mean_length: f32,
}

impl WindowScores {
    /// Prepares the scores; `population` is the least number of texts to assume.
    pub(super) fn new(stretches: &[Stretch], population: usize) -> WindowScores {
        let end = stretches.last().map_or(0, |last| last.first + last.sizes.len() / 2);
        let mut words = vec![0; end];
        let mut is_start = vec![false; end];
        let mut before: Option<&Stretch> = None;
        let mut count = 0;
        for stretch in stretches {
            let continues = before.is_some_and(|before| {
                before.sequence == stretch.sequence && before.first + before.sizes.len() / 2 == stretch.first
            });
            is_start[stretch.first] = !continues;
            for (at, size) in stretch.sizes.chunks_exact(2).enumerate() {
                words[stretch.first + at] = size[0];
            }
            count += stretch.sizes.len() / 2;
            before = Some(stretch);
        }
        let by_distance =
            (0..DISTANCE_MAX).map(|distance| (-(distance as f32) / REACH_WORDS).exp()).collect();
        let mut scores = WindowScores {
            words,
            is_start,
            scores: vec![0.0; end],
            has_term: vec![false; end],
            frequency: vec![0.0; end],
            by_distance,
            texts: count.max(population) as f32,
            mean_length: 1.0,
        };
        scores.mean_length = scores.measure_mean_length(count);
        scores
    }

    /// Mean length of a window, from a sample of the texts.
    fn measure_mean_length(&self, count: usize) -> f32 {
        let step = (count / 4_096).max(1);
        let sample = (0..self.words.len()).step_by(step).filter(|text| self.words[*text] > 0);
        let (sum, sampled) =
            sample.fold((0.0, 0), |(sum, sampled), text| (sum + self.window_length(text), sampled + 1));
        if sampled == 0 { 1.0 } else { sum / sampled as f32 }
    }

    /// Calls `visit` with each text of a window and its weight.
    fn each_neighbor(&self, text: usize, mut visit: impl FnMut(usize, f32)) {
        visit(text, 1.0);
        let own = usize::from(self.words[text]) / 2;
        let (mut at, mut distance) = (text, own);
        while at > 0 && !self.is_start[at] && self.words[at - 1] > 0 {
            at -= 1;
            let half = usize::from(self.words[at]) / 2;
            let Some(weight) = self.by_distance.get(distance + half) else { break };
            visit(at, *weight);
            distance += 2 * half;
        }
        (at, distance) = (text + 1, own);
        while at < self.words.len() && !self.is_start[at] && self.words[at] > 0 {
            let half = usize::from(self.words[at]) / 2;
            let Some(weight) = self.by_distance.get(distance + half) else { break };
            visit(at, *weight);
            distance += 2 * half;
            at += 1;
        }
    }

    fn window_length(&self, text: usize) -> f32 {
        let mut length = 0.0;
        self.each_neighbor(text, |at, weight| length += weight * f32::from(self.words[at]));
        length
    }

    /// Adds a term, by the texts that contain it.
    pub(super) fn add_term(&mut self, texts: &[usize], weight: f32) {
        let texts: Vec<usize> = texts
            .iter()
            .copied()
            .filter(|text| self.words.get(*text).is_some_and(|words| *words > 0))
            .collect();
        let count = texts.len() as f32;
        let rarity = weight * ((self.texts - count + 0.5).max(0.5) / (count + 0.5)).ln_1p();
        let mut touched = Vec::new();
        let mut frequency = std::mem::take(&mut self.frequency);
        for text in texts {
            self.has_term[text] = true;
            self.each_neighbor(text, |at, weight| {
                if frequency[at] == 0.0 {
                    touched.push(at);
                }
                frequency[at] += weight;
            });
        }
        for text in touched {
            let length = self.window_length(text) / self.mean_length;
            let found = frequency[text];
            let norm = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
            self.scores[text] += rarity * found * (SATURATION + 1.0) / (found + norm);
            frequency[text] = 0.0;
        }
        self.frequency = frequency;
    }

    /// First and last number of a text and its neighbors.
    pub(super) fn neighborhood(&self, text: usize) -> (usize, usize) {
        let is_start = |text: usize| self.is_start.get(text).copied().unwrap_or(true);
        (text - usize::from(!is_start(text)), text + usize::from(!is_start(text + 1)))
    }

    /// Restricts the texts that are found to these.
    pub(super) fn restrict(&mut self, texts: &[usize]) {
        self.has_term.fill(false);
        texts.iter().for_each(|text| self.has_term[*text] = true);
    }

    /// The best texts with their scores, best first.
    pub(super) fn best(
        &mut self,
        stretches: &[Stretch],
        factor: impl Fn(&Stretch) -> f32,
        kind_weights: &[f32],
        limit: usize,
    ) -> Vec<(usize, f32)> {
        let mut found = Vec::new();
        for stretch in stretches {
            let factor = factor(stretch);
            for (at, size) in stretch.sizes.chunks_exact(2).enumerate() {
                let text = stretch.first + at;
                let weight = kind_weights.get(usize::from(size[1])).copied().unwrap_or(1.0);
                self.scores[text] *= factor * weight;
                if self.has_term[text] && self.scores[text] > 0.0 {
                    found.push((text, self.scores[text]));
                }
            }
        }
        let by_score = |one: &(usize, f32), other: &(usize, f32)| {
            other.1.total_cmp(&one.1).then_with(|| other.0.cmp(&one.0))
        };
        if found.len() > limit && limit > 0 {
            found.select_nth_unstable_by(limit - 1, by_score);
            found.truncate(limit);
        }
        found.sort_by(by_score);
        found
    }
}
