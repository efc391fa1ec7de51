//! The program as its users run it, and the real sessions that it is for.

mod bad_input;
mod commands;
mod program;
mod real_sessions;
