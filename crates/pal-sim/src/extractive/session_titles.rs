//! Session titles and progress lines.

use pal_extract::ConversationFacts;
use pal_extract::sentences;

/// Stop words left out of titles.
const SMALL: [&str; 42] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "can", "could", "do", "for", "from", "have",
    "how", "i", "in", "is", "it", "its", "just", "let", "me", "my", "of", "on", "or", "please", "should",
    "so", "that", "the", "there", "this", "to", "want", "we", "what", "with", "would", "you",
];

/// Session title of three to six words.
pub(crate) fn title(facts: &ConversationFacts) -> String {
    let mut words: Vec<String> = Vec::new();
    for said in facts.words.iter().take(4).flat_map(|said| sentences(&said.text).take(8)) {
        let carrying =
            said.split(|letter: char| letter.is_whitespace() || "\"'`()[]{}<>,;:!?*#".contains(letter));
        for word in carrying.map(|word| word.trim_matches(['.', '-', '/'])) {
            let is_small = word.is_empty() || SMALL.contains(&word.to_lowercase().as_str());
            if !is_small
                && word.chars().count() <= 40
                && !words.iter().any(|known| known.eq_ignore_ascii_case(word))
            {
                words.push(word.to_owned());
            }
            if words.len() == 6 {
                break;
            }
        }
        if words.len() >= 3 {
            break;
        }
    }
    for filler in ["Session", "without", "words"].iter().skip(words.len()) {
        words.push((*filler).to_owned());
    }
    let mut title = words.join(" ");
    if let Some(first) = title.chars().next() {
        title.replace_range(..first.len_utf8(), &first.to_uppercase().collect::<String>());
    }
    title
}

/// Progress line of three to five words in the present tense.
pub(crate) fn progress(facts: &ConversationFacts) -> String {
    let Some(call) = &facts.last_call else { return "Thinking about the request".to_owned() };
    let word = |text: &str| -> String {
        let word = text.split_whitespace().next().unwrap_or_default();
        cut_word(word.rsplit('/').next().unwrap_or(word))
    };
    let (name, target) = (call.name.to_lowercase(), word(&call.target));
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if target.is_empty() {
        format!("Using the {} tool", cut_word(&call.name))
    } else if has(&["edit", "write", "patch", "replace", "create"]) {
        format!("Editing the file {target}")
    } else if has(&["grep", "glob", "search", "find", "list"]) {
        format!("Searching files for {target}")
    } else if has(&["bash", "shell", "exec", "command", "run"]) {
        format!("Running the command {target}")
    } else if has(&["read", "view", "open", "cat"]) {
        format!("Reading the file {target}")
    } else {
        format!("Using {} on {target}", cut_word(&call.name))
    }
}

fn cut_word(word: &str) -> String {
    word.chars().filter(|letter| !letter.is_whitespace()).take(40).collect()
}
