//! Devices under test outside this process: between virtual Ethernet pairs in a namespace that is
//! made for them and gone afterwards, or behind interfaces that the user names.

mod kernel;
mod logins;
mod ovs;
mod ports;
mod router;
mod shell;
mod ways;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use thalweg_netns::{Guard, LinkOptions, Netns, require_tools, veth};

use super::blame::Seen;
use super::set::Set;
use super::spot::{Counter, Drops, Hop, Side, Spot, Way};
pub(super) use ports::Ports;
pub(super) use ways::Ways;

/// A device under test.
pub(super) trait Far {
    /// Its own name, with its version.
    fn name(&self) -> String;

    /// Adds what it has dropped so far.
    ///
    /// # Errors
    /// If it does not answer, or has ended.
    fn drops(&mut self, drops: &mut Drops) -> Result<()>;

    /// Makes it note from now on which packets of the tester it drops, if it can: those of streams
    /// with tags of this trial and seed.
    ///
    /// # Errors
    /// If it does not answer.
    fn witness(&mut self, _trial: u8, _seed: u64) -> Result<()> {
        Ok(())
    }

    /// The window of a trial begins: packets of connections are noted as well.
    ///
    /// # Errors
    /// If it does not answer.
    fn window(&mut self) -> Result<()> {
        Ok(())
    }

    /// The packets that it has noted.
    ///
    /// # Errors
    /// If it does not answer.
    fn dropped(&mut self) -> Result<Vec<Seen>> {
        Ok(Vec::new())
    }

    /// Makes it forget its connections, if that is known: a bad trial must not spoil the next.
    ///
    /// # Errors
    /// If it does not answer.
    fn forget(&mut self) -> Result<()> {
        Ok(())
    }

    /// Ends it.
    ///
    /// # Errors
    /// If it does not end well.
    fn stop(self: Box<Self>) -> Result<()>;
}

/// Forwarder between the pairs of a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// This router, as another process
    Thalweg,
    /// The kernel: a bridge or a router
    Kernel,
    /// Open vSwitch with its datapath in user space
    Ovs,
    /// Nothing: both ends of one pair are the tester's
    Wire,
}

/// The tester's interfaces in a lab; clients are behind the first.
pub(super) const TESTER: [&str; 2] = ["tester0", "tester1"];
/// The device's interfaces.
pub(super) const DEVICE: [&str; 2] = ["load0", "load1"];

/// A sending node's reason for what the kernel has not taken.
const REFUSED: &str = "frame rejected by device";

/// A device between two virtual Ethernet pairs.
pub(super) struct Lab {
    // Ends before its namespace does.
    far: Option<Box<dyn Far>>,
    // Ends what that has left.
    guard: Option<Guard>,
    tester: Netns,
    device: Netns,
}

/// Share of the machine that a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Processors.
    pub(super) cpus: usize,
    /// Queues of each port.
    pub(super) queues: u16,
    /// Processors that the tester has.
    pub(super) tester: usize,
}

impl Default for Size {
    fn default() -> Size {
        Size { cpus: 1, queues: 1, tester: 1 }
    }
}

impl Size {
    /// The numbers of its processors: the machine's last ones. The first are the tester's. Both
    /// share the last one if the tester has them all.
    ///
    /// # Errors
    /// If the machine has too few.
    fn processors(self) -> Result<Vec<usize>> {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        let most = all.saturating_sub(self.tester).max(1);
        ensure!(
            self.cpus <= most,
            "--cpus {}: this machine has {all} processors, and the tester keeps {} of them",
            self.cpus,
            if self.tester == 1 { "one".to_owned() } else { self.tester.to_string() }
        );
        Ok((all - self.cpus..all).collect())
    }

    /// Refuses more than one processor and one queue.
    fn only_one(self, why: &str) -> Result<()> {
        ensure!((self.cpus, self.queues) == (1, 1), "--cpus, --queues: {why}");
        Ok(())
    }
}

