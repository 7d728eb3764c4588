//! A random operator: random commands under random packets, judged by what always holds.
//!
//! * The router runs, and answers each command.
//! * Every packet ends in one place, once what waits has been given up.
//! * The saved configuration, applied to the router that it came from, changes nothing; a new
//!   router takes it, saves the same, and plans nothing.
//! * An empty configuration leaves what was there at the start.
//! * The router forwards by the routes that are typed into the kernel of the twins, once these
//!   rest, and has no table for them when the twins are gone.
//! * SIGTERM ends the router well, within a second.
//!
//! A run follows from its seed, except for the moments at which packets meet commands. A run that
//! fails is repeated with fewer and fewer steps, as long as it fails.

mod grammar;
mod kernel;
mod packets;
mod run;
mod shrink;
mod steps;
mod values;

pub use run::{Plan, repeat, run};
pub use shrink::shrink;
