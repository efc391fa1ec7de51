//! Snapshot of the repository around a directory, taken within a time limit.
//!
//! The repository is untrusted, so nothing that its configuration names is run: no file system monitor, no filters, no signature checks,
//! no hooks, no fetching of missing objects, no status of submodules (which have their own configuration). Filters that the user
//! configured for all repositories stay. Nothing is written, no lock is taken, no terminal prompt appears.

mod git_command;
mod git_config;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use pal_model::text::cut_with_ellipsis;
use pal_prompt::{GitSnapshot, GitState};

use crate::project_bounds::{find_repository, resolve_links};
use git_command::{GitCall, GitFailure, run_git};
use git_config::GitConfig;

/// Default timeout of a snapshot.
pub const GIT_TIMEOUT: Duration = Duration::from_millis(300);

/// The most characters of the list of changed files.
const STATUS_CHARACTERS_MAX: usize = 2_000;

/// The most characters of a name or a subject.
const LINE_CHARACTERS_MAX: usize = 200;

/// Number of commits in a snapshot.
const COMMITS: &str = "--max-count=5";

/// The repository around a directory as it is now, as far as git can tell within the limit.
pub fn take_git_snapshot(directory: &Path, limit: Duration) -> GitState {
    let directory = resolve_links(directory);
    if find_repository(&directory).is_none() {
        return GitState::Absent("not in a git repository".to_owned());
    }
    let call = GitCall { directory, deadline: Instant::now() + limit, overrides: Vec::new() };
    let too_slow = |what: &str| format!("{what} took longer than {} ms", limit.as_millis());
    let config = match GitConfig::read(&call) {
        Ok(config) => config,
        Err(GitFailure::Slow) => return GitState::Absent(too_slow("git")),
        Err(GitFailure::Missing) => return GitState::Absent("git is not installed".to_owned()),
        Err(GitFailure::Failed(why)) => return GitState::Absent(format!("git: {}", line(&why))),
    };
    let call = GitCall { overrides: config.overrides.clone(), ..call };
    snapshot(&call, &config, too_slow)
}

fn snapshot(call: &GitCall, config: &GitConfig, too_slow: impl Fn(&str) -> String) -> GitState {
    let (head, refs, commits, status) = thread::scope(|scope| {
        let refs = scope.spawn(|| default_branch(call, config));
        let commits = scope.spawn(|| commits(call));
        let status = scope.spawn(|| status(call));
        let head = head(call);
        (head, refs.join(), commits.join(), status.join())
    });
    let commits = match commits.unwrap_or_else(|_| Err(GitFailure::Failed(String::new()))) {
        Ok(commits) => commits,
        Err(GitFailure::Slow) => vec![format!("(unknown: {})", too_slow("git log"))],
        // A repository without commits.
        Err(_) => Vec::new(),
    };
    let branch = match head {
        Ok(name) => line(&name),
        Err(GitFailure::Slow) => return GitState::Absent(too_slow("git")),
        Err(GitFailure::Failed(why)) => return GitState::Absent(format!("git: {}", line(&why))),
        Err(GitFailure::Missing) => return GitState::Absent("git is not installed".to_owned()),
    };
    let status = match status.unwrap_or_else(|_| Err(GitFailure::Failed(String::new()))) {
        Ok(status) => status,
        Err(GitFailure::Slow) => format!("(unknown: {})", too_slow("git status")),
        Err(GitFailure::Failed(why)) => format!("(unknown: git status failed: {})", line(&why)),
        Err(GitFailure::Missing) => "(unknown: git is not installed)".to_owned(),
    };
    let (status, status_was_cut) = cut_at_line(&status);
    GitState::Snapshot(GitSnapshot {
        branch,
        default_branch: refs.ok().flatten(),
        user: config.user.as_deref().map(line),
        status,
        status_was_cut,
        commits,
    })
}

/// The name of the branch; without one, the commit that is checked out, as short as git writes it.
fn head(call: &GitCall) -> Result<String, GitFailure> {
    match run_git(call, &["symbolic-ref", "--quiet", "--short", "HEAD"]) {
        // It fails without a word where there is no branch.
        Err(GitFailure::Failed(why)) if why.is_empty() => {
            Ok(run_git(call, &["rev-parse", "--short", "HEAD"])
                .ok()
                .filter(|name| !name.trim().is_empty())
                .unwrap_or_else(|| "HEAD".to_owned()))
        }
        answer => answer,
    }
}

fn status(call: &GitCall) -> Result<String, GitFailure> {
    run_git(call, &["status", "--porcelain=v1", "--ignore-submodules=dirty"])
}

fn commits(call: &GitCall) -> Result<Vec<String>, GitFailure> {
    let arguments =
        ["log", COMMITS, "--no-show-signature", "--no-color", "--encoding=UTF-8", "--format=%h %s"];
    Ok(run_git(call, &arguments)?.lines().map(line).collect())
}

/// The branch that the remote repository names as its own, else a local one of the usual names.
fn default_branch(call: &GitCall, config: &GitConfig) -> Option<String> {
    let mut usual: Vec<&str> = config.default_branch.as_deref().into_iter().collect();
    usual.extend(["main", "master"]);
    let patterns: Vec<String> = usual.iter().map(|name| format!("refs/heads/{name}")).collect();
    let mut arguments = vec!["for-each-ref", "--format=%(refname) %(symref)", "refs/remotes/origin/HEAD"];
    arguments.extend(patterns.iter().map(String::as_str));
    let listed = run_git(call, &arguments).ok()?;
    let remote =
        listed.lines().find_map(|line| line.strip_prefix("refs/remotes/origin/HEAD refs/remotes/origin/"));
    let local = || {
        patterns
            .iter()
            .zip(&usual)
            .find(|(reference, _)| listed.lines().any(|line| line.trim_end() == reference.as_str()))
    };
    remote.map(line).or_else(|| local().map(|(_, name)| line(name)))
}

/// One line of bounded length.
fn line(text: &str) -> String {
    let text = text.lines().next().unwrap_or_default().trim();
    cut_with_ellipsis(text, LINE_CHARACTERS_MAX).into_owned()
}

/// The lines that fit, and whether some did not.
fn cut_at_line(status: &str) -> (String, bool) {
    let status = status.trim_end();
    match status.char_indices().nth(STATUS_CHARACTERS_MAX) {
        None => (status.to_owned(), false),
        Some((end, letter)) => {
            // A line end right behind the last character that fits counts, too.
            let end = status[..end + letter.len_utf8()].rfind('\n').unwrap_or(end);
            (status[..end].to_owned(), true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_changes_is_cut_at_a_line_end() {
        assert_eq!(cut_at_line(" M a\n M b\n"), (" M a\n M b".to_owned(), false));
        let (cut, was_cut) = cut_at_line(&"?? é\n".repeat(500));
        assert_eq!((cut.chars().count(), was_cut), (1_999, true));
        assert!(cut.ends_with("?? é"));
        for name in ["é", "語", "🦀"] {
            assert_eq!(cut_at_line(&name.repeat(3_000)), (name.repeat(2_000), true));
        }
        assert_eq!(cut_at_line(&"x".repeat(3_000)), ("x".repeat(2_000), true));
        assert_eq!(cut_at_line(&format!("{}\nb", "x".repeat(2_000))), ("x".repeat(2_000), true));
    }
}
