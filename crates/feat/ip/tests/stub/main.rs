//! IP with protocols that only exist here: what a protocol brings along is all that it needs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod addresses;
mod client;
mod commands;
mod messages;
mod protocol;
mod replacing;
mod settings;
