//! Permissions in a workspace: rules applied to its paths.

use std::path::{Path, PathBuf};

use pal_permissions::{
    PermissionContext, PermissionMode, PermissionRequest, RuleSet, SandboxLimits, TargetPath, ToolAccess,
    Verdict, authorize, is_credential_path,
};

use crate::{HiddenFiles, Workspace};

/// Returns the files hidden from searches: those that rules deny, and credentials, since a search is allowed as a whole.
pub fn hidden_files(rules: &RuleSet, own: &Path, workspace: &Workspace) -> HiddenFiles {
    let rules = rules.clone();
    let (roots, home, session) =
        (workspace.roots.clone(), workspace.home.clone(), sessions_directory(&workspace.session));
    let own = Some(own.to_owned());
    HiddenFiles(Box::new(move |real| {
        // Directories above the project do not matter.
        let below = roots.iter().find_map(|root| real.strip_prefix(root).ok()).unwrap_or(real);
        if is_credential_path(below) {
            return true;
        }
        if rules.deny.is_empty() {
            return false;
        }
        let resolve = |named: &str, directory: &Path| directory.join(named);
        let context = PermissionContext {
            roots: roots.clone(),
            home: home.clone(),
            session: session.clone(),
            own: own.clone(),
            memory: None,
            directory: roots.first().cloned().unwrap_or_default(),
            resolve: &resolve,
            is_folder: &Path::is_dir,
            sandbox: SandboxLimits::default(),
        };
        let target = TargetPath { named: real.display().to_string(), real: real.to_owned() };
        rules.denies_reading(&target, &context).is_some()
    }))
}

/// Returns the verdict on a call in this workspace.
pub fn judge_access(
    tool: &str,
    needs: &[ToolAccess],
    mode: PermissionMode,
    rules: &RuleSet,
    (own, sandbox): (Option<PathBuf>, SandboxLimits),
    workspace: &Workspace,
) -> Verdict {
    with_permission_context(own, sandbox, workspace, |context| {
        authorize(&PermissionRequest { tool, needs, mode }, rules, context)
    })
}

/// Evaluates a question with the paths of the workspace.
pub fn with_permission_context<T>(
    own: Option<PathBuf>,
    sandbox: SandboxLimits,
    workspace: &Workspace,
    ask: impl FnOnce(&PermissionContext<'_>) -> T,
) -> T {
    let resolve = |named: &str, directory: &Path| workspace.resolve_in(named, directory).real;
    ask(&PermissionContext {
        roots: workspace.roots.clone(),
        home: workspace.home.clone(),
        session: sessions_directory(&workspace.session),
        own,
        memory: workspace.recorded_folder.as_ref().map(|keeper| keeper.folder().to_owned()),
        directory: workspace.directory(),
        resolve: &resolve,
        is_folder: &Path::is_dir,
        sandbox,
    })
}

/// Directory of all sessions of the project: a copied session refers to files of its original.
pub(crate) fn sessions_directory(session: &Path) -> PathBuf {
    session.parent().unwrap_or(session).to_owned()
}
