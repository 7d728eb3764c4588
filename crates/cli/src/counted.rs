//! Counts with a singular or plural noun.

/// Formats `n` with the noun `one`, which forms its plural with an `s`.
///
/// ```
/// use thalweg_cli::counted;
/// assert_eq!(counted(1, "connection"), "1 connection");
/// assert_eq!(counted(0, "connection"), "0 connections");
/// ```
pub fn counted(n: u64, one: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {one}{s}")
}
