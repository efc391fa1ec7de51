//! Tests of the view as its users see it: entries in, requests out.

mod common;
mod found;
mod laws;
