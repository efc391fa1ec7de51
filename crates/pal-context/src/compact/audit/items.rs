//! Everything that must survive besides the user's words: the last error, open tasks, written files; and what the
//! summary made up.

use pal_extract::{Facts, Trouble, cut, error_line, open_items};

use super::AuditInput;

/// What was found.
pub(super) struct Checked {
    pub paths: Count,
    pub todos: Count,
    pub error_kept: Option<bool>,
    pub repairs: String,
}

/// How many there are, how many the summary holds, how many were appended.
#[derive(Default)]
pub(super) struct Count {
    pub all: u64,
    pub kept: u64,
    pub repaired: u64,
}

/// Lines that may be appended, while there is room.
struct Repairs<'a> {
    input: &'a AuditInput<'a>,
    left: u64,
    is_full: bool,
    lines: String,
}

impl Repairs<'_> {
    /// Appends a line that is missing, if it fits. What is not missing takes its room, too: what is guaranteed must not
    /// depend on the summary.
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

/// Checks what is not the user's words.
pub(super) fn check(input: &AuditInput<'_>, invented: &[String]) -> Checked {
    let frame = (input.estimate)(&more(1_000_000));
    let left = input.budgets.repair_tokens.saturating_sub(frame);
    let mut repairs = Repairs { input, left, is_full: false, lines: String::new() };
    let sight = Sight::new(input);
    if !invented.is_empty() {
        repairs.add(&not_seen(invented), true);
    }
    let error_kept = input.facts.troubles.last().map(|trouble| {
        let is_kept = sight.holds_error(trouble);
        repairs.add(&format!("- The last error: {}\n", cut(&error_line(trouble), 800)), !is_kept);
        is_kept
    });
    let mut todos = Count::default();
    let mut todo = |line: &str, is_kept: bool| {
        let is_repaired = repairs.add(line, !is_kept);
        todos.all += 1;
        todos.kept += u64::from(is_kept);
        todos.repaired += u64::from(is_repaired);
    };
    for task in input.facts.open_tasks() {
        let what = task.what.split_whitespace().collect::<Vec<_>>().join(" ");
        todo(&format!("- An open task, {}: {what}\n", task.status), sight.holds_item(&what));
    }
    for item in open_before(input.facts) {
        let line = format!("- Open in the summary before and not named in this one: {}\n", cut(item, 300));
        todo(&line, sight.holds_item(item));
    }
    let mut paths = Count::default();
    let mut beyond = 0;
    for file in input.facts.written() {
        let is_kept = sight.holds_path(&file.path);
        let is_repaired = repairs.add(&format!("- Edited: {}\n", file.path), !is_kept);
        beyond += u64::from(repairs.is_full);
        paths.all += 1;
        paths.kept += u64::from(is_kept);
        paths.repaired += u64::from(is_repaired);
    }
    // The count follows from the budget, not from the summary, or the next audit would count anew.
    let more = more(beyond);
    if paths.all > paths.kept + paths.repaired && !input.summary.contains(&more) {
        repairs.lines.push_str(&more);
    }
    Checked { paths, todos, error_kept, repairs: repairs.lines }
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

/// The open items of the summary before that no list of tasks has spoken of since.
fn open_before(facts: &Facts) -> Vec<&str> {
    let items = facts.earlier.last().map(|earlier| open_items(earlier)).unwrap_or_default();
    let is_known = |item: &str| facts.tasks.iter().any(|task| same(&task.what, item));
    items.into_iter().filter(|item| !is_known(item)).collect()
}

fn same(one: &str, other: &str) -> bool {
    plain(one) == plain(other)
}

/// A text as it is compared: in lower case, with single spaces, without a stop at its end.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").trim_end_matches(['.', ':', ';']).to_lowercase()
}

/// What the model sees after the compaction.
struct Sight<'a> {
    facts: &'a Facts,
    texts: Vec<&'a str>,
    plain: Vec<String>,
}

impl<'a> Sight<'a> {
    fn new(input: &AuditInput<'a>) -> Sight<'a> {
        let texts: Vec<&str> = input.kept.iter().copied().chain([input.summary]).collect();
        let plain = texts.iter().flat_map(|text| text.lines()).map(plain).collect();
        Sight { facts: input.facts, texts, plain }
    }

    /// Whether one of an error's lines is there.
    fn holds_error(&self, trouble: &Trouble) -> bool {
        const ENOUGH: usize = 80;
        trouble.lines.iter().any(|line| {
            let line = line.get(..line.floor_char_boundary(ENOUGH)).unwrap_or_default().trim();
            let line = line.split(" [… ").next().unwrap_or_default();
            !line.is_empty() && self.texts.iter().any(|text| text.contains(line))
        })
    }

    /// Whether some line says what an item says: in its words, or in most of the words that carry it.
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

    /// Whether a path is named: whole, or by so much of its end that no other file of the session is meant.
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

/// Whether a text names a path, and not only a longer one that ends or begins with it.
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
