//! What is gathered around a session, on real folders and real repositories.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod changing;
mod identity;
mod including;
mod layouts;
mod places;
mod repositories;
mod ruling;
