//! CLI arguments shared by the commands.

use crate::error::PgError;
use crate::port::port_name;
use crate::stream::{Pg, StreamChange};
use crate::template::{Sizes, Vary};
use thalweg_buffer::FRAME_SIZE;
use thalweg_cli::{Args, CliError};
use thalweg_graph::Control;

/// Converts an error to a command's error.
pub(crate) fn failed(e: PgError) -> CliError {
    match e {
        PgError::Device(e) => thalweg_device::command_line::refused(e),
        e => CliError::failed(e),
    }
}

pub(crate) fn stream_names(c: &Control) -> Vec<String> {
    c.state::<Pg>().borrow().streams().iter().map(|s| s.spec.name.clone()).collect()
}

pub(crate) fn port_names(c: &Control) -> Vec<String> {
    c.state::<Pg>().borrow().port_ids().map(port_name).collect()
}

/// Takes a parameter that can also be changed later, if one is next.
pub(crate) fn parameter(args: &mut Args<'_>, to: &mut StreamChange) -> Result<bool, CliError> {
    if args.exact("limit") {
        let n = args.f64("limit")?;
        to.limit = Some(if n > 0.0 { n as u64 } else { 0 });
    } else if args.exact("rate") {
        let rate = args.with("rate", "packets per second, such as 1000 or 1e6", |w| {
            w.parse().ok().filter(|r: &f64| r.is_finite() && *r >= 0.0)
        })?;
        to.rate = Some(rate);
    } else if args.exact("size") {
        to.sizes = Some(sizes(args)?);
    } else if args.exact("maxframe") {
        to.max_frame = Some(args.number("maxframe", 1, FRAME_SIZE as u64)? as usize);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// `64`, `64-1500`, `64 - 1500` or `64+1500`.
fn sizes(args: &mut Args<'_>) -> Result<Sizes, CliError> {
    let expected = "sizes such as 64, 64-1500 or 64+1500 (random)";
    let joins = |w: &str| w.starts_with(['-', '+']) || w.ends_with(['-', '+']);
    let mut text = args.word("size")?.to_owned();
    while text.ends_with(['-', '+']) || args.peek().is_some_and(joins) {
        text.push_str(args.word("size")?);
    }
    let bad = || args.bad_last("size", expected);
    let (vary, mark) = match text.contains('+') {
        true => (Vary::Random, '+'),
        false => (Vary::Increment, '-'),
    };
    let (low, high) = text.split_once(mark).unwrap_or((&text, &text));
    let number = |w: &str| w.parse::<u16>().map(usize::from).map_err(|_| bad());
    Ok(Sizes { min: number(low)?, max: number(high)?, vary })
}
