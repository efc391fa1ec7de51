//! The run of an agent as a machine: it is told what happened and says what to do next. It knows no clock, no files, no
//! network, and it never waits.
