//! What the fuzz targets share: the laws of a view, a meter of memory, and the grammar of the `render` target.

mod grammar;
mod laws;
mod meter;

pub use grammar::entries;
pub use laws::{accepted, branch_of, growing_equals_deriving, lens};
pub use meter::{Meter, peak_of};
