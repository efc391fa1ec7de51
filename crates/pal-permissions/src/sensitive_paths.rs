//! Sensitive paths: credentials, and files that make programs run.

use std::path::Path;

/// Names of files and folders with credentials, in lower case; `*` is a wildcard.
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

/// Names that look like credentials but are examples by convention.
const EXAMPLES: [&str; 4] = [".env.example", ".env.sample", ".env.template", ".env.dist"];

/// Files in the home directory that shells read at startup.
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

/// Names of files and folders whose change can make programs run something, in lower case.
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

/// Returns whether a component of a path has a credential name.
pub fn is_credential_path(path: &Path) -> bool {
    credential(path).is_some()
}

/// First component of a path with a credential name.
pub(crate) fn credential(path: &Path) -> Option<String> {
    names(path).find(|name| !EXAMPLES.contains(&name.as_str()) && is_in(&CREDENTIALS, name))
}

/// First component of a path whose change can make programs run something.
pub(crate) fn protected(path: &Path) -> Option<String> {
    names(path).find(|name| is_in(&PROTECTED, name) || is_in(&SHELL_START_FILES, name))
}

fn names(path: &Path) -> impl Iterator<Item = String> + '_ {
    // Some file systems ignore case.
    path.components().map(|component| component.as_os_str().to_string_lossy().to_lowercase())
}

fn is_in(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
        (Some(start), _) => name.starts_with(start),
        (_, Some(end)) => name.ends_with(end),
        _ => name == *pattern,
    })
}
