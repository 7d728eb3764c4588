//! Cost of idle features: on an arc, as a tap, and as a hop of the graph.

use thalweg_bench_common::{Apart, Cell, Column, Series, Spread, Table};
use thalweg_bench_pg::Router;
use thalweg_bench_pg::paths::Case;
use thalweg_bench_pg::turns::{Plan, Turns, in_turn};
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Frame, Iface, PktMut};
use thalweg_engine::Feature;
use thalweg_graph::{
    Built, FeatureDecl, FrameVerdict, Kind, Node, NodeCx, NodeDecl, Tap, TapCx, Verdict,
};

/// Features of a kind that are enabled at once.
const SEVERAL: usize = 4;

/// A node that decides nothing about the frame.
struct Whole;

impl Node for Whole {
    const TOUCHES_DATA: bool = false;
    fn packet(&mut self, _: &mut NodeCx<'_>, _: PktMut<'_>) -> Verdict {
        Verdict::CONTINUE
    }
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        _: &mut NodeCx<'_>,
        _: &mut Frame,
        _: &mut [Verdict],
    ) -> FrameVerdict {
        FrameVerdict::Whole(Verdict::CONTINUE)
    }
}

/// A node that decides nothing about each packet.
struct Each;

impl Node for Each {
    const TOUCHES_DATA: bool = false;
    fn packet(&mut self, _: &mut NodeCx<'_>, _: PktMut<'_>) -> Verdict {
        Verdict::CONTINUE
    }
}

/// Reads 16 bytes of each packet, which say nothing.
struct Touch(u64);

impl Node for Touch {
    fn packet(&mut self, _: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        if let Some(head) = p.data().first_chunk::<16>() {
            self.0 |= u128::from_ne_bytes(*head) as u64;
        }
        Verdict::CONTINUE
    }
}

/// Counts down to a sample that never comes.
struct Look(usize);

impl Tap for Look {
    fn frame(&mut self, _: &mut TapCx, frame: &mut Frame, _: Iface) {
        self.0 = self.0.wrapping_sub(frame.len());
    }
}

macro_rules! features {
    ($($name:ident, $label:literal, $arc:literal, $kind:ident, $build:expr;)*) => {
        $(static $name: NodeDecl = NodeDecl {
            name: $label,
            kind: Kind::$kind,
            feature: Some(FeatureDecl::on($arc).after(&["sflow"])),
            build: |_| $build,
            ..NodeDecl::DEFAULT
        };)*
        static IDLE: Feature =
            Feature { name: "idle", nodes: &[$(&$name),*], ..Feature::DEFAULT };
    };
}

features! {
    WHOLE_1, "whole-1", "ip4-unicast", Internal, Built::node(Whole);
    WHOLE_2, "whole-2", "ip4-unicast", Internal, Built::node(Whole);
    WHOLE_3, "whole-3", "ip4-unicast", Internal, Built::node(Whole);
    WHOLE_4, "whole-4", "ip4-unicast", Internal, Built::node(Whole);
    EACH_1, "each-1", "ip4-unicast", Internal, Built::node(Each);
    EACH_2, "each-2", "ip4-unicast", Internal, Built::node(Each);
    EACH_3, "each-3", "ip4-unicast", Internal, Built::node(Each);
    EACH_4, "each-4", "ip4-unicast", Internal, Built::node(Each);
    TOUCH_1, "touch-1", "ip4-unicast", Internal, Built::node(Touch(0));
    TOUCH_2, "touch-2", "ip4-unicast", Internal, Built::node(Touch(0));
    TOUCH_3, "touch-3", "ip4-unicast", Internal, Built::node(Touch(0));
    TOUCH_4, "touch-4", "ip4-unicast", Internal, Built::node(Touch(0));
    HOP_1, "hop-1", "device-input", Internal, Built::node(Whole);
    HOP_2, "hop-2", "device-input", Internal, Built::node(Whole);
    HOP_3, "hop-3", "device-input", Internal, Built::node(Whole);
    HOP_4, "hop-4", "device-input", Internal, Built::node(Whole);
    TAP_1, "tap-1", "device-input", Tap, Built::tap(Look(0));
    TAP_2, "tap-2", "device-input", Tap, Built::tap(Look(0));
    TAP_3, "tap-3", "device-input", Tap, Built::tap(Look(0));
    TAP_4, "tap-4", "device-input", Tap, Built::tap(Look(0));
}

