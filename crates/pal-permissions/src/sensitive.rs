//! Files that are more than content: credentials, and files that make programs run.

use std::path::Path;

/// Names of files and folders that hold credentials; a star stands for anything. In lower case.
const CREDENTIALS: [&str; 20] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".kube",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".git-credentials",
    ".docker",
    "id_rsa*",
    "id_ed25519*",
    "id_ecdsa*",
    "*.pem",
    "*.key",
    ".env",
    ".env.*",
    ".envrc",
    "credentials*",
    ".credentials*",
];

/// Files that look like credentials and are examples by custom.
const EXAMPLES: [&str; 4] = [".env.example", ".env.sample", ".env.template", ".env.dist"];

/// Files in a home that shells read when they start.
pub const SHELL_START_FILES: [&str; 11] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".inputrc",
];

/// Names of files and folders whose change makes programs run something, now or later. In lower case.
const PROTECTED: [&str; 20] = [
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".claude",
    ".pal",
    ".codex",
    ".cursor",
    ".vscode",
    ".idea",
    ".husky",
    ".githooks",
    ".devcontainer",
    ".cargo",
    ".mcp.json",
    ".claude.json",
    ".envrc",
    ".ripgreprc",
    ".pre-commit-config.yaml",
    "hooks.json",
];

/// Whether a path leads to or through something with a name of credentials.
pub fn holds_credentials(path: &Path) -> bool {
    credential(path).is_some()
}

/// The part of a path that is a name of credentials.
pub(crate) fn credential(path: &Path) -> Option<String> {
    names(path).find(|name| !EXAMPLES.contains(&name.as_str()) && is_in(&CREDENTIALS, name))
}

/// The part of a path whose change makes programs run something.
pub(crate) fn protected(path: &Path) -> Option<String> {
    names(path).find(|name| is_in(&PROTECTED, name) || is_in(&SHELL_START_FILES, name))
}

fn names(path: &Path) -> impl Iterator<Item = String> + '_ {
    // Some file systems do not tell capital letters from small ones.
    path.components().map(|component| component.as_os_str().to_string_lossy().to_lowercase())
}

fn is_in(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
        (Some(start), _) => name.starts_with(start),
        (_, Some(end)) => name.ends_with(end),
        _ => name == *pattern,
    })
}
