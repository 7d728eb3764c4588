//! Common parts of `thalweg`'s programs where they meet their user: lines on standard output and
//! error, and exit statuses.
//!
//! * [`put!`] and [`say!`] print to standard output, [`report!`] to standard error;
//! * [`fail`] says what went wrong, and gives the exit status: [`FAILED`], [`USAGE`] or [`FAULT`];
//! * [`log::Log`] is a log whose writers never wait;
//! * [`harmless`] takes out of text of others what a terminal obeys.

#![forbid(unsafe_code)]

pub mod log;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

/// Exit status: arguments or configuration are wrong.
pub const USAGE: u8 = 2;
/// Exit status: the operation failed.
pub const FAILED: u8 = 1;
/// A fault of the program itself.
pub const FAULT: u8 = 70;

/// Prints to standard error; ignores a closed one. Nothing that it quotes is obeyed by a terminal.
#[macro_export]
macro_rules! report {
    ($($what:tt)*) => {{
        let text = format!($($what)*);
        // The output may go on, and be read.
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr().lock(),
            format_args!("thalweg: {}\n", $crate::harmless(&text)),
        );
    }};
}

/// Error of the first failed write to standard output.
static LOST: OnceLock<String> = OnceLock::new();

/// Prints to standard output, for [`put!`].
pub fn print(text: fmt::Arguments<'_>) {
    note_lost(io::stdout().lock().write_fmt(text));
}

fn note_lost(written: io::Result<()>) {
    if let Err(e) = written
        && e.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| e.to_string());
    }
}

/// The exit status of a program: [`FAILED`] if some of its output was lost, e.g. as the disk is
/// full, and `status` otherwise. To be called last.
pub fn ended(status: ExitCode) -> ExitCode {
    note_lost(io::stdout().lock().flush());
    match LOST.get() {
        Some(why) => fail(FAILED, &format_args!("cannot write to standard output: {why}")),
        None => status,
    }
}

/// Prints to standard output, without a line's end; ignores a closed one: a reader of the first
/// lines only (`| head`) still gets the report's file. Other failures show in the [status](ended).
#[macro_export]
macro_rules! put {
    ($($what:tt)*) => {
        $crate::print(format_args!($($what)*))
    };
}

/// Prints a line to standard output, as [`put!`] does. Names in it may be of others, such as those
/// of a profile: a terminal obeys no part of them. A line with colours is for [`put!`].
#[macro_export]
macro_rules! say {
    () => { $crate::put!("\n") };
    ($($what:tt)*) => {
        $crate::put!("{}\n", $crate::harmless(&format!($($what)*)))
    };
}

/// Prints what went wrong on standard error, one cause after the other, and returns the status.
pub fn fail(status: u8, error: &dyn std::fmt::Display) -> ExitCode {
    report!("{error}");
    ExitCode::from(status)
}

/// Text of others without what a terminal obeys: control characters, such as those that begin
/// escape sequences, and marks that turn the direction of writing are named (`\u{1b}`). Ends of
/// lines and tabs stay.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2066}'..='\u{2069}')
    };
    if !text.contains(obeyed) {
        return text.into();
    }
    let mut out = String::new();
    for c in text.chars() {
        match obeyed(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_has_nothing_that_a_terminal_obeys() {
        let text = "a\x1b[31m\r\u{9b}2J\u{7f}\u{202e}b\u{e9}\tc\nd";
        assert_eq!(harmless(text), "a\\u{1b}[31m\\r\\u{9b}2J\\u{7f}\\u{202e}b\u{e9}\tc\nd");
        assert!(matches!(harmless("all of it is harmless"), Cow::Borrowed(_)));
    }
}
