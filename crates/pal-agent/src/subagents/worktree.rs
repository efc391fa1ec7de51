//! Git worktree of a subagent, on its own branch.

use std::path::{Path, PathBuf};

use pal_project::run_git as git;

/// A worktree and its branch.
pub(crate) struct Worktree {
    repository: PathBuf,
    path: PathBuf,
    branch: String,
    /// Commit that it started from.
    base: String,
}

impl Worktree {
    /// Adds a worktree in an ignored directory of the repository, where the user finds it after the session.
    pub(crate) fn add(directory: &Path, name: &str) -> Result<Worktree, String> {
        let failed = |why: String| format!("There is no worktree for it to work in: {why}");
        let repository = PathBuf::from(git(directory, &["rev-parse", "--show-toplevel"]).map_err(failed)?);
        let base = git(directory, &["rev-parse", "HEAD"]).map_err(failed)?;
        let folder = repository.join(".worktrees");
        let made =
            std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(folder.join(".gitignore"), "*\n"));
        made.map_err(|error| failed(format!("{}: {error}", folder.display())))?;
        let number = (1..).find(|number| !folder.join(format!("{name}-{number}")).exists()).unwrap_or(0);
        let path = folder.join(format!("{name}-{number}"));
        let branch = format!("pal/{name}-{number}-{}", base.get(..8).unwrap_or_default());
        let to = path.display().to_string();
        git(&repository, &["worktree", "add", "--quiet", "-b", &branch, &to, "HEAD"]).map_err(failed)?;
        Ok(Worktree { repository, path, branch, base })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the worktree if nothing changed; otherwise says where the changes are.
    pub(crate) fn end(self) -> String {
        let is_clean = git(&self.path, &["status", "--porcelain"]).is_ok_and(|status| status.is_empty());
        let is_same = git(&self.path, &["rev-parse", "HEAD"]).is_ok_and(|head| head == self.base);
        let path = self.path.display().to_string();
        if is_clean && is_same && git(&self.repository, &["worktree", "remove", &path]).is_ok() {
            // The branch has no commits of its own.
            let _ = git(&self.repository, &["branch", "--quiet", "-D", &self.branch]);
            return String::from("\n[It changed nothing in its worktree, which is gone.]");
        }
        format!("\n[Its changes are in the worktree {path}, on the branch {}.]", self.branch)
    }
}
