//! The fence around shell commands: bubblewrap where it works, else Landlock and seccomp.
