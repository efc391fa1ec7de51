//! A folder with a machine in it: `etc` of the owner, `home` of the user, `home/project`. Layouts are scripts.
//!
//! | line | what it does |
//! | --- | --- |
//! | `repo DIR` | makes a directory the top of a repository |
//! | `file PATH \| TEXT` | writes a file; `\n` is a line end, `ROOT` the folder itself |
//! | `hex PATH \| BYTES` | writes bytes |
//! | `size PATH \| BYTES` | writes a file of that many letters |
//! | `link PATH -> TARGET` | makes a symbolic link |
//! | `in DIR`, `add DIR`, `allow PATH`, `refuse PATH`, `bare`, `off`, `limit TOKENS`, `drop` | say how to search |
//! | `touch PATH` | touches a file after the search |

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use pal_project::{InstructionLimit, InstructionSearch, InstructionSet, discover_instructions, user_folders};
use pal_prompt::InstructionFile;

/// A machine in a folder.
pub(crate) struct ProjectFixture {
    _folder: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) search: InstructionSearch,
    touches: Vec<String>,
}

impl ProjectFixture {
    /// Makes the files of a script.
    pub(crate) fn new(script: &str) -> ProjectFixture {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("home/project")).unwrap();
        let home = root.join("home");
        let search = InstructionSearch {
            managed: vec![root.join("etc")],
            user: user_folders(&home, &home.join(".palimpsest")),
            directory: home.join("project"),
            home: Some(home),
            root: None,
            added: Vec::new(),
            listed: Vec::new(),
            allowed: Vec::new(),
            refused: Vec::new(),
            rules: pal_permissions::RuleSet::default(),
            is_on: true,
            is_bare: false,
            limit: InstructionLimit {
                tokens_max: 40_000,
                drops: false,
                measure: Arc::new(|text| text.len() as u64 / 4),
            },
        };
        let mut place = ProjectFixture { _folder: folder, root, search, touches: Vec::new() };
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            place.make(line);
        }
        // Which folders of the user count depends on the files in them.
        let home = place.root.join("home");
        place.search.user = user_folders(&home, &home.join(".palimpsest"));
        place
    }

    /// Writes a file, with the directories above it.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Runs git without any user configuration.
    #[track_caller]
    pub(crate) fn git(&self, directory: &str, arguments: &[&str]) {
        let output = self.git_command(directory).args(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn git_command(&self, directory: &str) -> Command {
        let mut command = Command::new("git");
        command.current_dir(self.root.join(directory));
        command.env("HOME", self.root.join("nobody")).env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        for (name, value) in [("AUTHOR", "An Author"), ("COMMITTER", "A Committer")] {
            command.env(format!("GIT_{name}_NAME"), value).env(format!("GIT_{name}_EMAIL"), "a@example.com");
        }
        command.args(["-c", "init.defaultBranch=trunk", "-c", "protocol.file.allow=always"]);
        command
    }

    /// Results of a search, and then each touch, as lines.
    pub(crate) fn report(&self) -> String {
        let mut discovered = discover_instructions(&self.search);
        let mut lines = String::new();
        for file in &discovered.files {
            let _ = writeln!(lines, "{}", self.file_line(file));
        }
        for path in &self.touches {
            for file in discovered.join_for_path(&self.root.join(path)) {
                let _ = writeln!(lines, "{path} brings {}", self.file_line(&file));
            }
        }
        self.report_rest(&discovered, &mut lines);
        lines
    }

    fn file_line(&self, file: &InstructionFile) -> String {
        let scope = format!("{:?}", file.scope).to_lowercase();
        let by = file.included_by.as_ref().map(|by| format!(" for {}", self.short(by))).unwrap_or_default();
        format!("{scope} {}{by}", self.short(&file.path))
    }

    fn report_rest(&self, discovered: &InstructionSet, lines: &mut String) {
        for rule in &discovered.waiting {
            let _ = writeln!(lines, "waits {} {}", self.short(&rule.path), rule.patterns.join(" "));
        }
        for question in &discovered.questions {
            let _ =
                writeln!(lines, "asks {} for {}", self.short(&question.path), self.short(&question.asked_by));
        }
        for left_out in &discovered.left_out {
            // Whatever else lies about on the machine that runs the tests.
            let is_ours =
                !left_out.what.starts_with('/') || left_out.what.contains(self.root.to_str().unwrap());
            if is_ours {
                let _ =
                    writeln!(lines, "without {}: {}", self.short(&left_out.what), self.short(&left_out.why));
            }
        }
        for warning in &discovered.warnings {
            let _ = writeln!(lines, "warns {}", self.short(warning));
        }
    }

    /// A text with the paths relative to the folder.
    pub(crate) fn short(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.root.display()), "")
    }

    fn make(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (path, text) = rest.split_once(" |").unwrap_or((rest, ""));
        let text = text.trim_start();
        match word {
            "repo" => fs::create_dir_all(self.root.join(path).join(".git")).unwrap(),
            "file" => {
                let text = text.replace("\\n", "\n").replace("ROOT", self.root.to_str().unwrap());
                self.write(path, text.as_bytes());
            }
            "hex" => self.write(path, &bytes_of(text)),
            "size" => self.write(path, &vec![b'x'; text.parse().unwrap()]),
            "link" => self.link(rest),
            "dir" => fs::create_dir_all(self.root.join(path)).unwrap(),
            "in" => self.search.directory = self.root.join(path),
            "add" => self.search.added.push(self.root.join(path)),
            "allow" => self.search.allowed.push(self.root.join(path)),
            "refuse" => self.search.refused.push(self.root.join(path)),
            "bare" => self.search.is_bare = true,
            "off" => self.search.is_on = false,
            "limit" => self.search.limit.tokens_max = path.parse().unwrap(),
            "drop" => self.search.limit.drops = true,
            "touch" => self.touches.push(path.to_owned()),
            _ => panic!("{line}"),
        }
    }

    fn link(&self, rest: &str) {
        let (path, target) = rest.split_once(" -> ").unwrap();
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let target = target.replace("ROOT", self.root.to_str().unwrap());
        std::os::unix::fs::symlink(Path::new(&target), path).unwrap();
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    hex.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// A script and what must come of it.
#[track_caller]
pub(crate) fn check(script: &str, expected: &str) {
    check_place(&ProjectFixture::new(script), expected);
}

#[track_caller]
pub(crate) fn check_place(place: &ProjectFixture, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let report = place.report();
    let found: Vec<&str> = report.lines().collect();
    assert_eq!(found, expected, "\nfound:\n{report}");
}
