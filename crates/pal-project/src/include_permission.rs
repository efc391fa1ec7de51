//! Checks permissions for an included file, or for the target of a link, like a `Read` call: instruction files are untrusted, and what
//! they include goes to the provider with the first request.

use std::path::{Path, PathBuf};

use pal_permissions::{
    PermissionContext, PermissionMode, PermissionRequest, SandboxLimits, TargetPath, ToolAccess, Verdict,
    authorize, is_credential_path,
};

use crate::display_text::display_path;
use crate::instruction_walk::{InstructionCandidate, InstructionWalk};

impl InstructionWalk {
    /// The reason why a file is not read, and how to allow it; none if it may be read as far as rules and credentials go. Whether
    /// a file outside of the project may be read is decided elsewhere.
    pub(crate) fn include_refusal(&self, candidate: &InstructionCandidate, real: &Path) -> Option<String> {
        if candidate.included_by.is_none() && !is_link(&candidate.path, real) {
            return None;
        }
        let project = &self.project;
        let mut roots = vec![project.root.clone(), project.directory.clone()];
        roots.extend(project.added.iter().cloned());
        let below = |path: &Path| {
            let inside = roots.iter().filter_map(|root| path.strip_prefix(root).ok());
            inside.min_by_key(|rest| rest.as_os_str().len()).unwrap_or(path).to_owned()
        };
        let is_credential = is_credential_path(&below(real)) || is_credential_path(&below(&candidate.path));
        let is_inside = project.contains(real);
        let ground = PermissionContext {
            roots,
            home: self.search.home.clone(),
            session: PathBuf::new(),
            own: None,
            memory: None,
            directory: project.directory.clone(),
            resolve: &|named, directory| directory.join(named),
            is_folder: &Path::is_dir,
            sandbox: SandboxLimits::default(),
        };
        let target = TargetPath { named: display_path(&candidate.path), real: real.to_owned() };
        if let Some(rule) = self.search.rules.denies_reading(&target, &ground) {
            return Some(format!("the rule {rule} denies it; remove that rule to allow it"));
        }
        // Files outside that hold no credentials are asked for by themselves.
        if !is_inside && !is_credential {
            return None;
        }
        if is_credential && self.search.allowed.iter().any(|allowed| allowed == real) {
            return None;
        }
        let needs = [ToolAccess::Read(target)];
        let request = PermissionRequest { tool: "Read", needs: &needs, mode: PermissionMode::Default };
        match authorize(&request, &self.search.rules, &ground) {
            Verdict::Allow => None,
            Verdict::Deny { why } => Some(why),
            Verdict::Ask { why, rule } => {
                Some(format!("{why}; to allow it, add `{rule}` to `permissions.allow` in your settings"))
            }
        }
    }
}

/// Returns whether a path leads to a file of another name or place.
fn is_link(path: &Path, real: &Path) -> bool {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    path.file_name() != real.file_name() || folder.as_deref() != real.parent()
}