/// Description of a lab to make.
pub(super) struct Wanted<'a> {
    pub(super) kind: Kind,
    pub(super) set: Set,
    /// Commands for it, in its own words.
    pub(super) commands: &'a str,
    /// A command of the user's that is the device, instead of one that we know.
    pub(super) shell: Option<&'a str>,
    /// Its size.
    pub(super) size: Size,
}

impl Wanted<'_> {
    /// Checks that the device and the machine have this size.
    fn check_size(&self) -> Result<()> {
        match (self.shell, self.kind) {
            (Some(_), _) => self.size.only_one("a command has what it takes"),
            (None, Kind::Wire) => self.size.only_one("a wire has neither"),
            (None, Kind::Kernel) => {
                self.size.only_one("the kernel forwards on the processor that a packet comes from")
            }
            (None, Kind::Thalweg | Kind::Ovs) => self.size.processors().map(drop),
        }
    }
}

impl Lab {
    /// Makes a lab whose tester's interfaces are in `tester`.
    ///
    /// # Errors
    /// If a namespace, a link or the device cannot be made.
    pub(super) fn new(tester: &Netns, wanted: &Wanted<'_>) -> Result<Lab> {
        wanted.check_size()?;
        require_tools(&["ip", "ss"])?;
        let device = Netns::new("device")?;
        let side = LinkOptions { queues: wanted.size.queues, ..LinkOptions::default() };
        let lab = |far, guard| Lab { far, guard, tester: tester.clone(), device: device.clone() };
        if wanted.kind == Kind::Wire && wanted.shell.is_none() {
            veth((tester, TESTER[0], &side), (tester, TESTER[1], &side))?;
            return Ok(lab(None, None));
        }
        // Files of the device's processes, which go as these do.
        let dir = TempDir::with_prefix("thalweg-load-").context("make a directory")?;
        let guard = Guard::with_directory(&device, dir.path())?;
        let dir = dir.keep();
        let macs = wanted.set.device_macs();
        for ((ours, theirs), mac) in TESTER.into_iter().zip(DEVICE).zip(macs) {
            let end = LinkOptions { mac: Some(mac.to_string()), ..side.clone() };
            veth((tester, ours, &side), (&device, theirs, &end))?;
        }
        let Wanted { set, commands, size, .. } = *wanted;
        let far: Box<dyn Far> = match (wanted.shell, wanted.kind) {
            (Some(command), _) => Box::new(shell::Shell::start(&device, command, macs)?),
            (None, Kind::Thalweg) => {
                Box::new(router::Router::start(&device, set, commands, size, &dir)?)
            }
            (None, Kind::Kernel | Kind::Wire) => {
                Box::new(kernel::Kernel::start(&device, set, commands)?)
            }
            (None, Kind::Ovs) => Box::new(ovs::Switch::start(&device, set, commands, size, &dir)?),
        };
        Ok(lab(Some(far), Some(guard)))
    }
}

impl Far for Lab {
    fn name(&self) -> String {
        self.far.as_ref().map_or_else(|| "nothing but a wire".to_owned(), |far| far.name())
    }

    fn drops(&mut self, drops: &mut Drops) -> Result<()> {
        // A wire is one hop.
        let hops = if self.far.is_some() { hops } else { |_: &str| [Some(Hop::In); 2] };
        if let Some(far) = &mut self.far {
            far.drops(drops)?;
            links(&self.device, hops, drops)?;
            sockets(&self.device, drops)?;
        }
        links(&self.tester, hops, drops)?;
        backlog(drops)
    }

    fn witness(&mut self, trial: u8, seed: u64) -> Result<()> {
        self.far.as_mut().map_or(Ok(()), |far| far.witness(trial, seed))
    }

    fn window(&mut self) -> Result<()> {
        self.far.as_mut().map_or(Ok(()), |far| far.window())
    }

