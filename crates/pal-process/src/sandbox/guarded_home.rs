//! Protected paths in the home directory: credentials, and files that decide which programs run.

use std::path::{Path, PathBuf};

use pal_permissions::SHELL_START_FILES;

/// Files and folders with credentials, relative to the home.
const CREDENTIALS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".password-store",
    ".vault-token",
    ".boto",
    ".s3cfg",
    ".databrickscfg",
    ".terraform.d",
    ".snowflake",
    ".config/gh",
    ".config/glab-cli",
    ".config/gcloud",
    ".config/op",
    ".config/hub",
    ".config/doctl",
    ".config/rclone",
    ".config/heroku",
    ".config/git/credentials",
    ".config/configstore",
    ".config/google-chrome",
    ".config/chromium",
    ".mozilla",
    ".local/share/keyrings",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".huggingface/token",
    ".cache/huggingface/token",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".local/share/opencode/auth.json",
    ".gemini/oauth_creds.json",
];

/// Files and folders whose change makes programs run something later, besides shell startup files.
const STARTUP_FILES: &[&str] = &[
    ".zlogout",
    ".xprofile",
    ".xinitrc",
    ".pam_environment",
    ".gitconfig",
    ".gitattributes",
    ".config/git",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    ".config/nvim",
    ".config/tmux",
    ".config/Code/User",
    ".config/opencode",
    ".vimrc",
    ".vim",
    ".emacs",
    ".emacs.d",
    ".tmux.conf",
    ".ripgreprc",
    ".claude",
    ".claude.json",
    ".codex",
    ".cursor",
    ".vscode",
    ".gemini",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/env",
    ".cargo/bin",
    ".local/bin",
    ".local/share/applications",
];

/// Existing files and folders with credentials in a home.
pub fn home_credentials(home: &Path) -> Vec<PathBuf> {
    existing(home, CREDENTIALS)
}

/// Existing files and folders in a home from which programs run something later.
pub fn home_startup_files(home: &Path) -> Vec<PathBuf> {
    let mut files = existing(home, &SHELL_START_FILES);
    files.extend(existing(home, STARTUP_FILES));
    files
}

/// Missing startup files of a home: a command that may not change them may not create them either.
pub fn missing_startup_files(home: &Path) -> Vec<PathBuf> {
    let names = SHELL_START_FILES.iter().chain(STARTUP_FILES);
    names.map(|name| home.join(name)).filter(|path| path.symlink_metadata().is_err()).collect()
}

fn existing(home: &Path, names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| home.join(name)).filter(|path| path.exists()).collect()
}
