//! Rules over memories: duplicates, contradictions, dead links and paths. Pure; existence checks are passed
//! in.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use regex::Regex;

use super::{FindingKind, MemoryFinding};
use crate::memory_file::MemoryFile;

/// Minimum word overlap of two duplicate texts.
const SAME_SHARE: f64 = 0.85;
/// Minimum overlap of the subjects of two rules for them to concern the same thing.
const SUBJECT_SHARE: f64 = 0.6;
/// Minimum number of words for a comparison.
const WORDS_MIN: usize = 5;
/// Maximum number of words of a statement that counts as a rule.
const HABIT_WORDS_MAX: usize = 12;
/// Words in more memories than this are ignored when pairing.
const COMMON_WORD_MEMORIES: usize = 50;

/// A memory prepared for the rules.
pub(super) struct CheckedMemory {
    file: String,
    topic: MemoryFile,
    words: BTreeSet<String>,
    claims: Vec<MemoryClaim>,
}

impl CheckedMemory {
    pub(super) fn new(slug: &str, topic: MemoryFile) -> CheckedMemory {
        let text = format!("{}\n{}", topic.head.description, topic.body);
        let words = lowercase_words(&topic.body).collect();
        CheckedMemory { file: format!("{slug}.md"), claims: claims(&text), words, topic }
    }
}

/// A statement of a memory: a rule, or a value.
#[derive(PartialEq, Eq, Debug)]
enum MemoryClaim {
    /// An instruction to do or not to do something.
    Rule { is_for: bool, about: BTreeSet<String>, said: String },
    /// A key and its value.
    Value { key: String, value: String },
}

/// Finds memories that say the same.
pub(super) fn duplicates(subjects: &[CheckedMemory]) -> Vec<MemoryFinding> {
    let mut findings = Vec::new();
    for (one, other) in candidate_pairs(subjects) {
        let description =
            |subject: &CheckedMemory| lowercase_words(&subject.topic.head.description).collect::<Vec<_>>();
        let (mine, theirs) = (description(one), description(other));
        let why = match () {
            () if !mine.is_empty() && mine == theirs => "have the same description",
            () if one.words.len() >= WORDS_MIN
                && overlap(&one.words, &other.words) >= SAME_SHARE
                && distinct_words(&one.topic.body) == distinct_words(&other.topic.body) =>
            {
                "have nearly the same text"
            }
            () => continue,
        };
        findings.push(MemoryFinding::new(
            FindingKind::Duplicate,
            &[&one.file, &other.file],
            format!("{} and {} {why}", one.file, other.file),
            format!("keep one: `pal memory rm {}`", other.file.trim_end_matches(".md")),
        ));
    }
    findings
}

/// Finds memories that contradict each other.
pub(super) fn contradictions(subjects: &[CheckedMemory]) -> Vec<MemoryFinding> {
    let mut findings = Vec::new();
    for (one, other) in candidate_pairs(subjects) {
        let opposed = one
            .claims
            .iter()
            .find_map(|mine| other.claims.iter().find_map(|theirs| describe_opposition(mine, theirs)));
        if let Some(what) = opposed {
            findings.push(MemoryFinding::new(
                FindingKind::Contradiction,
                &[&one.file, &other.file],
                format!("{} and {}: {what}", one.file, other.file),
                "decide which holds, and change or remove the other: `pal memory edit`, `pal memory rm`",
            ));
        }
    }
    findings
}

/// Pairs of memories that share an uncommon word, each once.
fn candidate_pairs(subjects: &[CheckedMemory]) -> Vec<(&CheckedMemory, &CheckedMemory)> {
    let mut by_word: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, subject) in subjects.iter().enumerate() {
        let head =
            lowercase_words(&subject.topic.head.description).chain(lowercase_words(&subject.topic.head.name));
        for word in head.chain(subject.words.iter().cloned()).collect::<BTreeSet<_>>() {
            by_word.entry(word).or_default().push(at);
        }
    }
    let mut pairs: BTreeSet<(usize, usize)> = BTreeSet::new();
    for places in by_word.values().filter(|places| places.len() <= COMMON_WORD_MEMORIES) {
        for (at, one) in places.iter().enumerate() {
            pairs.extend(places.iter().skip(at + 1).map(|other| (*one, *other)));
        }
    }
    pairs.into_iter().filter_map(|(one, other)| Some((subjects.get(one)?, subjects.get(other)?))).collect()
}

