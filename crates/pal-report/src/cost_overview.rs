//! Cost of many sessions of all agents together: by day, week, month, project, model, agent or session.
//!
//! Prices are applied here, to the token counts of the index, so that a changed price list needs no second reading. A
//! response that several files repeat counts once. Nothing unknown is counted as zero: responses without usage, models
//! without prices, estimated output and simulated money are figures of their own.

mod cache_misses;
mod calendar;
mod overview_csv;
mod overview_json;
mod overview_text;
mod priced_models;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use pal_context::{DropTotals, PromptTokens};
use pal_import::{SessionFormat, UsageFlags, UsageRow, UsageScan};
use pal_model::ModelCatalog;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::usage_index::{IndexedUsage, UsageFiles};
use cache_misses::{CacheMiss, MissDetector};
use calendar::DayCache;
pub use calendar::{DateRange, parse_day};
use priced_models::PricedModels;

/// Maximum number of keys that rows are grouped by.
const KEYS_MAX: usize = 4;

/// Key that requests are grouped by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum OverviewKey {
    /// Day in the given time zone.
    Day,
    /// Week, by its Monday.
    Week,
    /// Month.
    Month,
    /// Repository or directory that the session worked in.
    Project,
    /// Model that answered.
    Model,
    /// Program that sent the request.
    Agent,
    /// Session file.
    Session,
}

impl OverviewKey {
    /// Name in options, tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            OverviewKey::Day => "day",
            OverviewKey::Week => "week",
            OverviewKey::Month => "month",
            OverviewKey::Project => "project",
            OverviewKey::Model => "model",
            OverviewKey::Agent => "agent",
            OverviewKey::Session => "session",
        }
    }

    fn is_time(self) -> bool {
        matches!(self, OverviewKey::Day | OverviewKey::Week | OverviewKey::Month)
    }
}

/// Options of a [`CostOverview`].
#[derive(Clone, Debug)]
pub struct OverviewOptions<'a> {
    /// Keys of the groups, outermost first.
    pub keys: &'a [OverviewKey],
    /// Days that count.
    pub range: DateRange,
    /// Time zone of days.
    pub time_zone: TimeZone,
    /// Model cards with prices.
    pub cards: &'a ModelCatalog,
}

/// Sums over responses.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct OverviewTotals {
    /// Answered requests.
    pub requests: u64,
    /// Of these, requests without reported prompt tokens.
    pub unreported: u64,
    /// Requests to models without a known price.
    pub unpriced: u64,
    /// Requests whose output tokens are estimated.
    pub estimated: u64,
    /// Requests that a simulator answered.
    pub simulated: u64,
    /// Prompt tokens by kind.
    pub prompt: PromptTokens,
    /// Output tokens, estimates included.
    pub output: u64,
    /// Of these, tokens that no transcript records: estimate less placeholder.
    pub output_added: u64,
    /// Cost in US dollars of all requests with a price; simulated ones left out.
    pub cost: f64,
    /// Of this, the cost of the output tokens that no transcript records.
    pub cost_added: f64,
    /// Cost that the simulator computed; not spent.
    pub cost_simulated: f64,
    /// Saving by the cache, against the same requests without one.
    pub saved: f64,
    /// Unexpected cache misses.
    pub misses: DropTotals,
}

impl OverviewTotals {
    fn add(&mut self, other: &OverviewTotals) {
        self.requests += other.requests;
        self.unreported += other.unreported;
        self.unpriced += other.unpriced;
        self.estimated += other.estimated;
        self.simulated += other.simulated;
        self.prompt.read += other.prompt.read;
        self.prompt.written += other.prompt.written;
        self.prompt.written_1h += other.prompt.written_1h;
        self.prompt.uncached += other.prompt.uncached;
        self.output += other.output;
        self.output_added += other.output_added;
        self.cost += other.cost;
        self.cost_added += other.cost_added;
        self.cost_simulated += other.cost_simulated;
        self.saved += other.saved;
        add_drops(&mut self.misses, &other.misses);
    }

    /// Cost; `None` if no request has a price.
    pub fn known_cost(&self) -> Option<f64> {
        (self.requests > self.unreported + self.unpriced + self.simulated).then_some(self.cost)
    }
}

fn add_drops(sum: &mut DropTotals, other: &DropTotals) {
    sum.drops += other.drops;
    sum.tokens += other.tokens;
    sum.cost += other.cost;
    sum.unpriced += other.unpriced;
}

/// A group of requests with its sums.
#[derive(Clone, PartialEq, Debug)]
pub struct OverviewGroup {
    /// Values of the keys, in their order.
    pub values: Vec<String>,
    /// Sums.
    pub totals: OverviewTotals,
}

