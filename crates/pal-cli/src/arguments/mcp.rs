//! Arguments of `pal mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ColorArg, ConfigScopeArg};

/// Serve memory and recall to other agents over the Model Context Protocol; or add, list, remove and restart MCP servers
///
/// Without a subcommand, serves on standard input and output: any MCP client can search, read and write the memories of a project
/// and search its sessions. Clients start the server themselves; docs/mcp.md shows how to configure them. Every memory written
/// this way is versioned, names the program that wrote it, and has its secrets masked.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  claude mcp add palimpsest -- pal mcp\n  codex mcp add palimpsest -- pal mcp --project ~/src/thing\n  pal mcp --read-only                         no writing tools\n  pal mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes\n  pal mcp list\n\nIn a session, /mcp shows the state of each server and /mcp restart NAME restarts one; `pal mcp restart NAME` does so in all running sessions."
)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: Option<McpCommand>,
    /// Directory of the project (default: the current directory)
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) project: Option<PathBuf>,
    /// Offer no tools that write
    #[arg(long)]
    pub(crate) read_only: bool,
}

#[derive(Subcommand)]
pub(crate) enum McpCommand {
    Add(McpAddArgs),
    List(McpListArgs),
    Remove(McpRemoveArgs),
    Restart(McpRestartArgs),
}

/// Add an MCP server to your settings
#[derive(Args)]
#[command(
    after_help = "Examples:\n  pal mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes\n  pal mcp add tracker https://tracker.example.com/mcp --header 'Authorization: Bearer ${TRACKER_TOKEN}'\n  pal mcp add db --env DSN='${DATABASE_DSN}' --scope local -- db-server"
)]
pub(crate) struct McpAddArgs {
    /// Name of the server, which prefixes its tools
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// URL of an HTTP server, or after `--` a command with its arguments
    #[arg(value_name = "URL|COMMAND", required = true)]
    pub(crate) target: Vec<String>,
    /// Environment variable as NAME=VALUE; may be repeated. ${NAME} is taken from the environment at start
    #[arg(short = 'e', short_alias = 'v', long = "env", value_name = "NAME=VALUE")]
    pub(crate) variables: Vec<String>,
    /// Header of an HTTP server as "Name: value"; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// Settings file to change
    #[arg(short, long, value_enum, default_value = "user")]
    pub(crate) scope: ConfigScopeArg,
    /// Transport; that of the target by default
    #[arg(short, long, value_name = "stdio|http")]
    pub(crate) transport: Option<String>,
}

/// List the MCP servers of a session in this directory, with their sources
#[derive(Args)]
#[command(after_help = "Examples:\n  pal mcp list\n  pal mcp list --json | jq '.[].name'")]
pub(crate) struct McpListArgs {
    /// Color output
    #[arg(long = "color", alias = "colour", value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorArg,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove an MCP server from the settings of pal
///
/// A server of another agent or of .mcp.json stays in its file; this command then leaves it out by `mcp_disabled`.
#[derive(Args)]
#[command(after_help = "Examples:\n  pal mcp remove files\n  pal mcp remove files --scope project")]
pub(crate) struct McpRemoveArgs {
    /// Name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Settings file to change
    #[arg(short, long, value_enum, default_value = "user")]
    pub(crate) scope: ConfigScopeArg,
}

/// Restart an MCP server in every running session that has it
///
/// Reaches the sessions that `pal agents` lists, in the terminal, in editors and of `pal -p`.
#[derive(Args)]
#[command(after_help = "Examples:\n  pal mcp restart files\n  pal agents          the running sessions")]
pub(crate) struct McpRestartArgs {
    /// Name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}
