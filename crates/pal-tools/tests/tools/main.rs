//! What a model can rely on when it calls the tools.

mod common;
mod edit;
mod fetch;
mod laws;
mod places;
mod read;
mod search;
mod skills;
mod write;