    fn dropped(&mut self) -> Result<Vec<Seen>> {
        self.far.as_mut().map_or(Ok(Vec::new()), |far| far.dropped())
    }

    fn forget(&mut self) -> Result<()> {
        self.far.as_mut().map_or(Ok(()), |far| far.forget())
    }

    fn stop(mut self: Box<Self>) -> Result<()> {
        let stopped = self.far.take().map_or(Ok(()), Far::stop);
        drop(self.guard.take());
        // The pairs end with the device's namespace, but that ends when its last process has.
        for name in TESTER {
            if self.tester.link(name).is_ok() {
                self.tester.ip(&format!("link delete {name}"))?;
            }
        }
        stopped
    }
}

/// Adds what the kernel dropped at the links of a namespace; `hops` are those of what an interface
/// sends and receives.
fn links(ns: &Netns, hops: fn(&str) -> [Option<Hop>; 2], drops: &mut Drops) -> Result<()> {
    for link in ns.links()? {
        let ([sent, received], [out, back]) = (ways(&link.name), hops(&link.name));
        let counts = [
            ("the receiver's queue full", link.tx_dropped, sent, out, Counter::Sending),
            ("dropped by the kernel on receipt", link.rx_dropped, received, back, Counter::Receipt),
        ];
        for (reason, packets, way, hop, counter) in counts {
            let spot = Spot::new(Side::Link, &link.name, reason).going(way);
            drops.add(spot.shared(hop.map(|hop| (0, hop)), counter), packets);
        }
    }
    Ok(())
}

/// The hops of packets that an interface of a lab sends and receives.
fn hops(interface: &str) -> [Option<Hop>; 2] {
    match (TESTER.contains(&interface), DEVICE.contains(&interface)) {
        (true, _) => [Some(Hop::In), Some(Hop::Out)],
        (_, true) => [Some(Hop::Out), Some(Hop::In)],
        _ => [None; 2],
    }
}

/// The node that sends to a hop: what the kernel refuses there, its counters have as well.
pub(super) fn sent_by(hop: (usize, Hop), node: Spot) -> Spot {
    match node.reason == REFUSED {
        true => node.shared(Some(hop), Counter::Program),
        false => node,
    }
}

/// The ways of packets that an interface of a lab sends and receives.
fn ways(interface: &str) -> [Option<Way>; 2] {
    let at = |names: [&str; 2]| names.iter().position(|name| *name == interface);
    match (at(TESTER), at(DEVICE)) {
        (Some(at), _) => [Some(Way::sent_by(at)), Some(Way::received_by(at))],
        // Packets that the tester sends, the device receives.
        (None, Some(at)) => [Some(Way::received_by(at)), Some(Way::sent_by(at))],
        (None, None) => [None; 2],
    }
}

/// Adds what packet sockets without a ring had no room for, such as those of Open vSwitch. Rings
/// have counters of their own.
fn sockets(ns: &Netns, drops: &mut Drops) -> Result<()> {
    let text = ns.command("ss").args(["-0", "-a", "-n", "-m", "-H"]).output()?;
    for (name, packets) in socket_drops(&text) {
        let [_, way] = ways(name);
        let spot = Spot::new(Side::Device, name, "packet socket full").going(way);
        drops.add(spot, packets);
    }
    Ok(())
}

/// Interfaces and losses of the sockets that `ss -0 -m` lists: the address is `PROTOCOL:INTERFACE`,
/// and `skmem` ends with what was dropped, as `d` and a number.
fn socket_drops(text: &str) -> impl Iterator<Item = (&str, u64)> {
    let mut interface = "";
    let words = text.split_whitespace().filter_map(move |word| {
        if let Some(memory) = word.strip_prefix("skmem:(") {
            let fields = memory.trim_end_matches(')').split(',');
            let dropped = fields.filter_map(|field| field.strip_prefix('d')).next_back()?;
            return dropped.parse().ok().map(|packets| (interface, packets));
        }
        let (_, name) = word.split_once(':')?;
        if name != "*" {
            interface = name;
        }
        None
    });
    words.filter(|(_, packets)| *packets > 0)
}

