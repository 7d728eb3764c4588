//! What is sent, and through what: options that all searches have.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use thalweg_device::MacAddr;
use thalweg_load::talk::{Exchange, Plan, Protocol, Talk};
use thalweg_netns::{Netns, enter_user_namespace};

use super::device::Device;
use super::far::{self, Kind, Lab, Ports, Wanted};
use super::number::{bounded, share};
use super::set::Set;

/// Connections and device.
#[derive(clap::Args)]
pub(super) struct Traffic {
    /// Share of UDP connections in percent
    #[arg(short = 'u', long, value_name = "PERCENT", default_value = "0", value_parser = share(1))]
    pub(super) udp_percent: f64,
    /// Requests of a connection, each with its response, 1 to 10000
    #[arg(short = 'n', long, value_name = "N", default_value = "1", value_parser = bounded(1, 10_000))]
    pub(super) num_messages: u64,
    /// Bytes of each message, 20 to 1456
    #[arg(short = 's', long, value_name = "BYTES", default_value = "20", value_parser = bounded(20, 1456))]
    pub(super) message_size: u64,
    /// Time that a server takes for a response in milliseconds, 0 to 500
    #[arg(short = 'w', long, value_name = "MS", default_value = "0", value_parser = bounded(0, 500))]
    pub(super) server_wait: u64,
    /// Maximum number of concurrent flows, 100 to 4M
    #[arg(short = 'f', long, value_name = "N", value_parser = bounded(100, 4_000_000))]
    pub(super) max_flows: Option<u64>,
    /// What the device under test does with the packets of its two ports
    #[arg(long, value_enum, default_value = "tracker")]
    pub(super) device: Set,
    /// The device stands between virtual Ethernet pairs, in namespaces made for it; without, it is
    /// this router in this process
    #[arg(long, value_enum)]
    pub(super) lab: Option<Kind>,
    /// The same with a shell command as the device; it finds its interfaces as $CLIENTS_IF and
    /// $SERVERS_IF
    #[arg(long, value_name = "COMMAND", conflicts_with = "lab")]
    pub(super) lab_command: Option<String>,
    /// The device is behind these two of the machine's interfaces
    #[arg(long, value_name = "IF,IF", conflicts_with_all = ["lab", "lab_command"])]
    pub(super) ports: Option<Ports>,
    /// Let --ports name an interface that has the machine's default route
    #[arg(long, requires = "ports")]
    pub(super) even_default_route: bool,
    /// MAC addresses that clients and servers send to, for a router behind --ports
    #[arg(long, value_name = "MAC,MAC", value_parser = macs, requires = "ports")]
    pub(super) next_hops: Option<[MacAddr; 2]>,
    /// More commands for the device, one per line, in its own words. The ports of this router are
    /// load0 (clients) and load1, in a lab host-load0 and host-load1
    #[arg(long, value_name = "FILE")]
    pub(super) commands: Option<PathBuf>,
    /// Time by which the tester may open connections late, in milliseconds, 1 to 10000; later ones
    /// make it the limit
    #[arg(long, value_name = "MS", default_value = "10", value_parser = bounded(1, 10_000))]
    pub(super) late: u64,
    /// A number that decides sequence numbers; the same one repeats a run
    #[arg(long, value_name = "N", default_value = "1")]
    pub(super) seed: u64,
}

/// The TCP and UDP ports of the servers.
const PORTS: (u16, u16) = (8080, 5353);

impl Traffic {
    /// Returns the conversations, with room for `most` per second.
    pub(super) fn plan(&self, most: f64) -> Plan {
        let exchange = Exchange {
            messages: self.num_messages as u16,
            request: self.message_size as u32,
            answer: self.message_size as u32,
            wait: self.server_wait * 1000,
            ..Exchange::default()
        };
        // In tenths of a percent, and no kind is left out that was asked for.
        let udp = (self.udp_percent * 10.0).round() as u32;
        let kinds =
            [("udp", Protocol::Udp, PORTS.1, udp), ("tcp", Protocol::Tcp, PORTS.0, 1000 - udp)];
        let talks = kinds.into_iter().filter(|(.., share)| *share > 0).map(
            |(name, protocol, port, share)| {
                let limit = self
                    .max_flows
                    .map(|flows| (flows as f64 * f64::from(share) / 1000.0).max(1.0) as u32);
                Talk { share, limit, ..Talk::exchange(name, protocol, port, &exchange) }
            },
        );
        let mut plan = Plan::of(
            talks
                .clone()
                .next()
                .unwrap_or_else(|| Talk::exchange("tcp", Protocol::Tcp, PORTS.0, &exchange)),
        );
        plan.talks = talks.collect();
        // Connections last as long as their program and TIME_WAIT; twice that leaves room for bad
        // trials.
        let life = self.life().as_secs_f64() + 1.0;
        let room = most * life * 2.0;
        plan.room = room.clamp(65_536.0, 16e6) as u32;
        plan.late = self.late * 1000;
        if let Some([of_clients, of_servers]) = self.next_hops {
            plan.client_macs.1 = of_clients;
            plan.server_macs.1 = of_servers;
        }
        plan
    }

