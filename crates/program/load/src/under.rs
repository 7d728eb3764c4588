//! The device under test: options that all commands have.

use std::path::PathBuf;

use anyhow::Result;
use thalweg_device::MacAddr;
use thalweg_load::MAX_PARTS;
use thalweg_netns::{Netns, enter_user_namespace};

use super::device::{Device, Hosts};
use super::far::{self, Kind, Ports, Size, Wanted};
use super::number::bounded;
use super::set::Set;

/// The device.
#[derive(clap::Args)]
pub(super) struct Under {
    /// Action of the device under test on packets of its two ports
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
    /// The device is behind these pairs of the machine's interfaces, as many as the profile has
    #[arg(long, value_name = "IF,IF,…", conflicts_with_all = ["lab", "lab_command"])]
    pub(super) ports: Option<Ports>,
    /// Let --ports and --commands name an interface by whose link this machine is reached: that of
    /// its default route, or of the route to whoever is logged in
    #[arg(long)]
    pub(super) even_default_route: bool,
    /// MAC addresses that clients and servers send to, for a router behind --ports
    #[arg(long, value_name = "MAC,MAC", value_parser = macs, requires = "ports")]
    pub(super) next_hops: Option<[MacAddr; 2]>,
    /// Processors of the tester: it shares packets and connections out over this number of workers.
    /// Without --lab and --ports, the device has the same workers
    #[arg(long, value_name = "N", default_value = "1", value_parser = bounded(1, MAX_PARTS.into()))]
    pub(super) cores: u64,
    /// Processors of a device in a lab; the tester keeps as many as --cores says
    #[arg(long, value_name = "N", default_value = "1", value_parser = bounded(1, 256))]
    pub(super) cpus: u64,
    /// Queues of each port of a device in a lab
    #[arg(long, value_name = "N", default_value = "1", value_parser = bounded(1, 64))]
    pub(super) queues: u64,
    /// More commands for the device, one per line, in its own words. The ports of this router are
    /// load0 (clients) and load1, in a lab host-load0 and host-load1
    #[arg(long, value_name = "FILE")]
    pub(super) commands: Option<PathBuf>,
    /// A number that decides sequence numbers; the same one repeats a run
    #[arg(long, value_name = "N", default_value = "1")]
    pub(super) seed: u64,
}

/// Maximum size of a file of the device's commands in bytes.
pub(super) const MAX_COMMANDS: u64 = 16 << 20;

impl Under {
    /// Runs something in a namespace where labs can be made, if the device needs one.
    ///
    /// Call it while there is one thread: without root, the process enters a user namespace.
    pub(super) fn apart<T: Send>(
        &self,
        run: impl FnOnce(Option<&Netns>) -> Result<T> + Send,
    ) -> Result<T> {
        self.check_cores()?;
        if let Some(ports) = &self.ports {
            ports.check(self.even_default_route)?;
            let _guard = ports.guard()?;
            return run(None);
        }
        if !self.is_lab() {
            return run(None);
        }
        if !rustix::process::geteuid().is_root() {
            enter_user_namespace()?;
        }
        let ns = Netns::new("tester")?;
        ns.run(|| run(Some(&ns)))?
    }

    fn size(&self) -> Size {
        let [cpus, tester] = [self.cpus, self.cores].map(|n| n as usize);
        Size { cpus, queues: self.queues as u16, tester }
    }

    /// Checks that the machine has the tester's processors.
    fn check_cores(&self) -> Result<()> {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        anyhow::ensure!(
            self.cores as usize <= all,
            "--cores {}: this machine has {all} processors; workers that share one would only wait \
             for each other",
            self.cores
        );
        Ok(())
    }

    /// Warns the user about its processors, if the tester has not got its own.
    pub(super) fn warning(&self) -> Option<String> {
        let all = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let shared = (self.cores + self.cpus).saturating_sub(all);
        (self.is_lab() && self.cores > 1 && shared > 0).then(|| {
            format!(
                "--cores {}: of this machine's {all} processors, the device and the tester share \
                 {shared}; each slows the other down.",
                self.cores
            )
        })
    }

