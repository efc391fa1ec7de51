//! The `pal` program.

fn main() {}