/// Cost of many sessions.
#[derive(Clone, Debug)]
pub struct CostOverview {
    /// Keys of the groups.
    pub keys: Vec<OverviewKey>,
    /// Groups: by time oldest first, otherwise the most expensive first.
    pub groups: Vec<OverviewGroup>,
    /// Sums of all groups.
    pub all: OverviewTotals,
    /// Cache misses by cause, the most expensive first; expected ones under `expected`.
    pub misses: Vec<(&'static str, DropTotals)>,
    /// Requests by model without a known price.
    pub unpriced_models: BTreeMap<String, u64>,
    /// Facts about the files that were read.
    pub sources: OverviewSources,
}

/// Facts about the files behind an overview.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OverviewSources {
    /// Sessions with at least one request that counts.
    pub sessions: u64,
    /// Responses that another file has, too; counted once.
    pub repeated: u64,
    /// Responses without a time; left out if days are chosen.
    pub undated: u64,
    /// Files that were deleted since they were read.
    pub deleted_files: u64,
    /// Files that no known agent wrote.
    pub unknown_files: u64,
    /// Lines that could not be read.
    pub bad_lines: u64,
    /// First and last day with a request.
    pub days: Option<(String, String)>,
}

impl CostOverview {
    /// Sums up the usage of files.
    pub fn new(found: &UsageFiles, options: &OverviewOptions<'_>) -> CostOverview {
        let mut builder = OverviewBuilder::new(options);
        builder.sources.unknown_files = found.unknown_files.len() as u64;
        let originals = original_sessions(&found.files);
        for file in in_order(&found.files) {
            builder.file(file, &originals);
        }
        builder.finish()
    }
}

/// Files by their first response, then by the ids of their sessions, which sort by time: a copy follows its original, in
/// whatever directory it is.
fn in_order(files: &[IndexedUsage]) -> Vec<&IndexedUsage> {
    let first = |file: &IndexedUsage| {
        let rows = file.scan.as_ref().map_or(&[][..], |scan| &scan.rows);
        rows.iter().map(|row| row.at_ms).filter(|at| *at != 0).min().unwrap_or(i64::MAX)
    };
    let mut ordered: Vec<(i64, &IndexedUsage)> = files.iter().map(|file| (first(file), file)).collect();
    ordered.sort_by_cached_key(|(at, file)| {
        let session = session_folder(&file.path).file_name().map(OsString::from);
        (*at, session, file.path.clone())
    });
    ordered.into_iter().map(|(_, file)| file).collect()
}

/// Sessions of other agents whose own files are among the sources: imported copies of them count nothing again.
fn original_sessions(files: &[IndexedUsage]) -> FxHashSet<(String, String)> {
    let scans = files.iter().filter_map(|file| file.scan.as_ref());
    let others = scans.filter(|scan| scan.format != SessionFormat::Palimpsest);
    others.filter_map(|scan| Some((scan.program.clone(), scan.foreign_id.clone()?))).collect()
}

/// Interned strings.
#[derive(Default)]
struct NameTable {
    names: Vec<String>,
    ids: FxHashMap<String, u32>,
}

impl NameTable {
    fn id(&mut self, name: &str) -> u32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }
}

struct OverviewBuilder<'a> {
    options: &'a OverviewOptions<'a>,
    models: PricedModels<'a>,
    days: DayCache,
    names: NameTable,
    projects: FxHashMap<String, String>,
    groups: FxHashMap<[u32; KEYS_MAX], OverviewTotals>,
    causes: FxHashMap<&'static str, DropTotals>,
    unpriced: BTreeMap<String, u64>,
    counted: FxHashSet<u64>,
    sources: OverviewSources,
    first_day: Option<jiff::civil::Date>,
    last_day: Option<jiff::civil::Date>,
}

