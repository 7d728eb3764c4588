//! VPP's binary API: messages, their codec and description, and the socket server.
//!
//! This crate knows no feature. A message is a struct with `#[derive(`[`Message`]`)]`, which
//! `cargo xtask api` writes from VPP's description. A feature has a [`Service`] that handles it: a
//! [`Call`], a [`Dump`] or a [`Stream`] over the main thread's state. Encoding, decoding, the CRC
//! and the JSON description come from the struct. The binary collects the services in a
//! [`Registry`]; a [`server::Server`] accepts clients on a thread of its own, and the main thread
//! handles their requests in [`Hub::serve`].
//!
//! # Protocol
//!
//! Each message is preceded by 16 bytes, of which four at offset 8 are the message's length. A
//! message begins with its id. A client learns the ids by `sockclnt_create` (15), whose reply (16)
//! lists each message by name and CRC; a message with a different CRC is not supported. The
//! requests of one client are handled in order.
#![forbid(unsafe_code)]

extern crate self as thalweg_api;

mod client;
mod clients;
mod fuzz;
mod hub;
pub mod json;
mod macros;
pub mod memclnt;
mod message_types;
mod registry;
mod retval;
pub mod schema;
pub mod server;
mod service;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod types;
pub mod wire;

pub use client::ClientId;
pub use clients::{ClientInfo, Clients, Gone, Subscribers};
pub use fuzz::fuzz_message;
pub use hub::{Hub, Job, Replayed};
pub use registry::{Registry, RegistryError, write_json};
pub use retval::Retval;
pub use service::{
    Call, Caller, Details, Dump, Head, Ids, LateStream, Later, Message, Rest, Service, Stream,
    Walk, encode, walk_each,
};
pub use thalweg_api_derive::{ApiType, Message};
pub use wire::{Text, Wire};

/// Name of the socket in the directory of sockets.
pub const SOCKET: &str = "api.sock";
