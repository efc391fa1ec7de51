//! Child processes: started in a group of their own, bounded in time and output, ended as a whole.

mod cancel;

pub use cancel::{Cancel, Watch};