/// A setting that takes its turn: a name for the table, the arc, the features' name without their
/// number.
struct Setting {
    what: &'static str,
    arc: &'static str,
    feature: &'static str,
}

const SETTINGS: [Setting; 6] = [
    Setting { what: "nothing", arc: "", feature: "" },
    Setting { what: "a hop, on device-input", arc: "device-input", feature: "hop" },
    Setting { what: "a tap, on device-input", arc: "device-input", feature: "tap" },
    Setting { what: "a feature that passes frames on", arc: "ip4-unicast", feature: "whole" },
    Setting { what: "one that is asked about each packet", arc: "ip4-unicast", feature: "each" },
    Setting { what: "one that reads each packet", arc: "ip4-unicast", feature: "touch" },
];

fn switch(r: &mut Router, setting: &Setting, on: bool) {
    if setting.feature.is_empty() {
        return;
    }
    let c = r.control();
    let pg0 = thalweg_device::interface::find(c, "pg0").unwrap_or_else(|e| panic!("{e}"));
    for n in 1..=SEVERAL {
        let name = format!("{}-{n}", setting.feature);
        if let Err(e) = c.enable_feature(setting.arc, &name, pg0, on) {
            panic!("{name}: {e}");
        }
    }
    c.sync();
}

/// Clocks per packet that one feature adds to the whole loop, round by round.
fn added(with: &Series, without: &Series) -> Result<Spread, Apart> {
    with.over(without)?;
    let pairs = with.values().into_iter().zip(without.values());
    Ok(Spread::of(&pairs.map(|(a, b)| (a - b) / SEVERAL as f64).collect::<Vec<_>>()))
}

fn run(case: Case, plan: Plan, table: &mut Table) {
    let mut r = Router::start_with(&[Some(thalweg_bench_pg::cores() - 1)], &[&IDLE]);
    case.set_up(&mut r);
    r.cli("packet-generator enable-stream");
    let own = |s: &&Setting| case != Case::L2 || s.arc != "ip4-unicast";
    let settings: Vec<&Setting> = SETTINGS.iter().filter(own).collect();
    let mut before: Option<&Setting> = None;
    let turns: Vec<Turns> = in_turn(plan, case.name(), &mut r, &settings, |r, setting| {
        if let Some(old) = before.replace(setting) {
            switch(r, old, false);
        }
        switch(r, setting, true);
    });
    r.stop();
    for (setting, t) in settings.iter().zip(&turns).skip(1) {
        let own = |w: &thalweg_bench_pg::Window| w.clocks_of(&format!("{}-1", setting.feature));
        let tap = setting.feature == "tap";
        table.row(vec![
            case.name().into(),
            setting.what.into(),
            match added(&t.loops, &turns[0].loops) {
                Ok(spread) => Cell::Added(spread, 2),
                Err(apart) => Cell::Missing(apart.to_string()),
            },
            if tap { Cell::None } else { Cell::Added(t.spread_of(own), 2) },
        ]);
    }
}

/// Measures.
pub fn tables(plan: Plan) -> Vec<Table> {
    let mut table = Table::new(
        "Idle features",
        vec![
            Column::text("path"),
            Column::text("what"),
            Column::values("added to the loop", "clocks/packet"),
            Column::values("its own", "clocks/packet"),
        ],
    );
    for case in [Case::L2, Case::OneFlow] {
        run(case, plan, &mut table);
    }
    table.note(format!(
        "{SEVERAL} features of a kind are enabled at once, in turns with none; frames of 256. Added is the difference of whole loops by the number of features, round by \
         round; its own is what the engine counts for the node, the reading of the clock included.",
    ));
    vec![table]
}
