//! What is gathered around a session, on real folders and real repositories.
#![cfg(unix)]

mod changing;
mod layouts;
mod places;
mod repositories;
