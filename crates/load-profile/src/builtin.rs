//! Profiles that are built in.

/// A built-in profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! builtins {
    ($($name:literal),* $(,)?) => {
        &[$(Builtin { name: $name, text: include_str!(concat!("profiles/", $name, ".yaml")) }),*]
    };
}

/// All of them.
pub const BUILTINS: &[Builtin] =
    builtins!["imix", "bench", "l2xc", "ipv4", "mpls", "cps-short", "cps-long"];
