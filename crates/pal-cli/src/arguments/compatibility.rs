//! Flags that users of Claude Code type.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Flags of Claude Code that have the same meaning here.
#[derive(Args, Clone)]
pub(crate) struct CompatibilityArgs {
    /// Allow everything that no rule denies, in the sandbox: --permission-mode bypass
    #[arg(long, conflicts_with = "permission_mode", help_heading = "Permissions")]
    pub(crate) dangerously_skip_permissions: bool,
    /// Offer only these built-in tools, separated by commas; "" for none, "default" for all
    #[arg(long, value_name = "TOOLS", help_heading = "Permissions")]
    pub(crate) tools: Option<String>,
    /// Reasoning effort (default: the one in the settings)
    #[arg(long, value_enum, value_name = "LEVEL", help_heading = "Model")]
    pub(crate) effort: Option<EffortArg>,
    /// Replace the system prompt by the text of a file
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt", help_heading = "Model")]
    pub(crate) system_prompt_file: Option<PathBuf>,
    /// Append the text of a file to the system prompt
    #[arg(long, value_name = "FILE", conflicts_with = "append_system_prompt", help_heading = "Model")]
    pub(crate) append_system_prompt_file: Option<PathBuf>,
    /// Model that answers the rest of a prompt if the model is overloaded
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub(crate) fallback_model: Option<String>,
    /// Define subagents as JSON: {"reviewer": {"description": "…", "prompt": "…"}}
    #[arg(long, value_name = "JSON", help_heading = "Project")]
    pub(crate) agents: Option<String>,
    /// Read only the settings files of these sources: user, project, local; separated by commas
    #[arg(long, value_name = "SOURCES", help_heading = "Project")]
    pub(crate) setting_sources: Option<String>,
    /// Work in a git worktree of its own, a new one or that of this name: .worktrees/NAME
    #[arg(short = 'w', long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", value_parser = worktree_name, help_heading = "Session")]
    pub(crate) worktree: Option<String>,
    /// Write a log, in the terminal to debug.log in the home of pal; optionally a filter such as debug or pal_agent=trace
    #[arg(short = 'd', long, value_name = "FILTER", num_args = 0..=1, require_equals = true, default_missing_value = "debug", help_heading = "Agent")]
    pub(crate) debug: Option<String>,
}

/// Checks the name of a worktree, which becomes a directory and a branch.
fn worktree_name(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    match text.starts_with(['.', '-']) || !text.chars().all(is_plain) {
        true => Err(String::from(
            "a name has letters, digits, dashes, dots and underscores; put a prompt before the flag, or write --worktree=NAME",
        )),
        false => Ok(text.to_owned()),
    }
}

/// Reasoning effort on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum EffortArg {
    /// Cheapest and fastest
    Low,
    /// Between low and high
    Medium,
    /// Thorough
    High,
    /// More than high
    Xhigh,
    /// As much as the model can
    Max,
}

impl EffortArg {
    /// Name in settings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            EffortArg::Low => "low",
            EffortArg::Medium => "medium",
            EffortArg::High => "high",
            EffortArg::Xhigh => "xhigh",
            EffortArg::Max => "max",
        }
    }
}
