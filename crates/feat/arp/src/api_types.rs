//! Helpers shared by the API messages.

use std::time::{Duration, Instant};
use thalweg_api::types::{Address, InterfaceIndex};
use thalweg_api::{Later, Message, Retval};
use thalweg_cli::{CliError, Output, Task, TaskPoll};
use thalweg_device::api_types::view;
use thalweg_feat_neighbor::arping::{self, Arping, LONGEST, Request};
use thalweg_graph::Control;
use thalweg_wire::MacAddr;

/// Interval of checks that the client is still there.
const LOOK_AT_CLIENT: Duration = Duration::from_secs(1);

/// A client's request.
pub(crate) struct Asked {
    pub(crate) address: Address,
    pub(crate) sw_if_index: InterfaceIndex,
    pub(crate) is_garp: bool,
    pub(crate) repeat: u32,
    pub(crate) interval: f64,
}

fn start(c: &mut Control, asked: &Asked) -> Result<Arping, Retval> {
    let sw_if = view(c, asked.sw_if_index)?.sw_if;
    let ip = asked.address.ip()?;
    let interval = Duration::try_from_secs_f64(asked.interval).ok().filter(|i| *i <= LONGEST);
    let Some(interval) = interval.filter(|_| asked.repeat > 0) else {
        let text = "repeat must be at least 1, interval between 0 and one day";
        return Err(Retval::INVALID_VALUE.because(text));
    };
    let gratuitous = asked.is_garp;
    let request = Request { ip, sw_if, gratuitous, repeat: asked.repeat, interval };
    arping::start(c, request).map_err(retval)
}

fn retval(error: impl Into<CliError>) -> Retval {
    let error = error.into();
    Retval(error.code()).because(error)
}

/// Runs a session and answers with `reply`, or ends it when the client is gone.
pub(crate) fn run<R: Message + Default>(
    c: &mut Control,
    asked: &Asked,
    later: Later<R>,
    reply: fn((u32, MacAddr)) -> R,
) {
    match start(c, asked) {
        Ok(arping) => poll(c, arping, later, reply),
        Err(retval) => later.answer(retval.0, &R::default()),
    }
}

fn poll<R: Message + Default>(
    c: &mut Control,
    mut arping: Arping,
    later: Later<R>,
    reply: fn((u32, MacAddr)) -> R,
) {
    let (now, mut out) = (Instant::now(), Output::new());
    if later.is_gone() {
        return arping.cancel(c, &mut out);
    }
    match arping.poll(c, now, &mut out) {
        TaskPoll::At(at) => {
            let wait = at.saturating_duration_since(now).min(LOOK_AT_CLIENT);
            c.after(wait, move |c| poll(c, arping, later, reply));
        }
        TaskPoll::Done => later.answer(0, &reply(arping.answers())),
        TaskPoll::Failed(error) => later.answer(retval(error).0, &R::default()),
    }
}
