//! `show handoff`: packets handed from worker to worker.

use serde_json::{Value, json};
use thalweg_cli::{Align, Args, CliError, Command, Outcome, Output, Table};
use thalweg_graph::control::{Control, HandOffView};

/// `show handoff`
pub struct ShowHandoff;

/// The command.
pub static COMMAND: ShowHandoff = ShowHandoff;

impl Command<Control> for ShowHandoff {
    fn path(&self) -> &'static str {
        "show handoff"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["show frame-queue"]
    }

    fn help(&self) -> &'static str {
        "Show packets handed from worker to worker\n\
         By queue and pair of workers: frames and packets handed over, packets dropped because there\n\
         was no room, and frames now in the ring that all queues of the pair share."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let views = c.hand_off_views();
        out.json(views.iter().map(to_json).collect());
        out.text(&format(&views));
        Ok(Outcome::Done)
    }
}

fn to_json(v: &HandOffView) -> Value {
    json!({
        "queue": v.queue, "node": &*v.target, "from": v.from, "to": v.to,
        "frames": v.frames, "packets": v.packets, "drops": v.drops,
        "depth": v.depth, "room": v.room,
    })
}

fn format(views: &[HandOffView]) -> String {
    if views.is_empty() {
        return "no worker hands packets to another\n".into();
    }
    let mut table = Table::new()
        .column("Queue", Align::Left, 24)
        .column("Node", Align::Left, 24)
        .column("Workers", Align::Left, 8)
        .column("Frames", Align::Right, 12)
        .column("Packets", Align::Right, 14)
        .column("Drops", Align::Right, 12)
        .column("Depth", Align::Right, 8);
    for v in views {
        table.row([
            v.queue.to_owned(),
            v.target.to_string(),
            format!("{}>{}", v.from, v.to),
            v.frames.to_string(),
            v.packets.to_string(),
            v.drops.to_string(),
            format!("{}/{}", v.depth, v.room),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_each_pair() {
        let view = |from, to, packets| HandOffView {
            queue: "nat44-handoff",
            target: "nat44-out2in".into(),
            from,
            to,
            frames: packets / 200,
            packets,
            drops: packets / 1000,
            depth: to * 3,
            room: 32,
            lines: [0; 3],
        };
        let views = [view(0, 1, 123_456), view(1, 0, 999)];
        thalweg_testkit::golden!("tests/golden/handoff.txt", format(&views));
        assert_eq!(format(&[]), "no worker hands packets to another\n");
        assert_eq!(to_json(&views[0])["drops"], 123);
    }
}
