//! Files and folders that a prompt mentions with `@`: attached to the conversation, as far as permissions allow.

use std::fs;
use std::path::Path;

use pal_events::{PermissionAnswer, PermissionQuestion};
use pal_model::{BlockType, Content, ContentBlock, SharedText, ToolUseId, blocks_to_json};
use pal_permissions::{Confinement, SandboxLevel, ToolAccess, Verdict};
use pal_tools::{ReadTool, ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

use crate::agent_runtime::AgentRuntime;

/// Maximum number of attached files and folders of one prompt.
const MENTIONS_MAX: usize = 20;

/// Maximum number of listed entries of a folder.
const ENTRIES_MAX: usize = 200;

/// Maximum bytes of an attached text.
const TEXT_BYTES_MAX: usize = 100_000;

/// Characters that may end a sentence or a bracket after a path.
const CLOSING: [char; 8] = ['.', ',', ';', ':', '!', '?', ')', ']'];

impl AgentRuntime<'_> {
    /// Attaches what a prompt mentions. The text is content, not instructions: it is added after the prompt, as
    /// observations are. A path that leads nowhere is no mention.
    pub(crate) fn attach_mentions(&mut self, prompt: &Content) {
        let has_picture = prompt.blocks().iter().any(|block| block.kind() == BlockType::Image);
        let texts: Vec<String> = prompt
            .blocks()
            .iter()
            .filter(|block| block.kind() == BlockType::Text)
            .filter_map(|block| block.string("text").map(|text| text.into_owned()))
            .collect();
        let mut attached = Vec::new();
        for named in texts.iter().flat_map(|text| mentions(text)) {
            let Some(named) = existing(named, &self.tools.workspace) else { continue };
            if attached.contains(&named) {
                continue;
            }
            if attached.len() == MENTIONS_MAX {
                self.events.notice(format!("only the first {MENTIONS_MAX} mentioned files are attached"));
                break;
            }
            attached.push(named.clone());
            match self.read_mention(&named) {
                Ok(blocks) => {
                    let is_picture = blocks.iter().any(|block| block.kind() == BlockType::Image);
                    // The front end has already attached pictures that it knows.
                    if !(is_picture && has_picture) {
                        self.pending.contents.push(blocks_to_json(&blocks));
                    }
                }
                Err(why) => self.events.warning(format!("{named} is not attached: {why}")),
            }
        }
    }

    /// Content of a mentioned file or folder; the error is a clause for the user.
    fn read_mention(&mut self, named: &str) -> Result<Vec<ContentBlock>, String> {
        let target = self.tools.workspace.resolve(named);
        let needs = [ToolAccess::Read(target.clone())];
        let input = serde_json::json!({ "file_path": named }).to_string();
        match self.permissions.judge_read(&needs, &self.tools.workspace) {
            Verdict::Allow => {}
            Verdict::Deny { why } => return Err(why),
            Verdict::Ask { why, rule } => self.ask_about_mention(&input, why, rule)?,
        }
        if target.real.is_dir() {
            let listing =
                list_folder(&target.real, &self.tools.workspace).map_err(|error| error.to_string())?;
            let text = format!("The user's prompt mentions the folder `{named}`. It contains:\n{listing}");
            return Ok(vec![ContentBlock::text(&text)]);
        }
        let call = ToolUseId::from("mention");
        let context = ToolContext {
            workspace: &self.tools.workspace,
            granted: &needs,
            confinement: &Confinement::whole(SandboxLevel::ReadOnly),
            call: &call,
            cancel: &self.inbox.handle.cancel(),
            progress: &|_| {},
        };
        let ToolOutput { content, is_error, touched, .. } =
            ReadTool.run(&ToolInput(SharedText::from(input)), &context);
        let text = content.iter().find_map(|block| block.string("text")).unwrap_or_default().into_owned();
        if is_error {
            return Err(text);
        }
        for path in &touched {
            for file in self.project.touched(path) {
                self.announce_instruction(&file, "nested_traversal");
                self.pending.attach("instructions", [pal_project::render_joining_text(&file)]);
            }
        }
        let header = format!("The user's prompt mentions the file `{named}`. This is its content now:");
        let is_text = |block: &ContentBlock| block.kind() == BlockType::Text;
        let mut blocks = vec![match text.is_empty() {
            true => ContentBlock::text(&header),
            false => ContentBlock::text(&format!("{header}\n{}", shortened(&text))),
        }];
        blocks.extend(content.into_iter().filter(|block| !is_text(block)));
        Ok(blocks)
    }

    /// Asks the user about a file that no rule allows to be read.
    fn ask_about_mention(&mut self, input: &str, why: String, rule: String) -> Result<(), String> {
        let Some(asking) = self.permissions.asking.clone() else { return Err(why) };
        let asked = PermissionQuestion {
            agent: None,
            call: ToolUseId::from("mention"),
            tool: String::from("Read"),
            input: input.to_owned(),
            why: format!("your prompt mentions it, and {why}"),
            rule,
            marks: Vec::new(),
            directory: self.tools.workspace.directory().display().to_string(),
        };
        match asking(&asked) {
            PermissionAnswer::Once | PermissionAnswer::Approved(_) => Ok(()),
            PermissionAnswer::Session => {
                if let Ok(rule) = asked.rule.parse() {
                    self.permissions.rules.allow_for_session(rule);
                }
                Ok(())
            }
            PermissionAnswer::No(_) => Err(String::from("you did not allow it")),
            PermissionAnswer::Refused(why) => Err(why),
            PermissionAnswer::Answered(_) | PermissionAnswer::Unavailable => Err(asked.why),
        }
    }
}

