//! The vocabulary of Palimpsest.
