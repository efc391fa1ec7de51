//! Reads git's configuration before any other git command, and finds the settings that must be overridden.

use super::git_command::{GitCall, GitFailure, run_git};

/// Settings of the user, and answers to those of the repository.
pub(super) struct GitConfig {
    /// The user's name.
    pub(super) user: Option<String>,
    /// The user's name for the first branch of a new repository.
    pub(super) default_branch: Option<String>,
    /// Settings that switch off programs which only the repository names.
    pub(super) overrides: Vec<(String, String)>,
}

impl GitConfig {
    pub(super) fn read(call: &GitCall) -> Result<GitConfig, GitFailure> {
        let wanted = "^(user\\.name|init\\.defaultbranch|filter\\..*\\.(clean|smudge|process))$";
        let listed = match run_git(
            call,
            &["config", "--null", "--show-scope", "--includes", "--get-regexp", wanted],
        ) {
            Ok(listed) => listed,
            // Nothing of that is set.
            Err(GitFailure::Failed(why)) if why.is_empty() => String::new(),
            Err(ended) => return Err(ended),
        };
        Ok(GitConfig::parse(&listed))
    }

    /// Reads a list of scope, zero byte, key, line end, value, zero byte. The last of several values holds.
    fn parse(listed: &str) -> GitConfig {
        let mut config = GitConfig { user: None, default_branch: None, overrides: Vec::new() };
        let mut parts = listed.split('\0');
        while let (Some(scope), Some(pair)) = (parts.next(), parts.next()) {
            let (key, value) = pair.split_once('\n').unwrap_or((pair, ""));
            match key {
                "user.name" => config.user = Some(value.to_owned()),
                "init.defaultbranch" => config.default_branch = Some(value.to_owned()),
                _ if matches!(scope, "local" | "worktree") => config.switch_off(key),
                _ => {}
            }
        }
        config
    }

    /// A filter that the repository brought along would run as soon as a file looks changed.
    fn switch_off(&mut self, key: &str) {
        let Some((filter, _)) = key.rsplit_once('.') else { return };
        for name in ["clean", "smudge", "process"] {
            self.overrides.push((format!("{filter}.{name}"), String::new()));
        }
        self.overrides.push((format!("{filter}.required"), "false".to_owned()));
    }
}
