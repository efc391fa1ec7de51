//! Scratch directory of the demo: the project, and a separate home for the program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pal_model::ModelCatalog;

use super::demo_project;
use crate::failure::Failure;

/// Name of the model. Its card is that of a real model, except for a window that fills in seconds, and without the provider's own
/// clearing, so that only the program clears.
pub(super) const MODEL: &str = "demo-model";
/// Real model with the same card.
pub(super) const LIKE: &str = "claude-opus-5-5";
/// Context window in tokens.
pub(super) const WINDOW: u64 = 40_000;
/// Maximum output tokens, small enough for the window.
const OUTPUT: u64 = 4_000;

/// A directory that is removed after the demo, unless it is kept.
pub(super) struct ScratchDir {
    folder: tempfile::TempDir,
    /// Canonical path of the directory.
    root: PathBuf,
    /// Model catalog, with the card of the demo model.
    pub(super) cards: ModelCatalog,
}

impl ScratchDir {
    /// Creates the directory with all files.
    pub(super) fn set() -> Result<ScratchDir, Failure> {
        let folder = tempfile::Builder::new()
            .prefix("pal-demo-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()
            .map_err(|error| Failure::new(format!("cannot create a scratch directory: {error}")))?;
        let root = folder.path().canonicalize().map_err(|error| Failure::of_file(folder.path(), &error))?;
        let models = format!(
            "[models.{MODEL}]\nlike = \"{LIKE}\"\nwindow = {WINDOW}\nmax_output = {OUTPUT}\ncontext_management = []\n"
        );
        let cards = ModelCatalog::built_in()
            .with_overrides(&models)
            .map_err(|error| Failure::new(error.to_string()))?;
        let scratch = ScratchDir { folder, root, cards };
        for (path, text) in demo_project::files() {
            write(&scratch.project().join(path), &text)?;
        }
        write(&scratch.home().join("models.toml"), &models)?;
        for folder in [scratch.user(), scratch.record()] {
            fs::create_dir_all(&folder).map_err(|error| Failure::of_file(&folder, &error))?;
        }
        scratch.commit();
        Ok(scratch)
    }

    /// Directory of the project.
    pub(super) fn project(&self) -> PathBuf {
        self.root.join("tidebook")
    }

    /// Home of the program (PAL_HOME).
    pub(super) fn home(&self) -> PathBuf {
        self.root.join("palimpsest")
    }

    /// Home of the user.
    pub(super) fn user(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Directory of the recorded exchanges.
    pub(super) fn record(&self) -> PathBuf {
        self.root.join("exchanges")
    }

    /// Keeps the directory, and returns its path.
    pub(super) fn keep(self) -> PathBuf {
        let _ = self.folder.keep();
        self.root
    }

    /// Makes the project a git repository, if git is installed.
    fn commit(&self) {
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.args(arguments).current_dir(self.project());
            command.env("HOME", self.user()).env("GIT_CONFIG_NOSYSTEM", "1").env_remove("GIT_DIR");
            let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            quiet.status().is_ok_and(|status| status.success())
        };
        let who = ["-c", "user.name=Tide", "-c", "user.email=tide@example.invalid"];
        let commit = ["commit", "--quiet", "--message", "The tide book"];
        let _ = git(&["init", "--quiet"]) && git(&["add", "--all"]) && git(&[&who[..], &commit[..]].concat());
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| Failure::of_file(path, &error))
}
