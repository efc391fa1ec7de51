//! Settings from all their places, resolved once to one value; each knows where it came from.
