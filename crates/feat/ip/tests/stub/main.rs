//! IP with protocols that only exist here: a protocol needs only what it brings along.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod addresses;
mod client;
mod commands;
mod messages;
mod protocol;
mod replacing;
mod settings;