    /// Time that a connection takes at least.
    pub(super) fn life(&self) -> Duration {
        Duration::from_millis(self.server_wait) * self.num_messages as u32
    }

    /// Runs something in a namespace where labs can be made, if the device needs one.
    ///
    /// Call it while there is one thread: without root, the process enters a user namespace.
    pub(super) fn apart<T: Send>(
        &self,
        run: impl FnOnce(Option<&Netns>) -> Result<T> + Send,
    ) -> Result<T> {
        if let Some(ports) = &self.ports {
            ports.check(self.even_default_route)?;
        }
        if self.lab.is_none() && self.lab_command.is_none() {
            return run(None);
        }
        if !rustix::process::geteuid().is_root() {
            enter_user_namespace()?;
        }
        let ns = Netns::new("tester")?;
        ns.run(|| run(Some(&ns)))?
    }

    /// Starts the device with its clients and servers, in a namespace of [`Traffic::apart`].
    pub(super) fn start(&self, most: f64, ns: Option<&Netns>) -> Result<Device> {
        let commands = match &self.commands {
            Some(file) => {
                std::fs::read_to_string(file).with_context(|| file.display().to_string())?
            }
            None => String::new(),
        };
        let plan = self.plan(most);
        check_memory(&plan)?;
        if let Some(ports) = &self.ports {
            far::no_commands(&commands, "a device behind --ports")?;
            let [a, b] = &ports.0;
            return Device::outside([a, b], Box::new(ports.clone()), &plan, self.seed);
        }
        let Some(ns) = ns else {
            return Device::inside(self.device, &commands, &plan, self.seed);
        };
        let kind = self.lab.unwrap_or(Kind::Wire);
        let shell = self.lab_command.as_deref();
        if shell.is_some() || kind == Kind::Wire {
            far::no_commands(&commands, "this device")?;
        }
        let wanted = Wanted { kind, set: self.device, commands: &commands, shell };
        self.lab(ns, &wanted, &plan)
    }

    /// Starts the tester without a device: cross-connected, or on a wire as a lab has them; `None`
    /// if that needs a cable that nobody but the user can plug in.
    pub(super) fn start_alone(&self, most: f64, ns: Option<&Netns>) -> Result<Option<Device>> {
        let plan = self.plan(most);
        check_memory(&plan)?;
        if self.ports.is_some() {
            return Ok(None);
        }
        let Some(ns) = ns else {
            return Device::inside(Set::CrossConnect, "", &plan, self.seed).map(Some);
        };
        let wire = Wanted { kind: Kind::Wire, set: Set::Nothing, commands: "", shell: None };
        self.lab(ns, &wire, &plan).map(Some)
    }

    fn lab(&self, ns: &Netns, wanted: &Wanted<'_>, plan: &Plan) -> Result<Device> {
        let lab = Lab::new(ns, wanted)?;
        Device::outside(far::TESTER, Box::new(lab), plan, self.seed)
    }
}

/// Bytes that a conversation takes on both sides, with the server's look-up.
const CONVERSATION: u64 = 64 + 64 + 8;

/// Checks that the machine has the memory for a plan's conversations.
fn check_memory(plan: &Plan) -> Result<()> {
    const FILE: &str = "/proc/meminfo";
    let text = std::fs::read_to_string(FILE).context(FILE)?;
    let available = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let free = available.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    has_room(u64::from(plan.room) * CONVERSATION, free.map_or(u64::MAX, |kib| kib << 10))
}

/// Most of the machine's free memory is not enough: others need some.
fn has_room(needed: u64, free: u64) -> Result<()> {
    let mib = |bytes: u64| bytes >> 20;
    anyhow::ensure!(
        needed <= free / 4 * 3,
        "so many connections take {} MiB, and the machine has {} MiB free: a lower upper bound of \
         the rate, fewer messages or a shorter wait take less",
        mib(needed),
        mib(free)
    );
    Ok(())
}

/// Reads two MAC addresses.
fn macs(text: &str) -> Result<[MacAddr; 2], String> {
    let wrong = || format!("`{text}': two MAC addresses are expected, with a comma between them");
    let (a, b) = text.split_once(',').ok_or_else(wrong)?;
    Ok([a.parse().map_err(|_| wrong())?, b.parse().map_err(|_| wrong())?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_must_fit_into_memory() {
        has_room(3 << 20, 4 << 20).unwrap();
        let error = has_room(2000 << 20, 1000 << 20).unwrap_err().to_string();
        assert!(error.starts_with("so many connections take 2000 MiB, and the machine"), "{error}");
    }

    #[test]
    fn two_mac_addresses_are_read() {
        let read = macs("02:00:00:00:00:01,02:00:00:00:00:02").unwrap();
        assert_eq!(read[1], MacAddr([2, 0, 0, 0, 0, 2]));
        assert!(macs("02:00:00:00:00:01").is_err());
        assert!(macs("a,b").is_err());
    }
}
