//! Part of Palimpsest.
