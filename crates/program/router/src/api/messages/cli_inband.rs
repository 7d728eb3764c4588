//! `cli_inband`: a command line as a message.

use crate::api::message_types::{CliInband, CliInbandReply, VLIB};
use thalweg_api::{Call, Later, Retval};
use thalweg_cli::{Gone, Reply, Status};
use thalweg_graph::Control;

/// Size of a long reply in bytes: a copy of fewer takes some tenths of a millisecond.
const LONG: usize = 1 << 20;

/// The service.
pub static SERVICE: Call<Control, CliInband, CliInbandReply> = Call::later(&VLIB, handle);

fn handle(c: &mut Control, request: CliInband, later: Later<CliInbandReply>) {
    let mut later = Some(later);
    // Put together at last: a text of many megabytes would be moved as it grows.
    let (mut output, mut length) = (Vec::new(), 0);
    let reply = move |piece: Reply| {
        let (text, retval) = match piece {
            Reply::Text(text) => (text, None),
            Reply::Done { text, status } => (text, Some(retval(status))),
            Reply::Completions(_) => return Ok(()),
        };
        length += text.len();
        output.push(text);
        if later.as_ref().is_none_or(Later::is_gone) {
            return Err(Gone);
        }
        if let Some(retval) = retval
            && let Some(later) = later.take()
        {
            let output = std::mem::take(&mut output);
            let reply = move || CliInbandReply { reply: output.concat() };
            match length {
                ..LONG => later.answer(retval, &reply()),
                _ => later.answer_aside(retval, reply),
            }
        }
        Ok(())
    };
    crate::run::serve::run_for_api(c, request.cmd, reply);
}

fn retval(status: Status) -> i32 {
    match status {
        Status::Ok | Status::Quit => 0,
        Status::Failed(code) => code,
        Status::Cancelled => Retval::UNSPECIFIED.0,
    }
}
