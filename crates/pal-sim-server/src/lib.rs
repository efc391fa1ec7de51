//! The simulator behind a socket: HTTP on loopback, a clock that is real or virtual, and a folder of what was said.