/// Adds what processors had no room for in their backlog: the second column of `softnet_stat`.
fn backlog(drops: &mut Drops) -> Result<()> {
    const FILE: &str = "/proc/net/softnet_stat";
    let text = std::fs::read_to_string(FILE).context(FILE)?;
    let second = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    let packets = text.lines().filter_map(second).sum();
    let spot = Spot::new(Side::Link, "kernel", "a processor's backlog full");
    drops.add(spot.shared(None, Counter::Backlog), packets);
    Ok(())
}

/// Refuses commands where there is nothing that would run them.
pub(super) fn no_commands(commands: &str, device: &str) -> Result<()> {
    ensure!(commands.trim().is_empty(), "--commands: {device} takes none");
    Ok(())
}

/// The lines of commands, without blank lines and comments, with their numbers from 1.
fn lines(commands: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = commands.lines().map(str::trim).enumerate().map(|(at, line)| (at + 1, line));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_packet_sockets_are_read() {
        let text = "p_raw UNCONN 0 0 *:load0 * skmem:(r0,rb212992,t0,tb212992,f0,w0,o0,bl0,d17)\n\
            p_dgr UNCONN 0 0 arp:load1 * \n\t skmem:(r0,rb212992,t0,tb212992,f0,w0,o0,bl0,d0)\n";
        let found: Vec<_> = socket_drops(text).collect();
        assert_eq!(found, [("load0", 17)]);
    }

    #[test]
    fn packets_go_from_the_tester_to_the_device_and_back() {
        let (there, back) = (Some(Way::There), Some(Way::Back));
        assert_eq!(ways("tester0"), [there, back]);
        assert_eq!(ways("load0"), [back, there]);
        assert_eq!(ways("load1"), [there, back]);
        assert_eq!(ways("tester1"), [back, there]);
        assert_eq!(ways("lo"), [None, None]);
    }

    #[test]
    fn both_ends_of_a_hop_and_its_sender_are_one() {
        let [tester_sends, tester_receives] = hops("tester1");
        assert_eq!([tester_receives, tester_sends], hops("load1"));
        assert_eq!(hops("br0"), [None; 2]);
        let node = |reason| Spot::new(Side::Tester, "host-tester1-tx", reason);
        assert_ne!(sent_by((0, Hop::In), node(REFUSED)), node(REFUSED));
        assert_eq!(sent_by((0, Hop::In), node("tx ring full")), node("tx ring full"));
        // The text is that of the node.
        let names = include_str!("../../../router/tests/golden/names.txt");
        assert!(names.contains(REFUSED));
    }

    #[test]
    fn sizes_that_a_device_cannot_have_are_refused() {
        let check = |kind, shell, cpus| {
            let size = Size { cpus, queues: 1, tester: 1 };
            Wanted { kind, set: Set::Nothing, commands: "", shell, size }.check_size()
        };
        for (kind, shell) in
            [(Kind::Wire, None), (Kind::Kernel, None), (Kind::Wire, Some("sleep 1"))]
        {
            let error = check(kind, shell, 9).unwrap_err().to_string();
            assert!(error.starts_with("--cpus, --queues: "), "{error}");
            check(kind, shell, 1).unwrap();
        }
        for kind in [Kind::Thalweg, Kind::Ovs] {
            let error = check(kind, None, 100_000).unwrap_err().to_string();
            assert!(error.starts_with("--cpus 100000: this machine has "), "{error}");
        }
    }

    #[test]
    fn lines_of_commands_are_numbered() {
        let found: Vec<_> = lines("# a\n\n  b\nc").collect();
        assert_eq!(found, [(3, "b"), (4, "c")]);
    }
}
