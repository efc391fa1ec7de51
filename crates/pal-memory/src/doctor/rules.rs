//! Rules over memories: what is said twice, what is contradicted, what leads nowhere. Pure: what is there is asked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use regex::Regex;

use super::{Finding, Trouble};
use crate::topic::Topic;

/// How much of the words of two texts must be the same for one to be a copy of the other.
const SAME_SHARE: f64 = 0.85;
/// How much of what two rules are about must be the same for them to be about one thing.
const SUBJECT_SHARE: f64 = 0.6;
/// Words that a text must have to be compared.
const WORDS_MIN: usize = 5;
/// A word that stands in more memories than this says nothing about two of them.
const COMMON: usize = 50;

/// A memory that is looked at.
pub(super) struct Subject {
    file: String,
    topic: Topic,
    words: BTreeSet<String>,
    claims: Vec<Claim>,
}

impl Subject {
    pub(super) fn new(slug: &str, topic: Topic) -> Subject {
        let text = format!("{}\n{}", topic.head.description, topic.body);
        let words = words(&topic.body).collect();
        Subject { file: format!("{slug}.md"), claims: claims(&text), words, topic }
    }
}

/// Something that a memory says: do this, do not, or that something has a value.
#[derive(PartialEq, Eq, Debug)]
enum Claim {
    /// What is to be done, or not to be done.
    Rule { is_for: bool, about: BTreeSet<String>, said: String },
    /// What has which value.
    Value { key: String, value: String },
}

/// Memories that say the same.
pub(super) fn duplicates(subjects: &[Subject]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (one, other) in pairs(subjects) {
        let description = |subject: &Subject| words(&subject.topic.head.description).collect::<Vec<_>>();
        let (mine, theirs) = (description(one), description(other));
        let why = match () {
            () if !mine.is_empty() && mine == theirs => "have the same description",
            () if one.words.len() >= WORDS_MIN && overlap(&one.words, &other.words) >= SAME_SHARE => {
                "have nearly the same text"
            }
            () => continue,
        };
        findings.push(Finding::new(
            Trouble::Duplicate,
            &[&one.file, &other.file],
            format!("{} and {} {why}", one.file, other.file),
            format!("keep one: `pal memory rm {}`", other.file.trim_end_matches(".md")),
        ));
    }
    findings
}

/// Memories that say the opposite of one another.
pub(super) fn contradictions(subjects: &[Subject]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (one, other) in pairs(subjects) {
        let opposed = one
            .claims
            .iter()
            .find_map(|mine| other.claims.iter().find_map(|theirs| opposition(mine, theirs)));
        if let Some(what) = opposed {
            findings.push(Finding::new(
                Trouble::Contradiction,
                &[&one.file, &other.file],
                format!("{} and {}: {what}", one.file, other.file),
                "decide which holds, and change or remove the other: `pal memory edit`, `pal memory rm`",
            ));
        }
    }
    findings
}

/// All pairs that share a word which is not in everything, each once.
fn pairs(subjects: &[Subject]) -> Vec<(&Subject, &Subject)> {
    let mut by_word: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, subject) in subjects.iter().enumerate() {
        let head = words(&subject.topic.head.description).chain(words(&subject.topic.head.name));
        for word in head.chain(subject.words.iter().cloned()).collect::<BTreeSet<_>>() {
            by_word.entry(word).or_default().push(at);
        }
    }
    let mut pairs: BTreeSet<(usize, usize)> = BTreeSet::new();
    for places in by_word.values().filter(|places| places.len() <= COMMON) {
        for (at, one) in places.iter().enumerate() {
            pairs.extend(places.iter().skip(at + 1).map(|other| (*one, *other)));
        }
    }
    pairs.into_iter().filter_map(|(one, other)| Some((subjects.get(one)?, subjects.get(other)?))).collect()
}

fn opposition(mine: &Claim, theirs: &Claim) -> Option<String> {
    match (mine, theirs) {
        (
            Claim::Rule { is_for, about, said },
            Claim::Rule { is_for: other_for, about: other_about, said: other_said },
        ) if is_for != other_for && overlap(about, other_about) >= SUBJECT_SHARE => {
            Some(format!("“{said}” against “{other_said}”"))
        }
        (Claim::Value { key, value }, Claim::Value { key: other_key, value: other }) if key == other_key => {
            (value != other).then(|| format!("{key} is {value} in one and {other} in the other"))
        }
        _ => None,
    }
}

