//! Memory and recall for other agents, as an MCP server on standard input and output.
//!
//! Offers four tools: `memory_search`, `memory_read`, `memory_write` and `recall`. Writes are recorded with
//! the client's name, secrets are masked, and every change can be undone. Returned text may contain anything,
//! so tags that address models are neutralised.

mod memory_service;
mod stdio_server;
mod tool_definitions;
mod tool_inputs;

pub use memory_service::MemoryService;
pub use stdio_server::serve_stdio;