impl<'a> OverviewBuilder<'a> {
    fn new(options: &'a OverviewOptions<'a>) -> OverviewBuilder<'a> {
        OverviewBuilder {
            options,
            models: PricedModels::new(options.cards),
            days: DayCache::new(options.time_zone.clone()),
            names: NameTable::default(),
            projects: FxHashMap::default(),
            groups: FxHashMap::default(),
            causes: FxHashMap::default(),
            unpriced: BTreeMap::new(),
            counted: FxHashSet::default(),
            sources: OverviewSources::default(),
            first_day: None,
            last_day: None,
        }
    }

    fn file(&mut self, file: &IndexedUsage, originals: &FxHashSet<(String, String)>) {
        let Some(scan) = &file.scan else { return };
        self.sources.bad_lines += scan.progress.bad_lines;
        let has_original = scan.format == SessionFormat::Palimpsest
            && scan
                .foreign_id
                .as_ref()
                .is_some_and(|id| originals.contains(&(scan.program.clone(), id.clone())));
        let models: Vec<usize> = scan.models.iter().map(|model| self.models.index(model)).collect();
        let mut detector = MissDetector::default();
        let mut is_counted = false;
        let constant = self.constant_values(file, scan);
        for row in &scan.rows {
            let model = models.get(usize::from(row.model)).copied().unwrap_or_else(|| self.models.index(""));
            let miss = detector.judge(row, model, &self.models);
            if has_original && !row.flags.has(UsageFlags::OWN) {
                continue;
            }
            if row.key != 0 && !self.counted.insert(row.key) {
                self.sources.repeated += u64::from(!row.flags.has(UsageFlags::EXTRA_PASS));
                continue;
            }
            let day = (row.at_ms != 0).then(|| self.days.day(row.at_ms));
            match day {
                Some(day) if !self.options.range.contains(day) => continue,
                None => {
                    self.sources.undated += 1;
                    if !self.options.range.is_open() {
                        continue;
                    }
                }
                _ => {}
            }
            is_counted = true;
            self.first_day = self.first_day.into_iter().chain(day).min();
            self.last_day = self.last_day.into_iter().chain(day).max();
            let key = self.group_key(&constant, row, scan, model, day);
            let totals = self.price(row, model, miss);
            self.groups.entry(key).or_default().add(&totals);
        }
        self.sources.sessions += u64::from(is_counted && !is_subagent_file(&file.path));
        self.sources.deleted_files += u64::from(is_counted && file.is_deleted);
    }

    /// Ids of the key values that are the same for all rows of a file; `u32::MAX` for the others.
    fn constant_values(&mut self, file: &IndexedUsage, scan: &UsageScan) -> [u32; KEYS_MAX] {
        let mut values = [u32::MAX; KEYS_MAX];
        for (value, key) in values.iter_mut().zip(self.options.keys) {
            *value = match key {
                OverviewKey::Project => {
                    let project = self.project(scan.cwd.as_deref());
                    self.names.id(&project)
                }
                OverviewKey::Session => self.names.id(&session_label(&file.path, scan)),
                _ => u32::MAX,
            };
        }
        values
    }

    fn project(&mut self, cwd: Option<&str>) -> String {
        let Some(cwd) = cwd else { return String::from("(unknown)") };
        if let Some(known) = self.projects.get(cwd) {
            return known.clone();
        }
        // Directories of another machine, or deleted ones, stand for themselves.
        let project = match Path::new(cwd).is_dir() {
            true => pal_project::find_project(Path::new(cwd)).display().to_string(),
            false => cwd.to_owned(),
        };
        self.projects.insert(cwd.to_owned(), project.clone());
        project
    }

    fn group_key(
        &mut self,
        constant: &[u32; KEYS_MAX],
        row: &UsageRow,
        scan: &UsageScan,
        model: usize,
        day: Option<jiff::civil::Date>,
    ) -> [u32; KEYS_MAX] {
        let mut key = *constant;
        for (value, name) in key.iter_mut().zip(self.options.keys) {
            if *value != u32::MAX {
                continue;
            }
            *value = match name {
                OverviewKey::Model => self.names.id(self.models.name(model)),
                OverviewKey::Agent => {
                    let is_pal = row.flags.has(UsageFlags::OWN);
                    self.names.id(if is_pal { "pal" } else { &scan.program })
                }
                _ => {
                    let text = day.map_or(String::from("(no date)"), |day| calendar::label(day, *name));
                    self.names.id(&text)
                }
            };
        }
        key
    }

    /// Sums of one response.
    fn price(&mut self, row: &UsageRow, model: usize, miss: Option<CacheMiss>) -> OverviewTotals {
        let is_request = !row.flags.has(UsageFlags::EXTRA_PASS);
        let is_simulated = row.flags.has(UsageFlags::SIMULATED);
        let mut totals = OverviewTotals { requests: u64::from(is_request), ..OverviewTotals::default() };
        totals.simulated = u64::from(is_request && is_simulated);
        totals.output = row.output_tokens();
        totals.output_added = totals.output - u64::from(row.output);
        totals.estimated = u64::from(row.is_estimated());
        if !row.has_prompt() {
            totals.unreported = u64::from(is_request && !is_simulated);
            return totals;
        }
        totals.prompt = PromptTokens {
            read: u64::from(row.read),
            written: u64::from(row.written - row.written_1h.min(row.written)),
            written_1h: u64::from(row.written_1h.min(row.written)),
            uncached: u64::from(row.uncached),
        };
        if let Some(miss) = miss.filter(|_| !is_simulated) {
            totals.misses = self.count_miss(&miss);
        }
        let Some(cost) = self.models.cost(row, model) else {
            if is_request && !is_simulated {
                totals.unpriced = 1;
                *self.unpriced.entry(self.models.name(model).to_owned()).or_default() += 1;
            }
            return totals;
        };
        if is_simulated {
            totals.cost_simulated = cost.total;
            return totals;
        }
        totals.cost = cost.total;
        totals.cost_added = cost.added_output;
        totals.saved = cost.without_cache - cost.total;
        totals
    }

    /// Counts a miss under its cause; returns the sums of a request with it, none if it was expected.
    fn count_miss(&mut self, miss: &CacheMiss) -> DropTotals {
        let drops = DropTotals {
            drops: 1,
            tokens: miss.tokens,
            cost: miss.cost.unwrap_or(0.0),
            unpriced: u64::from(miss.cost.is_none()),
        };
        add_drops(self.causes.entry(miss.cause).or_default(), &drops);
        if miss.cause == cache_misses::EXPECTED { DropTotals::default() } else { drops }
    }

    fn finish(self) -> CostOverview {
        let keys = self.options.keys.to_vec();
        let mut all = OverviewTotals::default();
        let mut groups: Vec<OverviewGroup> = Vec::with_capacity(self.groups.len());
        for (key, totals) in &self.groups {
            all.add(totals);
            let name = |id: &u32| self.names.names.get(*id as usize).cloned().unwrap_or_default();
            groups.push(OverviewGroup {
                values: key[..keys.len()].iter().map(name).collect(),
                totals: *totals,
            });
        }
        sort_groups(&keys, &mut groups);
        let mut misses: Vec<(&'static str, DropTotals)> = self.causes.into_iter().collect();
        misses.sort_by(|(name, one), (other_name, other)| {
            other.cost.total_cmp(&one.cost).then(other.tokens.cmp(&one.tokens)).then(name.cmp(other_name))
        });
        let days = self.first_day.zip(self.last_day);
        let days = days.map(|(first, last)| (first.to_string(), last.to_string()));
        CostOverview {
            keys,
            groups,
            all,
            misses,
            unpriced_models: self.unpriced,
            sources: OverviewSources { days, ..self.sources },
        }
    }
}

