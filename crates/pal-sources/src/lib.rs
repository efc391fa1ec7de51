//! What is around a session on disk: instruction files, the git repository, the machine. Gathered here as the plain
//! data of `pal-prompt`; what it means is decided there.
