//! Workspace for tool calls.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use pal_model::{SharedText, ToolUseId};
use pal_permissions::{Confinement, SandboxLevel, ToolAccess};
use pal_process::CancelToken;
use pal_tools::{MediaSupport, ToolContext, ToolInput, ToolOutput, Workspace, builtin_tools, find_tool};
use tempfile::TempDir;

pub(crate) struct Place {
    pub(crate) workspace: Workspace,
    pub(crate) cancel: CancelToken,
    folder: PathBuf,
    calls: AtomicU32,
    _kept: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place::seeing(MediaSupport::default())
    }

    pub(crate) fn seeing(abilities: MediaSupport) -> Place {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path().canonicalize().unwrap();
        let root = folder.join("project");
        for below in ["project", "session", "home"] {
            std::fs::create_dir(folder.join(below)).unwrap();
        }
        let workspace = Workspace::new(
            vec![root],
            folder.join("session"),
            Some(folder.join("home")),
            abilities,
            BTreeMap::new(),
        );
        Place { workspace, cancel: CancelToken::new(), folder, calls: AtomicU32::new(0), _kept: kept }
    }

    /// Path inside the project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join("project").join(name)
    }

    /// Path next to the project.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    /// Access that a call needs.
    pub(crate) fn needs(&self, tool: &str, input: &serde_json::Value) -> Result<Vec<ToolAccess>, String> {
        let tools = builtin_tools();
        find_tool(&tools, tool)
            .unwrap()
            .required_access(&ToolInput(SharedText::from(input.to_string())), &self.workspace)
    }

    /// Makes a call with all required access granted.
    pub(crate) fn call(&self, tool: &str, input: &serde_json::Value) -> CallResult {
        match self.needs(tool, input) {
            Ok(granted) => self.call_with(tool, input, &granted),
            Err(wrong) => CallResult { call: String::new(), output: ToolOutput::error(&wrong) },
        }
    }

    pub(crate) fn call_with(
        &self,
        tool: &str,
        input: &serde_json::Value,
        granted: &[ToolAccess],
    ) -> CallResult {
        let call = format!("call_{}", self.calls.fetch_add(1, Ordering::Relaxed));
        let context = ToolContext {
            workspace: &self.workspace,
            granted,
            confinement: &Confinement::whole(SandboxLevel::Full),
            call: &ToolUseId::from(call.as_str()),
            cancel: &self.cancel,
            progress: &|_| {},
        };
        let tools = builtin_tools();
        let output =
            find_tool(&tools, tool).unwrap().run(&ToolInput(SharedText::from(input.to_string())), &context);
        CallResult { call, output }
    }

    pub(crate) fn read(&self, name: &str) -> CallResult {
        self.call("Read", &serde_json::json!({"file_path": name}))
    }
}

/// Result of a call.
#[must_use]
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) call: String,
    pub(crate) output: ToolOutput,
}

impl CallResult {
    /// Text of a successful call.
    #[track_caller]
    pub(crate) fn good(&self) -> String {
        assert!(!self.output.is_error, "{}", self.text());
        self.text()
    }

    /// Text of a failed call.
    #[track_caller]
    pub(crate) fn wrong(&self) -> String {
        assert!(self.output.is_error, "{}", self.text());
        assert!(self.output.aftermath.is_empty(), "what failed leaves nothing to remember");
        self.text()
    }

    fn text(&self) -> String {
        self.output.content.iter().filter_map(|block| block.string("text")).collect()
    }

    /// Returns whether the session remembers this file.
    pub(crate) fn remembers(&self, path: &Path) -> bool {
        self.output.aftermath.files.contains_key(path.to_str().unwrap())
    }
}
