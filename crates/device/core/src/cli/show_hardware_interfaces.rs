//! `show hardware-interfaces`: links, addresses and driver details.

use crate::command_line::{interface_arg, interface_maybe, interface_names, sorted};
use crate::interface::{InterfaceView, Interfaces, SwIfIndex};
use crate::report;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `show hardware-interfaces`
pub struct ShowHardwareInterfaces;

/// The command.
pub static COMMAND: ShowHardwareInterfaces = ShowHardwareInterfaces;

/// Level of detail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Brief,
    Usual,
    All,
}

fn speed(kbps: u32) -> String {
    match kbps {
        0 => "unknown".into(),
        k if k >= 1_000_000 => format!("{} Gbps", f64::from(k) / 1e6),
        k if k >= 1000 => format!("{} Mbps", f64::from(k) / 1e3),
        k => format!("{k} Kbps"),
    }
}

fn text(c: &Control, v: &InterfaceView, detail: Detail, out: &mut Output) {
    let link = report::centre(report::up_down(v.link_up), 8);
    let index = report::centre(&v.sw_if.to_string(), 6);
    out.line(format_args!("{:32}{index}{link}{}", v.name, v.name));
    if detail == Detail::Brief {
        return;
    }
    out.line(format_args!("  Link speed: {}", speed(v.speed_kbps)));
    match v.ethernet {
        true => {
            let promiscuous = if v.promiscuous { ", promiscuous" } else { "" };
            out.line(format_args!("  Ethernet address {}{promiscuous}", v.mac));
        }
        false => out.line(format_args!("  {}", v.dev_type)),
    }
    let device = c.state::<Interfaces>().borrow().device(v.sw_if);
    if let Some(device) = device {
        for line in device.hardware(c, detail == Detail::All) {
            out.line(format_args!("  {line}"));
        }
    }
}

fn value(c: &Control, v: &InterfaceView) -> serde_json::Value {
    let device = c.state::<Interfaces>().borrow().device(v.sw_if);
    json!({
        "name": v.name,
        "index": v.sw_if.get(),
        "type": v.dev_type,
        "link_up": v.link_up,
        "link_speed_kbps": v.speed_kbps,
        "link_mtu": v.link_mtu,
        "mac": v.ethernet.then(|| v.mac.to_string()),
        "offloads": {
            "tx_checksum": v.caps.tx_csum, "tx_tso": v.caps.tx_tso, "tx_uso": v.caps.tx_uso,
        },
        "device": device.map(|d| d.hardware_json(c)),
    })
}

impl Command<Control> for ShowHardwareInterfaces {
    fn path(&self) -> &'static str {
        "show hardware-interfaces"
    }

    fn usage(&self) -> &'static str {
        "[brief|verbose|detail] [<interface> ...]"
    }

    fn help(&self) -> &'static str {
        "Show links, addresses and the state of devices\n\
         `brief' omits device details, `detail' shows all of them."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let mut chosen: Vec<SwIfIndex> = Vec::new();
        let mut detail = Detail::Usual;
        while !args.is_empty() {
            match interface_maybe(c, args) {
                Some(sw_if) => chosen.push(sw_if),
                None => match args.one_of(&["brief", "verbose", "detail"])? {
                    Some("brief") => detail = Detail::Brief,
                    Some("verbose") => detail = Detail::Usual,
                    Some(_) => detail = Detail::All,
                    None => {
                        interface_arg(c, args)?;
                    }
                },
            }
        }
        if chosen.is_empty() {
            chosen = sorted(c);
        }
        let titles = [("Name", 32), ("Idx", 6), ("Link", 8)];
        let heading: String = titles.map(|(t, n)| report::centre(t, n)).concat();
        out.line(format_args!("{heading}Hardware"));
        Ok(report::each(c, chosen, out, move |c, v, out| match out.wants_json() {
            true => out.element(value(c, v)),
            false => text(c, v, detail, out),
        }))
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        let mut words = interface_names(c);
        words.extend(["brief", "verbose", "detail"].map(String::from));
        words
    }
}
