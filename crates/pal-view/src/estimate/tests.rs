//! Laws and worked examples.
