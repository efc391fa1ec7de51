//! The scratch folder: the project, a home of its own for the program, and nothing of the user's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pal_model::Cards;

use super::project;
use crate::failure::Failure;

/// The model's name. Its card is that of a real model but for the window, which fills in seconds, and for the provider's own
/// clearing: whatever is cleared here, the program cleared.
pub(super) const MODEL: &str = "demo-model";
/// The model that it is like.
pub(super) const LIKE: &str = "claude-opus-5-5";
/// Its window, in tokens.
pub(super) const WINDOW: u64 = 40_000;
/// Most tokens of an answer: what such a window leaves room for.
const OUTPUT: u64 = 4_000;

/// A folder that is gone when the demonstration is, unless it is kept.
pub(super) struct Stage {
    folder: tempfile::TempDir,
    /// The real path of the folder.
    root: PathBuf,
    /// The cards of all models, the demonstration's among them.
    pub(super) cards: Cards,
}

impl Stage {
    /// Writes everything that is needed.
    pub(super) fn set() -> Result<Stage, Failure> {
        let folder = tempfile::Builder::new()
            .prefix("pal-demo-")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()
            .map_err(|error| Failure::new(format!("no scratch folder can be made: {error}")))?;
        let root = folder.path().canonicalize().map_err(|error| Failure::of_file(folder.path(), &error))?;
        let models = format!(
            "[models.{MODEL}]\nlike = \"{LIKE}\"\nwindow = {WINDOW}\nmax_output = {OUTPUT}\ncontext_management = []\n"
        );
        let cards = Cards::shipped().overridden(&models).map_err(|error| Failure::new(error.to_string()))?;
        let stage = Stage { folder, root, cards };
        for (path, text) in project::files() {
            write(&stage.project().join(path), &text)?;
        }
        write(&stage.home().join("models.toml"), &models)?;
        for folder in [stage.user(), stage.record()] {
            fs::create_dir_all(&folder).map_err(|error| Failure::of_file(&folder, &error))?;
        }
        stage.commit();
        Ok(stage)
    }

    /// Where the session works.
    pub(super) fn project(&self) -> PathBuf {
        self.root.join("tidebook")
    }

    /// The program's home.
    pub(super) fn home(&self) -> PathBuf {
        self.root.join("palimpsest")
    }

    /// The user's home.
    pub(super) fn user(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Every request and answer, as they went over the wire.
    pub(super) fn record(&self) -> PathBuf {
        self.root.join("exchanges")
    }

    /// Leaves the folder, and says where it is.
    pub(super) fn keep(self) -> PathBuf {
        let _ = self.folder.keep();
        self.root
    }

    /// Makes the project a repository, where there is git: sessions look at it.
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