/// Sorts by the keys in their order: times ascending, all others by cost, the highest first.
fn sort_groups(keys: &[OverviewKey], groups: &mut [OverviewGroup]) {
    let mut sums: FxHashMap<Vec<String>, (f64, u64)> = FxHashMap::default();
    for group in groups.iter() {
        for depth in 1..=keys.len() {
            let sum = sums.entry(group.values[..depth].to_vec()).or_default();
            sum.0 += group.totals.cost;
            sum.1 += group.totals.prompt.total() + group.totals.output;
        }
    }
    groups.sort_by(|one, other| {
        for (at, key) in keys.iter().enumerate() {
            let (left, right) = (&one.values[at], &other.values[at]);
            if left == right {
                continue;
            }
            if key.is_time() {
                return left.cmp(right);
            }
            let sum = |group: &OverviewGroup| sums.get(&group.values[..=at]).copied().unwrap_or_default();
            let (left_sum, right_sum) = (sum(one), sum(other));
            return right_sum
                .0
                .total_cmp(&left_sum.0)
                .then(right_sum.1.cmp(&left_sum.1))
                .then(left.cmp(right));
        }
        std::cmp::Ordering::Equal
    });
}

/// Name of a session in lists: its id, else the name of its file.
fn session_label(path: &Path, scan: &UsageScan) -> String {
    if scan.format == SessionFormat::Palimpsest {
        let folder = session_folder(path);
        return folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match &scan.foreign_id {
        // Subagents of a session have files of their own.
        Some(id) if stem.contains(id.as_str()) || is_subagent_file(path) => id.clone(),
        _ => stem,
    }
}

/// Directory of the session that a log of pal belongs to; that of a subagent lies inside.
fn session_folder(log: &Path) -> PathBuf {
    let folder = log.parent().unwrap_or(log);
    match folder.parent() {
        Some(agents) if agents.file_name().is_some_and(|name| name == "agents") => {
            session_folder(&agents.with_file_name("log.jsonl"))
        }
        _ => folder.to_owned(),
    }
}

fn is_subagent_file(path: &Path) -> bool {
    let above = path.parent().and_then(Path::file_name).is_some_and(|name| name == "subagents");
    above
        || path.parent().and_then(Path::parent).and_then(Path::file_name).is_some_and(|name| name == "agents")
}
