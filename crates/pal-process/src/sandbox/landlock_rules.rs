//! Landlock rules for reading and writing files.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::sandbox::SandboxPolicy;

/// Newest Landlock ABI that these rules support.
pub(crate) const NEWEST: u8 = ABI::V9 as u8;

/// Devices without state.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Kernel files that programs read about the machine.
const KERNEL_INFO_FILES: [&str; 14] = [
    "/proc/meminfo",
    "/proc/uptime",
    "/proc/loadavg",
    "/proc/stat",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/version",
    "/proc/sys/kernel",
    "/sys/devices/system/cpu",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Directory of shared memory and semaphores, which are temporary by nature.
const SHARED_MEMORY: &str = "/dev/shm";

/// Restricts this thread with the newest Landlock up to a version; returns the ABI.
pub(crate) fn restrict(policy: &SandboxPolicy, newest: u8) -> Result<u8, String> {
    let status = rules(policy, ABI::from(i32::from(newest))).and_then(RulesetCreated::restrict_self);
    let status = status.map_err(|error| format!("Landlock: {error}"))?;
    match (status.ruleset, status.landlock) {
        (
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced,
            LandlockStatus::Available { effective_abi, .. },
        ) if status.no_new_privs => Ok(newest.min(effective_abi as u8)),
        (_, LandlockStatus::NotEnabled) => Err("Landlock is turned off in this kernel".to_owned()),
        (_, LandlockStatus::NotImplemented) => Err("this kernel has no Landlock".to_owned()),
        _ => Err("Landlock did not take the rules".to_owned()),
    }
}

fn rules(policy: &SandboxPolicy, newest: ABI) -> Result<RulesetCreated, RulesetError> {
    // No device nodes: root could write to disks through them.
    let writing = AccessFs::from_write(newest) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    // File names are not secret where most files are open: listing stays allowed, so that folders above
    // hidden files remain usable.
    let reading = match policy.visible {
        Some(_) => AccessFs::ReadFile | AccessFs::Execute | AccessFs::ReadDir,
        None => AccessFs::ReadFile | AccessFs::Execute,
    };
    let hides = !policy.hidden.is_empty() || policy.visible.is_some();
    // The first version is required; later ones as far as the kernel supports them.
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(ABI::V1))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_write(newest))?;
    let scopes = Scope::from_all(newest);
    if !scopes.is_empty() {
        rules = rules.scope(scopes)?;
    }
    if hides {
        rules = rules.handle_access(reading)?;
    }
    let mut rules = rules.create()?;
    let granted = if hides { writing | reading } else { writing };
    let closed: Vec<PathBuf> = policy.read_only.iter().chain(&policy.hidden).cloned().collect();
    for path in policy.writable.iter().flat_map(|root| all_but(root, &closed)) {
        rules = allow(rules, &path, granted)?;
    }
    let devices: &[&str] = if policy.changes_nothing { &DEVICES[..1] } else { &DEVICES };
    for path in devices {
        rules = allow(rules, Path::new(path), granted)?;
    }
    if !policy.changes_nothing {
        rules = allow(rules, Path::new(SHARED_MEMORY), granted)?;
    }
    let hidden: Vec<PathBuf> = policy.hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
    match &policy.visible {
        Some(visible) => {
            let system = KERNEL_INFO_FILES.iter().map(PathBuf::from);
            for root in visible.iter().cloned().chain(system) {
                // Names in a visible folder are not secret, even if something in it is hidden.
                rules = allow(rules, &root, BitFlags::from(AccessFs::ReadDir))?;
                for path in all_but(&root, &hidden) {
                    rules = allow(rules, &path, reading)?;
                }
            }
        }
        None if hides => {
            for path in all_but(Path::new("/"), &hidden) {
                rules = allow(rules, &path, reading)?;
            }
        }
        None => {}
    }
    Ok(rules)
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    // A missing path needs no rule.
    let (Ok(opened), Ok(found)) = (PathFd::new(path), std::fs::metadata(path)) else { return Ok(rules) };
    let access =
        if found.is_dir() { access } else { access & AccessFs::from_file(ABI::from(i32::from(NEWEST))) };
    if access.is_empty() {
        return Ok(rules);
    }
    rules.add_rule(PathBeneath::new(opened, access))
}

/// Paths that cover everything below a root except the closed ones: a folder with a closed path below it is
/// replaced by its entries. Rules can only grant, so there is no other way to close a path; nothing new can
/// then be created in such a folder itself.
fn all_but(root: &Path, closed: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        if closed.contains(&folder) {
            continue;
        }
        if !closed.iter().any(|path| path.starts_with(&folder)) {
            all.push(folder);
            continue;
        }
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            // A link would grant its target, which may be closed.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                folders.push(entry.path());
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_paths_are_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it is there");
        for name in ["a/secret/key", "a/open", "b/file"] {
            std::fs::create_dir_all(root.join(name)).expect("made");
        }
        std::os::unix::fs::symlink(root.join("a/secret"), root.join("a/link")).expect("made");
        let all = all_but(Path::new("/"), &[root.join("a/secret")]);
        let below: Vec<&PathBuf> = all.iter().filter(|path| path.starts_with(&root)).collect();
        assert_eq!(below.len(), 2, "{below:?}");
        assert!(all.contains(&root.join("a/open")) && all.contains(&root.join("b")));
        assert!(all.iter().all(|path| !root.starts_with(path)), "nothing above is given as a whole");
    }
}
