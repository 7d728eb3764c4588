//! `show tap`: TAPs, and their ends in the kernel.

use crate::cli::delete_tap::tap_names;
use crate::config::{DEFAULT_RING, Flags};
use crate::device::{Tap, Taps};
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::{InterfaceView, SwIfIndex, interface, interface_arg};
use thalweg_device_linux::Framing;
use thalweg_graph::Control;

/// `show tap [<interface> ...]`
pub struct ShowTap;

/// The command.
pub static COMMAND: ShowTap = ShowTap;

fn flag(tap: &Tap, flag: Flags) -> u8 {
    tap.config.flags.has(flag).into()
}

fn text(v: &InterfaceView, tap: &Tap, out: &mut Output) {
    let (info, host) = (tap.info.borrow(), &tap.config.host);
    let is_ethernet = tap.config.framing() == Framing::Ethernet;
    out.line(format_args!("Interface: {} (ifindex {})", v.name, v.sw_if));
    out.line(format_args!("  name \"{}\"", info.name));
    if let Some(namespace) = &host.namespace {
        out.line(format_args!("  host-ns \"{namespace}\""));
    }
    if let Some(bridge) = &host.bridge {
        out.line(format_args!("  host-bridge \"{bridge}\""));
    }
    if let Some(mtu) = host.mtu {
        out.line(format_args!("  host-mtu-size \"{mtu}\""));
    }
    if is_ethernet {
        out.line(format_args!("  host-mac-addr: {}", info.mac));
    }
    if tap.is_away() {
        out.line(format_args!("  away: {}", tap.why_away()));
    }
    out.line(format_args!("  host-ifindex: {}", info.ifindex));
    out.line(format_args!("  host-mtu: {}", info.mtu));
    out.line(format_args!("  host-carrier-up: {}", u8::from(tap.has_carrier())));
    let fds: Vec<_> = tap.descriptors().iter().map(i32::to_string).collect();
    out.line(format_args!("  tap-fds {}", fds.join(" ")));
    out.line(format_args!("  gso-enabled {}", flag(tap, Flags::GSO)));
    out.line(format_args!("  csum-enabled {}", flag(tap, Flags::CSUM_OFFLOAD)));
    out.line(format_args!("  packet-coalesce {}", flag(tap, Flags::GRO_COALESCE)));
    out.line(format_args!("  persistent {}", flag(tap, Flags::PERSIST)));
    if is_ethernet {
        out.line(format_args!("  mac Address: {}", v.mac));
    }
    out.line(format_args!("  device instance: {}", tap.id));
    out.line(format_args!("  admin state: {}", if v.admin_up { "up" } else { "down" }));
    out.line(format_args!("  Number of RX queues  {}", tap.config.rx_queues));
}

fn value(v: &InterfaceView, tap: &Tap) -> serde_json::Value {
    let (info, config) = (tap.info.borrow(), &tap.config);
    let host = &config.host;
    let prefix = |ip: String, length: u8| format!("{ip}/{length}");
    let flags: Vec<&str> =
        Flags::WORDS.iter().filter(|(_, f)| config.flags.has(*f)).map(|(word, _)| *word).collect();
    json!({
        "name": v.name,
        "index": v.sw_if.get(),
        "id": tap.id,
        "device": info.name,
        "ifindex": info.ifindex,
        "namespace": host.namespace,
        "bridge": host.bridge,
        "away": tap.is_away().then(|| tap.why_away()),
        "carrier": tap.has_carrier(),
        "mac": v.ethernet.then(|| v.mac.to_string()),
        "host_mac": v.ethernet.then(|| info.mac.to_string()),
        "host_mtu": info.mtu,
        "host_ip4": host.ip4.map(|(ip, length)| prefix(ip.to_string(), length)),
        "host_ip6": host.ip6.map(|(ip, length)| prefix(ip.to_string(), length)),
        "host_ip4_gw": host.ip4_gw.map(|ip| ip.to_string()),
        "host_ip6_gw": host.ip6_gw.map(|ip| ip.to_string()),
        "flags": flags,
        "rx_queues": config.rx_queues,
        "rx_ring_size": config.rx_ring.unwrap_or(DEFAULT_RING),
        "tx_ring_size": config.tx_ring.unwrap_or(DEFAULT_RING),
        "admin_up": v.admin_up,
    })
}

fn chosen(c: &Control, args: &mut Args<'_>, of: Framing) -> Result<Vec<SwIfIndex>, CliError> {
    let mut chosen = Vec::new();
    while !args.is_empty() {
        // VPP's word for its rings, which a TAP here does not have.
        if args.exact("descriptors") || args.exact("desc") {
            continue;
        }
        let sw_if = interface_arg(c, args)?;
        if Taps::get(c, sw_if).is_none_or(|tap| tap.config.framing() != of) {
            let kind = if of == Framing::Ip { "a tun interface" } else { "a tap interface" };
            return Err(args.bad_last("interface", kind));
        }
        chosen.push(sw_if);
    }
    Ok(chosen)
}

/// Shows TAPs or TUNs: those that are named, or all.
pub(crate) fn show(
    c: &Control,
    args: &mut Args<'_>,
    out: &mut Output,
    of: Framing,
) -> Result<Outcome<Control>, CliError> {
    let chosen = chosen(c, args, of)?;
    let mut values = Vec::new();
    for (sw_if, tap) in Taps::all(c) {
        let wanted = chosen.is_empty() || chosen.contains(&sw_if);
        let Ok(v) = interface::view(c, sw_if) else { continue };
        match out.wants_json() {
            _ if !wanted || tap.config.framing() != of => {}
            true => values.push(value(&v, &tap)),
            false => text(&v, &tap, out),
        }
    }
    out.json(values.into());
    Ok(Outcome::Done)
}

impl Command<Control> for ShowTap {
    fn path(&self) -> &'static str {
        "show tap"
    }

    fn usage(&self) -> &'static str {
        "[<interface> ...]"
    }

    fn help(&self) -> &'static str {
        "Show TAP interfaces and the kernel's devices at their other ends; TUNs: `show tun'"
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        show(c, args, out, Framing::Ethernet)
    }

    fn complete(&self, c: &Control, _before: &[&str], _partial: &str) -> Vec<String> {
        tap_names(c)
    }
}
