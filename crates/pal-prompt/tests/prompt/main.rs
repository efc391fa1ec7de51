//! Tests of prompt assembly, through its public surface.

mod account;
mod chain;
mod common;
mod contexts;
mod spoofing;
mod stable;
mod tools;
mod wire;
