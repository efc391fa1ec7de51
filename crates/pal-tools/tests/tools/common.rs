//! A place to work in, and calls that are made there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use pal_model::{Text, ToolUseId};
use pal_permissions::{Confinement, Need, SandboxLevel};
use pal_process::Cancel;
use pal_tools::{Abilities, Input, Output, Running, Workspace, find, tools};
use tempfile::TempDir;

pub(crate) struct Place {
    pub(crate) workspace: Workspace,
    pub(crate) cancel: Cancel,
    folder: PathBuf,
    calls: AtomicU32,
    _kept: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place::seeing(Abilities::default())
    }

    pub(crate) fn seeing(abilities: Abilities) -> Place {
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
        Place { workspace, cancel: Cancel::new(), folder, calls: AtomicU32::new(0), _kept: kept }
    }

    /// A path inside of the project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join("project").join(name)
    }

    /// A path beside the project.
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

    /// What a call would need.
    pub(crate) fn needs(&self, tool: &str, input: &serde_json::Value) -> Result<Vec<Need>, String> {
        let tools = tools();
        find(&tools, tool).unwrap().needs(&Input(Text::from(input.to_string())), &self.workspace)
    }

    /// Makes a call with everything allowed that it says to need.
    pub(crate) fn call(&self, tool: &str, input: &serde_json::Value) -> Said {
        match self.needs(tool, input) {
            Ok(granted) => self.call_with(tool, input, &granted),
            Err(wrong) => Said { call: String::new(), output: Output::error(&wrong) },
        }
    }

    pub(crate) fn call_with(&self, tool: &str, input: &serde_json::Value, granted: &[Need]) -> Said {
        let call = format!("call_{}", self.calls.fetch_add(1, Ordering::Relaxed));
        let running = Running {
            workspace: &self.workspace,
            granted,
            confinement: &Confinement::whole(SandboxLevel::Full),
            call: &ToolUseId::from(call.as_str()),
            cancel: &self.cancel,
            progress: &|_| {},
        };
        let tools = tools();
        let output = find(&tools, tool).unwrap().run(&Input(Text::from(input.to_string())), &running);
        Said { call, output }
    }

    pub(crate) fn read(&self, name: &str) -> Said {
        self.call("Read", &serde_json::json!({"file_path": name}))
    }
}

/// What came of a call.
#[must_use]
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) call: String,
    pub(crate) output: Output,
}

impl Said {
    /// The text, of a call that went well.
    #[track_caller]
    pub(crate) fn good(&self) -> String {
        assert!(!self.output.is_error, "{}", self.text());
        self.text()
    }

    /// The text, of a call that went wrong.
    #[track_caller]
    pub(crate) fn wrong(&self) -> String {
        assert!(self.output.is_error, "{}", self.text());
        assert!(self.output.aftermath.is_empty(), "what failed leaves nothing to remember");
        self.text()
    }

    fn text(&self) -> String {
        self.output.content.iter().filter_map(|block| block.string("text")).collect()
    }

    /// Whether the session will remember this file.
    pub(crate) fn remembers(&self, path: &Path) -> bool {
        self.output.aftermath.files.contains_key(path.to_str().unwrap())
    }
}
