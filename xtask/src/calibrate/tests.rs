//! The held-out figures are the bar.
