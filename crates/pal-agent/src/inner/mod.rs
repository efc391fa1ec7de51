//! Tools that look into the session itself: what was said, how full the window is, which tools there are.

pub(crate) mod context;
pub(crate) mod recall;
