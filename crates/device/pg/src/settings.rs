//! Configuration of packet generator ports. Streams and captures are not part of it: they are
//! started for a test and end with it.

use crate::port::port_id;
use crate::stream::{Mode, Pg};
use thalweg_config::declare::{
    Doc, Draft, Dump, Item, Kind, Problem, Rule, Section, interface_key, rank,
};
use thalweg_graph::Control;

/// Section of ports.
pub(crate) struct Settings;

pub(crate) static SETTINGS: Settings = Settings;

const RULES: &[Rule] =
    &[Rule::new("thalweg.interfaces.*.mode", Kind::Word(&["ethernet", "ip", "ip4", "ip6"]))];

impl Section<Control> for Settings {
    fn rules(&'static self) -> Vec<Rule> {
        RULES.to_vec()
    }

    fn dump(&self, c: &Control, out: &mut Dump<'_>) {
        let pg = c.state::<Pg>();
        for (sw_if, mode) in pg.borrow().modes().filter(|(_, m)| *m != Mode::Ethernet) {
            out.set(&c.interface_name(sw_if), "mode", mode.word());
        }
    }

    fn items(&self, doc: &Doc<'_>, out: &mut Draft) {
        for i in doc.interfaces() {
            if port_id(&i.name).is_none() {
                let found = i.get("mode").filter(|_| !i.name.starts_with("host-"));
                if let Some(f) = found {
                    out.problem(Problem::at(f.node, f.path, "this interface has no mode setting"));
                }
                continue;
            }
            out.claim(&i.name);
            let mut command = format!("create packet-generator interface {}", i.name);
            if let Some(found) = i.get("mode") {
                match found.node.text() {
                    Some("ethernet") => {}
                    Some(mode @ ("ip4" | "ip6")) => command += &format!(" mode {mode}"),
                    _ => {
                        let text = "a packet generator's mode is ethernet, ip4 or ip6";
                        out.problem(Problem::at(found.node, found.path, text));
                    }
                }
            }
            let item = Item::new(rank::CREATE, interface_key(&i.name), i.path(""), command)
                .unset(format!("delete packet-generator interface {}", i.name));
            out.add(item.order(i.number).recreate());
        }
    }
}
