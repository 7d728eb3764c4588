//! A random operator: random commands under random packets, judged by what always holds.
//!
//! * The router runs, and answers each command.
//! * Every packet ends in one place, once what waits has been given up.
//! * The saved configuration, applied to the router that it came from, changes nothing; a new
//!   router takes it, saves the same, and plans nothing.
//! * A configuration that was saved earlier is in force when it is applied, or refused as a whole;
//!   unless it is confirmed, the one before it returns.
//! * An empty configuration leaves what was there at the start.
//! * No loop of a worker takes long.
//! * The router forwards by the routes that are typed into the kernel of the twins, once these
//!   rest, and has no table for them when the twins are gone.
//! * SIGTERM ends the router well, within a second on an idle machine.
//! * Steps that are repeated in one router leave no more memory allocated each time.
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
