//! What is gathered around a session, on real folders and real repositories.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod identity;
mod instruction_includes;
mod instruction_updates;
mod layouts;
mod path_rules;
mod project_fixture;
mod repositories;
