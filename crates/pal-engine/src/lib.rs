//! The driver: a session on disk, its view, and the carrying out of what the layers decide.
