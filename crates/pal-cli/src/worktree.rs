//! `--worktree`: a session in a git worktree of its own.

use std::path::{Path, PathBuf};

use pal_project::run_git as git;

use crate::failure::Failure;
use crate::notices::print_notice;

/// Enters the worktree of this name, or a new one; an empty name means a new one.
pub(crate) fn enter_worktree(name: &str) -> Result<(), Failure> {
    let repository = git(Path::new("."), &["rev-parse", "--show-toplevel"]).map_err(|why| {
        Failure::usage_error(
            format!("--worktree needs a git repository with a commit: {why}"),
            "run it in a repository, or leave the flag out",
        )
    })?;
    let folder = PathBuf::from(&repository).join(".worktrees");
    let name = match name {
        "" => (1..)
            .map(|number| format!("work-{number}"))
            .find(|name| !folder.join(name).exists())
            .unwrap_or_default(),
        name => name.to_owned(),
    };
    let path = folder.join(&name);
    if !path.is_dir() {
        add(&PathBuf::from(&repository), &folder, &name).map_err(|why| {
            Failure::with_hint(
                format!("cannot add the worktree {}: {why}", path.display()),
                "`git worktree list` shows all of them",
            )
        })?;
    }
    std::env::set_current_dir(&path).map_err(|error| Failure::of_file(&path, &error))?;
    print_notice(format_args!(
        "working in {} on the branch pal/{name}; `git worktree remove {}` removes it",
        path.display(),
        path.display()
    ));
    Ok(())
}

/// Adds a worktree in an ignored directory of the repository, on a branch of its own.
fn add(repository: &Path, folder: &Path, name: &str) -> Result<(), String> {
    let made =
        std::fs::create_dir_all(folder).and_then(|()| std::fs::write(folder.join(".gitignore"), "*\n"));
    made.map_err(|error| error.to_string())?;
    let path = folder.join(name).display().to_string();
    let branch = format!("pal/{name}");
    let has_branch =
        git(repository, &["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]).is_ok();
    match has_branch {
        true => git(repository, &["worktree", "add", "--quiet", &path, &branch]),
        false => git(repository, &["worktree", "add", "--quiet", "-b", &branch, &path, "HEAD"]),
    }
    .map(drop)
}
