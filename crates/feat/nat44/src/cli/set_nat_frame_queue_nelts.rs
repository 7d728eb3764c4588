//! `set nat frame-queue-nelts`.

use crate::api_types::queue_room;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `set nat frame-queue-nelts`
pub struct SetNatFrameQueueNelts;

/// The command.
pub static COMMAND: SetNatFrameQueueNelts = SetNatFrameQueueNelts;

impl Command<Control> for SetNatFrameQueueNelts {
    fn path(&self) -> &'static str {
        "set nat frame-queue-nelts"
    }

    fn usage(&self) -> &'static str {
        "<number>"
    }

    fn help(&self) -> &'static str {
        "Set the capacity of the queues between workers, in frames\n\
         The capacity is fixed: any other value is refused."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let frames = args.number("frames", 1, u64::from(u32::MAX))? as u32;
        args.end()?;
        match queue_room(c) {
            room if room == frames => Ok(Outcome::Done),
            0 => Err(CliError::failed("there are no queues with a single worker")),
            room => {
                let text = format!("queues between workers have a fixed capacity of {room} frames");
                Err(CliError::failed(text))
            }
        }
    }
}