    /// True if the device is in a lab.
    pub(super) fn is_lab(&self) -> bool {
        self.lab.is_some() || self.lab_command.is_some()
    }

    /// Describes the device, as its options say.
    pub(super) fn about(&self) -> String {
        let word = |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
            value().map_or_else(String::new, |value| value.get_name().to_owned())
        };
        let device = word(&|| clap::ValueEnum::to_possible_value(&self.device));
        let tester = match self.cores {
            1 => String::new(),
            cores => format!(" --cores {cores}"),
        };
        let about = match (&self.lab, &self.lab_command, &self.ports) {
            (_, Some(command), _) => format!("--lab-command {command}"),
            (_, _, Some(ports)) => {
                format!("--ports {}", ports.names().collect::<Vec<_>>().join(","))
            }
            (Some(lab), ..) => {
                let lab = word(&|| clap::ValueEnum::to_possible_value(lab));
                let (cpus, queues) = (self.cpus, self.queues);
                format!("--lab {lab} --device {device} --cpus {cpus} --queues {queues}")
            }
            (None, None, None) => format!("--device {device}"),
        };
        about + &tester
    }

    /// Starts the device with its clients and servers, in a namespace of [`Traffic::apart`].
    pub(super) fn start(&self, hosts: &Hosts<'_>, ns: Option<&Netns>) -> Result<Device> {
        let commands = match &self.commands {
            Some(file) => thalweg_files::read_text(file, MAX_COMMANDS)?,
            None => String::new(),
        };
        if let Some(ports) = &self.ports {
            far::no_commands(&commands, "a device behind --ports")?;
            return Device::outside(&ports.pairs(), Box::new(ports.clone()), hosts);
        }
        let Some(ns) = ns else {
            anyhow::ensure!(
                (self.cpus, self.queues) == (1, 1),
                "--cpus and --queues are for a device in a lab: in the tester's process, both have \
                 the workers that --cores says"
            );
            let device = Device::inside(self.device, &commands, hosts)?;
            let names = device.host_interfaces();
            if !names.is_empty() {
                let ways = far::Ways::read()?;
                names
                    .iter()
                    .try_for_each(|name| ways.check("--commands", name, self.even_default_route))?;
            }
            return Ok(device);
        };
        let kind = self.lab.unwrap_or(Kind::Wire);
        let shell = self.lab_command.as_deref();
        if shell.is_some() || kind == Kind::Wire {
            far::no_commands(&commands, "this device")?;
        }
        let size = self.size();
        let wanted = Wanted { kind, set: self.device, commands: &commands, shell, size };
        start_lab(ns, &wanted, hosts)
    }

    /// Starts the tester without a device: cross-connected, or on a wire as a lab has them; `None`
    /// if that needs a cable that nobody but the user can plug in.
    pub(super) fn start_alone(
        &self,
        hosts: &Hosts<'_>,
        ns: Option<&Netns>,
    ) -> Result<Option<Device>> {
        if self.ports.is_some() {
            return Ok(None);
        }
        let Some(ns) = ns else {
            return Device::inside(Set::CrossConnect, "", hosts).map(Some);
        };
        let (set, size) = (Set::Nothing, Size { cpus: 1, queues: 1, ..self.size() });
        let wire = Wanted { kind: Kind::Wire, set, commands: "", shell: None, size };
        start_lab(ns, &wire, hosts).map(Some)
    }
}

fn start_lab(ns: &Netns, wanted: &Wanted<'_>, hosts: &Hosts<'_>) -> Result<Device> {
    let lab = far::Lab::new(ns, wanted)?;
    Device::outside(&[far::TESTER], Box::new(lab), hosts)
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
    fn two_mac_addresses_are_read() {
        let read = macs("02:00:00:00:00:01,02:00:00:00:00:02").unwrap();
        assert_eq!(read[1], MacAddr([2, 0, 0, 0, 0, 2]));
        assert!(macs("02:00:00:00:00:01").is_err());
        assert!(macs("a,b").is_err());
    }
}