fn describe_opposition(mine: &MemoryClaim, theirs: &MemoryClaim) -> Option<String> {
    match (mine, theirs) {
        (
            MemoryClaim::Rule { is_for, about, said },
            MemoryClaim::Rule { is_for: other_for, about: other_about, said: other_said },
        ) if is_for != other_for && overlap(about, other_about) >= SUBJECT_SHARE => {
            Some(format!("“{said}” against “{other_said}”"))
        }
        (MemoryClaim::Value { key, value }, MemoryClaim::Value { key: other_key, value: other })
            if key == other_key =>
        {
            (value != other).then(|| format!("{key} is {value} in one and {other} in the other"))
        }
        _ => None,
    }
}

const NEGATIVE_WORDS: &str = r"never|do not|don't|don’t|must not|should not|avoid|stop|nie|niemals|nicht|kein(?:e|en)?|jamais|ne pas|nunca";
const FOR: &str = r"always|use|prefer|must|should|do|immer|toujours|siempre|verwende|benutze";

static RULE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?i)^\W*(?:please |you |we |i )*(?:(?P<against>{NEGATIVE_WORDS})|(?P<for>{FOR}))\b(?P<about>.*)$"
    ))
    .ok()
});

/// A statement of what the project does, such as `we release on Fridays`: as good as a rule for it.
static HABIT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)^\W*(?:we|i|wir|ich|nous|je)\s+(?P<about>[^?]{8,100})$").ok());

static VALUE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\W*(?:the )?([\p{L}][\p{L}\d _-]{2,40}?)\W*(?::| is| are| =|=| ist| on)\s+[*`]*(\d[\w:.,/-]*|v\d[\w.]*)").ok()
});

/// Extracts the rules and values of a text, sentence by sentence.
fn claims(text: &str) -> Vec<MemoryClaim> {
    let mut claims = Vec::new();
    for sentence in text.split(['\n', '!', ';']).flat_map(|line| line.split(". ")) {
        let sentence = sentence.trim();
        if let Some(found) = RULE.as_ref().and_then(|rule| rule.captures(sentence)) {
            let about: BTreeSet<String> =
                lowercase_words(&found["about"]).filter(|word| !is_filler(word)).collect();
            if !about.is_empty() {
                let is_for = found.name("for").is_some() && !is_negated(&found["about"]);
                claims.push(MemoryClaim::Rule {
                    is_for,
                    about,
                    said: sentence.trim_end_matches('.').to_owned(),
                });
            }
        } else if let Some(found) = VALUE.as_ref().and_then(|value| value.captures(sentence)) {
            let key =
                lowercase_words(&found[1]).filter(|word| !is_filler(word)).collect::<Vec<_>>().join(" ");
            if !key.is_empty() {
                let value = found[2].trim_end_matches(['.', ',']).to_lowercase();
                claims.push(MemoryClaim::Value { key, value });
            }
        } else if let Some(found) = HABIT.as_ref().and_then(|habit| habit.captures(sentence)) {
            let words: Vec<String> = lowercase_words(&found["about"]).collect();
            let about: BTreeSet<String> = words.iter().filter(|word| !is_filler(word)).cloned().collect();
            // A statement of several parts is no rule about one thing.
            if about.len() >= 2 && words.len() <= HABIT_WORDS_MAX {
                let said = sentence.trim_end_matches('.').to_owned();
                claims.push(MemoryClaim::Rule { is_for: !has_negation(&words), about, said });
            }
        }
    }
    claims
}

/// Returns true if a statement says that something is not done.
fn has_negation(words: &[String]) -> bool {
    words.iter().any(|word| {
        matches!(
            word.as_str(),
            "not" | "never" | "no" | "nicht" | "nie" | "kein" | "keine" | "jamais" | "pas"
        ) || matches!(word.as_str(), "don" | "doesn" | "won" | "stopped")
    })
}

fn is_negated(about: &str) -> bool {
    lowercase_words(about)
        .next()
        .is_some_and(|word| matches!(word.as_str(), "not" | "never" | "nicht" | "nie"))
}

/// Words that do not count as the subject of a rule.
fn is_filler(word: &str) -> bool {
    const FILLERS: &[&str] = &[
        "the", "and", "for", "with", "this", "that", "when", "use", "using", "used", "not", "our", "all",
        "any", "a", "d", "i", "m", "s", "t", "an", "on", "in", "at", "to", "of", "we", "it", "is", "der",
        "die", "das", "und", "les", "des", "you", "are", "run", "always", "never", "from", "into", "please",
        "here",
    ];
    FILLERS.contains(&word)
}

/// Lower-case words of a text. Single letters and digits count: they may be all that differs.
fn lowercase_words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Words with digits, and single letters: texts that differ in them say different things.
fn distinct_words(text: &str) -> BTreeSet<String> {
    let is_distinct = |word: &String| {
        word.chars().any(|letter| letter.is_ascii_digit()) || (word.len() == 1 && !is_filler(word))
    };
    lowercase_words(text).filter(is_distinct).collect()
}

/// Jaccard similarity of two word sets.
fn overlap(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    let both = one.intersection(other).count();
    let all = one.len() + other.len() - both;
    if all == 0 { 0.0 } else { both as f64 / all as f64 }
}

static LINK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\]\(([^)\s]+\.md)\)|\[\[([^\]|]+)\]\]").ok());

/// Finds links to files that do not exist.
pub(super) fn links(subject: &CheckedMemory, is_there: &dyn Fn(&str) -> bool) -> Vec<MemoryFinding> {
    let found = LINK.iter().flat_map(|link| link.captures_iter(&subject.topic.body));
    let targets: BTreeSet<String> = found
        .filter_map(|captures| match (captures.get(1), captures.get(2)) {
            (Some(file), _) => Some(file.as_str().trim_start_matches("./").to_owned()),
            (None, Some(name)) => Some(format!("{}.md", name.as_str().trim_end_matches(".md"))),
            _ => None,
        })
        .filter(|file| !file.contains(['/', ':']))
        .collect();
    let gone = targets.into_iter().filter(|file| !is_there(file));
    gone.map(|file| {
        MemoryFinding::new(
            FindingKind::Dangling,
            &[&subject.file, &file],
            format!("{} links to {file}, which does not exist", subject.file),
            format!("`pal memory edit {}`", subject.file.trim_end_matches(".md")),
        )
    })
    .collect()
}

static PATH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:^|[\s`(])((?:\./)?[\w.-]+(?:/[\w.-]+)*/[\w.-]*\.[A-Za-z]{1,6}|(?:\./)?[\w.-]+(?:/[\w.-]+)+/?)(?:[:#`),.;]|\s|$)")
        .ok()
});