const AGAINST: &str = r"never|do not|don't|don’t|must not|should not|avoid|stop|nie|niemals|nicht|kein(?:e|en)?|jamais|ne pas|nunca";
const FOR: &str = r"always|use|prefer|must|should|do|immer|toujours|siempre|verwende|benutze";

static RULE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?i)^\W*(?:please |you |we |i )*(?:(?P<against>{AGAINST})|(?P<for>{FOR}))\b(?P<about>.*)$"
    ))
    .ok()
});

static VALUE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\W*(?:the )?([\p{L}][\p{L}\d _-]{2,40}?)\W*(?::| is| are| =|=| ist| on)\s+[*`]*(\d[\w:.,/-]*|v\d[\w.]*)").ok()
});

/// What a text says to do, not to do, and what has which value; sentence by sentence.
fn claims(text: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    for sentence in text.split(['\n', '!', ';']).flat_map(|line| line.split(". ")) {
        let sentence = sentence.trim();
        if let Some(found) = RULE.as_ref().and_then(|rule| rule.captures(sentence)) {
            let about: BTreeSet<String> = words(&found["about"]).filter(|word| !is_filler(word)).collect();
            if !about.is_empty() {
                let is_for = found.name("for").is_some() && !is_negated(&found["about"]);
                claims.push(Claim::Rule { is_for, about, said: sentence.trim_end_matches('.').to_owned() });
            }
        } else if let Some(found) = VALUE.as_ref().and_then(|value| value.captures(sentence)) {
            let key = words(&found[1]).filter(|word| !is_filler(word)).collect::<Vec<_>>().join(" ");
            if !key.is_empty() {
                let value = found[2].trim_end_matches(['.', ',']).to_lowercase();
                claims.push(Claim::Value { key, value });
            }
        }
    }
    claims
}

fn is_negated(about: &str) -> bool {
    words(about).next().is_some_and(|word| matches!(word.as_str(), "not" | "never" | "nicht" | "nie"))
}

/// Words that two rules may share without being about the same.
fn is_filler(word: &str) -> bool {
    const FILLERS: &[&str] = &[
        "the", "and", "for", "with", "this", "that", "when", "use", "using", "used", "not", "our", "all",
        "any", "der", "die", "das", "und", "les", "des", "you", "are", "run", "always", "never", "from",
        "into", "please", "here",
    ];
    FILLERS.contains(&word)
}

/// A text's words, small.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let parts = text.split(|c: char| !c.is_alphanumeric());
    parts.filter(|word| word.chars().count() > 1 || !word.is_ascii()).map(str::to_lowercase)
}

/// The share of words that two sets have in common.
fn overlap(one: &BTreeSet<String>, other: &BTreeSet<String>) -> f64 {
    let both = one.intersection(other).count();
    let all = one.len() + other.len() - both;
    if all == 0 { 0.0 } else { both as f64 / all as f64 }
}

static LINK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\]\(([^)\s]+\.md)\)|\[\[([^\]|]+)\]\]").ok());

/// Links of a memory to other files of the directory that are not there.
pub(super) fn links(subject: &Subject, is_there: &dyn Fn(&str) -> bool) -> Vec<Finding> {
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
        Finding::new(
            Trouble::Dangling,
            &[&subject.file, &file],
            format!("{} links to {file}, which is not there", subject.file),
            format!("`pal memory edit {}`", subject.file.trim_end_matches(".md")),
        )
    })
    .collect()
}

static PATH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:^|[\s`(])((?:\./)?[\w.-]+(?:/[\w.-]+)*/[\w.-]*\.[A-Za-z]{1,6}|(?:\./)?[\w.-]+(?:/[\w.-]+)+/?)(?:[:#`),.;]|\s|$)")
        .ok()
});

/// Paths of the project that a memory names and that are not there any more. What never looked like a path of the project is
/// not asked for: only those in code quotes, or whose file has an ending.
pub(super) fn paths(subject: &Subject, is_there: &dyn Fn(&str) -> bool) -> Option<Finding> {
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
        Finding::new(
            Trouble::StalePath,
            &[&subject.file],
            format!("{} names {}, not there in the project", subject.file, names.join(", ")),
            format!("bring it up to date: `pal memory edit {}`", subject.file.trim_end_matches(".md")),
        )
    })
}

/// `example.com/page` is no path of a project.
fn is_host(name: &str) -> bool {
    const ENDINGS: [&str; 9] = [".com", ".org", ".net", ".io", ".dev", ".de", ".ai", ".rs", ".app"];
    let first = name.split('/').next().unwrap_or("");
    first.len() > 3 && ENDINGS.iter().any(|ending| first.ends_with(ending))
}