/// Paths that a text mentions: `@path`, or `@"path with spaces"`.
fn mentions(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        let is_start =
            text[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || "([{\"'".contains(c));
        if !is_start {
            continue;
        }
        let rest = &text[at + 1..];
        let named = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split(['"', '\n']).next(),
            None => rest.split(char::is_whitespace).next(),
        };
        found.extend(named.filter(|named| !named.is_empty()));
    }
    found
}

/// The mentioned path, if it exists: as written, or without the punctuation after it.
fn existing(named: &str, workspace: &Workspace) -> Option<String> {
    let is_there = |named: &str| !named.is_empty() && workspace.resolve(named).real.exists();
    let mut named = named;
    loop {
        if is_there(named) {
            return Some(named.to_owned());
        }
        named = named.strip_suffix(CLOSING)?;
    }
}

/// Entries of a folder, directories first; files that may not be read are left out.
fn list_folder(folder: &Path, workspace: &Workspace) -> std::io::Result<String> {
    let is_hidden = |path: &Path| workspace.hidden.as_ref().is_some_and(|hidden| (hidden.0)(path));
    let mut entries: Vec<(bool, String)> = fs::read_dir(folder)?
        .filter_map(Result::ok)
        .filter(|entry| !is_hidden(&entry.path()))
        .map(|entry| (!entry.path().is_dir(), entry.file_name().to_string_lossy().into_owned()))
        .collect();
    entries.sort();
    let line = |(is_file, name): &(bool, String)| format!("{name}{}\n", if *is_file { "" } else { "/" });
    let mut text: String = entries.iter().take(ENTRIES_MAX).map(line).collect();
    if entries.is_empty() {
        text.push_str("(nothing)\n");
    }
    if entries.len() > ENTRIES_MAX {
        text.push_str(&format!("[and {} more]\n", entries.len() - ENTRIES_MAX));
    }
    Ok(text)
}

/// Text up to the limit, cut at a line.
fn shortened(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=TEXT_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let end = text[..end].rfind('\n').unwrap_or(end);
    format!("{}\n[Only the beginning is attached. Read shows the rest.]", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_starts_a_word_and_may_be_quoted() {
        for (text, found) in [
            ("see @src/lib.rs, and (@docs/)", vec!["src/lib.rs,", "docs/)"]),
            ("@a @\"b c.txt\" @", vec!["a", "b c.txt"]),
            ("mail me@example.org or @me", vec!["me"]),
            ("nothing", vec![]),
        ] {
            assert_eq!(mentions(text), found, "{text}");
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_line() {
        let text = "ä line\n".repeat(20_000);
        let cut = shortened(&text);
        assert!(cut.len() < TEXT_BYTES_MAX + 100 && cut.ends_with("Read shows the rest.]"), "{}", cut.len());
        assert!(cut.lines().rev().nth(1).is_some_and(|line| line == "ä line"));
        assert_eq!(shortened("short"), "short");
    }
}