/// Finds project paths that no longer exist. Considers only paths in code quotes or with a file extension.
pub(super) fn paths(subject: &CheckedMemory, is_there: &dyn Fn(&str) -> bool) -> Option<MemoryFinding> {
    let mut gone: BTreeMap<String, ()> = BTreeMap::new();
    for captures in PATH.iter().flat_map(|path| path.captures_iter(&subject.topic.body)) {
        let Some(path) = captures.get(1) else { continue };
        let name = path.as_str().trim_end_matches(['.', ',', ':']).trim_start_matches("./");
        let is_quoted = subject.topic.body[..path.start()].ends_with('`');
        let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or("");
        let has_ending = last.rsplit_once('.').is_some_and(|(stem, ending)| {
            !stem.is_empty() && ending.chars().all(|c| c.is_ascii_alphabetic())
        });
        let is_meant = (is_quoted || has_ending) && !name.contains("..") && !is_host(name);
        if is_meant && !is_there(name) {
            gone.insert(name.to_owned(), ());
        }
    }
    let names: Vec<String> = gone.into_keys().collect();
    (!names.is_empty()).then(|| {
        MemoryFinding::new(
            FindingKind::StalePath,
            &[&subject.file],
            format!("{} names {}, which the project does not have", subject.file, names.join(", ")),
            format!("update it: `pal memory edit {}`", subject.file.trim_end_matches(".md")),
        )
    })
}

/// Recognizes host names, such as `example.com/page`.
fn is_host(name: &str) -> bool {
    const ENDINGS: [&str; 9] = [".com", ".org", ".net", ".io", ".dev", ".de", ".ai", ".rs", ".app"];
    let first = name.split('/').next().unwrap_or("");
    first.len() > 3 && ENDINGS.iter().any(|ending| first.ends_with(ending))
}
