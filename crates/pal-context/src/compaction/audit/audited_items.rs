//! Audit of everything besides the user's words: the last error, open tasks, written files, and what the
//! summary invented.

use pal_extract::{ConversationFacts, ToolFailure, error_line, open_items, truncate};

use super::{AuditInput, plain};

/// Result of the check.
pub(super) struct ItemCheck {
    pub paths: ItemCount,
    pub todos: ItemCount,
    pub error_kept: Option<bool>,
    pub repairs: String,
}

/// Numbers of all items, of those in the summary and of those appended.
#[derive(Default)]
pub(super) struct ItemCount {
    pub all: u64,
    pub kept: u64,
    pub repaired: u64,
}

/// Appended lines within the budget.
struct RepairLines<'a> {
    input: &'a AuditInput<'a>,
    left: u64,
    is_full: bool,
    lines: String,
}

impl RepairLines<'_> {
    /// Appends a missing line if it fits. Present lines take room, too: the guarantee must not depend on the
    /// summary.
    fn add(&mut self, line: &str, is_missing: bool) -> bool {
        let cost = (self.input.estimate)(line);
        self.is_full = self.is_full || cost > self.left;
        let fits = !self.is_full;
        self.left -= if fits { cost } else { 0 };
        if fits && is_missing && !self.input.summary.contains(line) {
            self.lines.push_str(line);
        }
        fits && is_missing
    }
}

/// Checks all items.
pub(super) fn check(
    input: &AuditInput<'_>,
    invented_paths: &[String],
    invented_words: &[String],
) -> ItemCheck {
    let frame = (input.estimate)(&more(1_000_000));
    let left = input.budgets.repair_tokens.saturating_sub(frame);
    let mut repairs = RepairLines { input, left, is_full: false, lines: String::new() };
    let sight = VisibleTexts::new(input);
    if !invented_paths.is_empty() {
        repairs.add(&not_seen(invented_paths), true);
    }
    if !invented_words.is_empty() {
        repairs.add(&not_said(invented_words), true);
    }
    let error_kept = input.facts.failures.last().map(|trouble| {
        let is_kept = sight.holds_error(trouble);
        repairs.add(&format!("- The last error: {}\n", truncate(&error_line(trouble), 800)), !is_kept);
        is_kept
    });
    let mut todos = ItemCount::default();
    let mut todo = |line: &str, is_kept: bool| {
        let is_repaired = repairs.add(line, !is_kept);
        todos.all += 1;
        todos.kept += u64::from(is_kept);
        todos.repaired += u64::from(is_repaired);
    };
    for task in input.facts.open_tasks() {
        let what = task.text.split_whitespace().collect::<Vec<_>>().join(" ");
        todo(&format!("- An open task, {}: {what}\n", task.status), sight.holds_item(&what));
    }
    for item in open_before(input.facts) {
        let line =
            format!("- Open in the summary before and not named in this one: {}\n", truncate(item, 300));
        todo(&line, sight.holds_item(item));
    }
    let mut paths = ItemCount::default();
    let mut beyond = 0;
    for file in input.facts.written_files() {
        let is_kept = sight.holds_path(&file.path);
        let is_repaired = repairs.add(&format!("- Edited: {}\n", file.path), !is_kept);
        beyond += u64::from(repairs.is_full);
        paths.all += 1;
        paths.kept += u64::from(is_kept);
        paths.repaired += u64::from(is_repaired);
    }
    // The count depends on the budget, not on the summary, or the next audit would count differently.
    let more = more(beyond);
    if paths.all > paths.kept + paths.repaired && !input.summary.contains(&more) {
        repairs.lines.push_str(&more);
    }
    ItemCheck { paths, todos, error_kept, repairs: repairs.lines }
}

fn more(count: u64) -> String {
    format!(
        "- … and {count} more files were edited than are sure to be named here; the transcript has them\n"
    )
}

fn not_seen(invented: &[String]) -> String {
    const NAMED: usize = 12;
    let named = invented.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match invented.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("- Not seen in the session, so check before relying on it: {named}{more}\n")
}

