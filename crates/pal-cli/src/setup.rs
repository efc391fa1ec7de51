//! First start: what is found of other agents, and the question whether the project is trusted.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use pal_settings::{ProjectTrust, files_to_trust, is_trust_declined, record_declined_trust, record_trust};

use crate::failure::Failure;
use crate::notices::{print_notice, print_plain};
use crate::settings::Settings;

/// File in the home of pal that records notices that the user has seen.
const SEEN_FILE: &str = "seen-notices.json";

/// Tells once about parts of other agents' settings that have no effect.
pub(crate) fn tell_unused(settings: &Settings) {
    let Some(home) = &settings.home else { return };
    let path = home.join(SEEN_FILE);
    let mut seen: Vec<String> = std::fs::read_to_string(&path)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let new: Vec<&String> = settings.imported.unused.iter().filter(|notice| !seen.contains(notice)).collect();
    if new.is_empty() {
        return;
    }
    for notice in &new {
        print_notice(format_args!("{notice} (said once; `pal doctor` repeats it)"));
    }
    // A notice about a file replaces the one about its earlier content.
    let file = |notice: &String| notice.split(": ").next().map(str::to_owned);
    seen.retain(|old| new.iter().all(|new| file(new) != file(old)));
    seen.extend(new.into_iter().cloned());
    if let Ok(text) = serde_json::to_string_pretty(&seen) {
        // A home that cannot be written brings the notice again.
        let _ = write_private(&path, &text);
    }
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    if let Some(folder) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

/// Files of a project that wait for the user's trust.
pub(crate) struct TrustQuestion {
    home: PathBuf,
    project: PathBuf,
    /// Names of the files.
    pub(crate) files: Vec<String>,
    has_changed: bool,
}

/// The question whether the project is trusted; none if there is nothing to trust, or if it was answered.
pub(crate) fn trust_question(settings: &Settings) -> Option<TrustQuestion> {
    let (home, project) = (settings.home.clone()?, settings.project.top.clone()?);
    if settings.project.is_trusted {
        return None;
    }
    let files = files_to_trust(&project);
    let is_open = !files.is_empty() && !is_trust_declined(&home, &project);
    let has_changed = matches!(settings.project.trust(), ProjectTrust::Changed(_));
    is_open.then_some(TrustQuestion { home, project, files, has_changed })
}

impl TrustQuestion {
    /// Asks on the terminal until there is an answer; returns whether the project is trusted now.
    pub(crate) fn ask(&self, input: &mut dyn BufRead, out: &mut dyn Write) -> Result<bool, Failure> {
        let changed = if self.has_changed { " have changed and" } else { "" };
        writeln!(
            out,
            "These files of {}{changed} can run commands or allow tool calls:",
            self.project.display()
        )?;
        for file in &self.files {
            writeln!(out, "  {file}")?;
        }
        writeln!(out, "Their deny rules apply in any case. Do you trust this project?")?;
        loop {
            write!(out, "  y  trust it    n  do not (`pal trust` asks again)    s  show the files: ")?;
            out.flush()?;
            let mut answer = String::new();
            if input.read_line(&mut answer)? == 0 {
                return Ok(false);
            }
            match answer.trim().to_lowercase().as_str() {
                "y" | "yes" => {
                    let done = std::fs::create_dir_all(&self.home)
                        .and_then(|()| record_trust(&self.home, &self.project));
                    done.map_err(|error| Failure::of_file(&self.home, &error))?;
                    return Ok(true);
                }
                "s" => self.show(out)?,
                "n" | "no" => {
                    // A home that cannot be written brings the question again.
                    let _ = record_declined_trust(&self.home, &self.project);
                    return Ok(false);
                }
                _ => {}
            }
        }
    }

    fn show(&self, out: &mut dyn Write) -> Result<(), Failure> {
        for file in &self.files {
            let path = self.project.join(file);
            let text = std::fs::read_to_string(&path).map_err(|error| Failure::of_file(&path, &error))?;
            writeln!(out, "--- {}\n{}\n", path.display(), visible_text(text.trim_end()))?;
        }
        Ok(())
    }
}

/// A text with its control characters made visible.
pub(crate) fn visible_text(text: &str) -> String {
    let show = |character: char| match character {
        '\n' | '\t' => character.to_string(),
        _ if character.is_control() => character.escape_default().to_string(),
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
            character.escape_unicode().to_string()
        }
        _ => character.to_string(),
    };
    text.chars().map(show).collect()
}

/// Welcomes a user on the first start in a terminal: what is used of other agents.
pub(crate) fn welcome(settings: &Settings) {
    let is_first = settings
        .home
        .as_ref()
        .is_some_and(|home| !home.join("settings.toml").exists() && !home.join("projects").exists());
    if !is_first || settings.imported.files.is_empty() {
        return;
    }
    let files: Vec<String> = settings.imported.files.iter().map(|file| file.display().to_string()).collect();
    print_plain(format_args!(
        "pal uses the settings in {}. `pal init` says what it takes over.",
        files.join(", ")
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_recorded_for_the_current_content() {
        let folder = tempfile::tempdir().unwrap();
        let (home, project) = (folder.path().join("home"), folder.path().join("project"));
        std::fs::create_dir_all(project.join(".claude")).unwrap();
        std::fs::write(project.join(".claude/settings.json"), "{\"model\": \"x\\u001b\"}").unwrap();
        let read = || {
            let input = pal_settings::SettingsInput {
                home: Some(home.clone()),
                project: Some(project.clone()),
                ..pal_settings::SettingsInput::default()
            };
            Settings::read(input).unwrap()
        };
        std::fs::create_dir_all(&home).unwrap();
        let ask = |answers: &str| {
            let mut out = Vec::new();
            let trusted = trust_question(&read()).unwrap().ask(&mut answers.as_bytes(), &mut out).unwrap();
            (trusted, String::from_utf8(out).unwrap())
        };
        assert!(!ask("").0, "no answer is no trust");
        let (trusted, text) = ask("what\ns\nn\n");
        assert!(!trusted && text.contains("--- ") && text.contains("\"model\""), "{text}");
        assert!(trust_question(&read()).is_none(), "it is asked once");
        std::fs::write(project.join(".claude/settings.json"), "{\"model\": \"y\"}").unwrap();
        assert!(ask("y\n").0);
        let settings = read();
        assert!(settings.project.is_trusted && settings.model.as_deref() == Some("y"));
        assert!(trust_question(&settings).is_none());
        std::fs::write(project.join(".claude/settings.json"), "{\"model\": \"z\"}").unwrap();
        assert!(ask("").1.contains("have changed"));
    }
}
