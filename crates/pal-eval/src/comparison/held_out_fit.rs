//! Figures for each session of an evaluation, fitted without its repository: no policy is judged on what it was fitted to.

use std::collections::BTreeMap;
use std::path::Path;

use pal_context::cost_aware::{FitStatistics, FittedFigures};
use pal_model::EntryBody;

use crate::replay::RecordedSession;

/// What a session adds to a fit, and the names by which its repository is known.
pub(crate) struct FitSample {
    repository_names: Vec<String>,
    statistics: FitStatistics,
}

impl FitSample {
    pub(crate) fn of(recorded: &RecordedSession) -> FitSample {
        FitSample {
            repository_names: repository_names(recorded),
            statistics: FitStatistics::of_session(recorded.entries()),
        }
    }
}

/// Names of a session's repository: the last part of the directory that it worked in, and the folder that its file is in. A folder
/// of digits is a date.
fn repository_names(recorded: &RecordedSession) -> Vec<String> {
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let started = recorded.entries().iter().find_map(|entry| match &entry.body {
        EntryBody::Session(session) => session.cwd.as_deref().and_then(|cwd| last(Path::new(cwd))),
        _ => None,
    });
    let folder = Path::new(recorded.name()).parent().and_then(last);
    let is_name = |name: &String| !name.is_empty() && !name.bytes().all(|byte| byte.is_ascii_digit());
    started.into_iter().chain(folder).filter(is_name).collect()
}

/// Groups of sessions that share a name of their repository, directly or through others: a number for each session.
fn repositories(samples: &[FitSample]) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..samples.len()).collect();
    let mut first_by_name: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, sample) in samples.iter().enumerate() {
        for name in &sample.repository_names {
            let first = *first_by_name.entry(name).or_insert(at);
            let (from, to) = (groups[at], groups[first]);
            groups.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
        }
    }
    groups
}

/// Figures for each session, fitted to the sessions of all other repositories, and the number of repositories.
pub(crate) fn fit_without_repository(samples: &[FitSample]) -> (Vec<FittedFigures>, usize) {
    let groups = repositories(samples);
    let mut by_group: BTreeMap<usize, FittedFigures> = BTreeMap::new();
    for group in &groups {
        by_group.entry(*group).or_insert_with(|| {
            let mut others = FitStatistics::default();
            let outside = groups.iter().zip(samples).filter(|(other, _)| *other != group);
            outside.for_each(|(_, sample)| others.add(&sample.statistics));
            others.figures(&FittedFigures::UNINFORMED)
        });
    }
    (groups.iter().map(|group| by_group[group]).collect(), by_group.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(names: &[&str]) -> FitSample {
        FitSample {
            repository_names: names.iter().map(|name| (*name).to_owned()).collect(),
            statistics: FitStatistics::default(),
        }
    }

    #[test]
    fn sessions_that_share_a_name_are_one_repository() {
        let samples = [
            sample(&["cli", "work"]),
            sample(&["web"]),
            sample(&["tool", "cli"]),
            sample(&["tool"]),
            sample(&[]),
            sample(&[]),
        ];
        let groups = repositories(&samples);
        assert_eq!((groups[0], groups[2], groups[3]), (groups[0], groups[0], groups[0]));
        assert!(groups[1] != groups[0] && groups[4] != groups[5] && groups[4] != groups[0]);
        let (figures, count) = fit_without_repository(&samples);
        assert_eq!((figures.len(), count), (6, 4));
        assert!(figures.iter().all(|fitted| *fitted == FittedFigures::UNINFORMED));
    }
}