/// Introduction of words that the user never wrote.
pub(super) const INVENTED_WORDS: &str = "- Given as the user's words, but the user never wrote them:";

fn not_said(invented: &[String]) -> String {
    const NAMED: usize = 8;
    let named = invented.iter().take(NAMED).map(|words| format!("\"{}\"", truncate(words, 160)));
    let more = match invented.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{INVENTED_WORDS} {}{more}\n", named.collect::<Vec<_>>().join(", "))
}

/// Open items of the previous summary that no newer task list mentions.
fn open_before(facts: &ConversationFacts) -> Vec<&str> {
    let items = facts.earlier_summaries.last().map(|earlier| open_items(earlier)).unwrap_or_default();
    let is_known = |item: &str| facts.tasks.iter().any(|task| same(&task.text, item));
    items.into_iter().filter(|item| !is_known(item)).collect()
}

fn same(one: &str, other: &str) -> bool {
    plain(one) == plain(other)
}

/// Texts that the model sees after the compaction.
struct VisibleTexts<'a> {
    facts: &'a ConversationFacts,
    texts: Vec<&'a str>,
    plain: Vec<String>,
}

impl<'a> VisibleTexts<'a> {
    fn new(input: &AuditInput<'a>) -> VisibleTexts<'a> {
        let texts: Vec<&str> = input.kept.iter().copied().chain([input.summary]).collect();
        let plain = texts.iter().flat_map(|text| text.lines()).map(plain).collect();
        VisibleTexts { facts: input.facts, texts, plain }
    }

    /// Returns true if one of an error's lines is present.
    fn holds_error(&self, trouble: &ToolFailure) -> bool {
        const ENOUGH: usize = 80;
        trouble.lines.iter().any(|line| {
            let line = line.get(..line.floor_char_boundary(ENOUGH)).unwrap_or_default().trim();
            let line = line.split(" [… ").next().unwrap_or_default();
            !line.is_empty() && self.texts.iter().any(|text| text.contains(line))
        })
    }

    /// Returns true if some line contains an item, verbatim or by most of its significant words.
    fn holds_item(&self, item: &str) -> bool {
        let item = plain(item);
        let carrying: Vec<&str> =
            item.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.len() > 3).collect();
        let most = |line: &str| {
            let there = carrying.iter().filter(|word| line.contains(**word)).count();
            carrying.len() > 2 && there * 4 >= carrying.len() * 3
        };
        self.plain.iter().any(|line| line.contains(&item) || most(line))
    }

    /// Returns true if a path is named: whole, or by an unambiguous suffix.
    fn holds_path(&self, path: &str) -> bool {
        let path = path.trim_start_matches("./");
        let ends = std::iter::successors(Some(path), |rest| {
            rest.split_once('/').map(|(_, shorter)| shorter).filter(|shorter| shorter.contains('/'))
        });
        ends.filter(|end| !end.is_empty()).any(|end| {
            let is_whole = end.len() == path.len();
            let is_there = self.texts.iter().any(|text| names_path(text, end, is_whole));
            is_there && (is_whole || self.is_unique(end))
        })
    }

    fn is_unique(&self, end: &str) -> bool {
        let has_end =
            |path: &str| path == end || path.strip_suffix(end).is_some_and(|rest| rest.ends_with('/'));
        self.facts.files.iter().filter(|file| has_end(&file.path)).take(2).count() == 1
    }
}

/// Returns true if a text names a path, and not only a longer one that ends or begins with it.
fn names_path(text: &str, path: &str, may_be_longer: bool) -> bool {
    let is_name = |letter: char| letter.is_alphanumeric() || "_-".contains(letter);
    memchr::memmem::find_iter(text.as_bytes(), path).any(|at| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + path.len()..).and_then(|after| after.chars().next());
        let goes_on_before =
            before.is_some_and(|letter| is_name(letter) || (letter == '/' && !may_be_longer));
        !goes_on_before && !after.is_some_and(is_name)
    })
}
