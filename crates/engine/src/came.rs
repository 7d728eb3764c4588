//! Things that settings name and that may come later than the settings.

/// A table, a bridge or a similar object has come: settings that could not be applied without it
/// are tried again. Interfaces and devices have events of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came;

/// The router's start is over: its document and its script of commands have been run. From now on
/// what is not set is not meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started;
