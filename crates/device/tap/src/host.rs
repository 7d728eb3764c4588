//! The kernel's end: makes the device, or takes one over, and sets it up.

use crate::config::{Flags, TapConfig};
use crate::store::{self, Store};
use crate::sys::{self, Tun};
use crate::{Error, HostSide};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use thalweg_device_linux::{IfInfo, Namespace, NamespaceId, VnetHdr};
use thalweg_netlink::{Link, LinkSettings, Port, Protocol, add_address, add_default_route};

/// A namespace in which there are devices of TAPs.
#[derive(Debug)]
pub(crate) struct Place {
    /// None: the router's own.
    pub(crate) namespace: Option<Namespace>,
    /// Requests to the kernel, about devices of the namespace.
    port: Port,
}

impl Place {
    /// Number of the namespace.
    fn id(&self) -> NamespaceId {
        self.namespace.as_ref().map_or_else(NamespaceId::own, Namespace::id)
    }
}

/// Namespaces in use, so that each costs its descriptors once.
#[derive(Default)]
pub(crate) struct Places(BTreeMap<NamespaceId, Weak<Place>>);

impl Places {
    /// Returns the namespace of a TAP.
    fn of(&mut self, host: &HostSide) -> Result<Rc<Place>, Error> {
        let namespace = namespace(host)?;
        let id = namespace.as_ref().map_or(NamespaceId::default(), Namespace::id);
        // A number is another namespace's only when nobody has the former one.
        if let Some(place) = self.0.get(&id).and_then(Weak::upgrade) {
            return Ok(place);
        }
        let open = || Port::open(Protocol::Route);
        let port = match &namespace {
            Some(namespace) => namespace.run(open)?,
            None => open(),
        };
        let port = port.map_err(|e| Error::system(sys::FILE, "open a netlink socket", e))?;
        // One device is asked for at a time, of many.
        port.set_strict(true);
        let place = Rc::new(Place { namespace, port });
        self.0.retain(|_, place| place.strong_count() > 0);
        self.0.insert(id, Rc::downgrade(&place));
        Ok(place)
    }
}

/// The device of one interface, which goes with the last of its queues unless it must stay.
#[derive(Debug)]
pub(crate) struct Host {
    /// Its queues.
    pub(crate) queues: Vec<Arc<Tun>>,
    /// The namespace that it is in.
    pub(crate) place: Rc<Place>,
    /// The device, as of now.
    pub(crate) info: IfInfo,
    /// Segmentation of UDP is supported.
    pub(crate) splits_udp: bool,
    /// True if the device was there before.
    adopted: bool,
    /// The service manager keeps it over a restart of the router.
    is_kept: bool,
}

/// Opens a namespace; `None` if it is the router's own.
fn namespace(host: &HostSide) -> Result<Option<Namespace>, Error> {
    let Some(name) = &host.namespace else { return Ok(None) };
    let namespace = Namespace::open(name)?;
    Ok((namespace.id() != NamespaceId::own()).then_some(namespace))
}

/// The kernel's rules for device names (`dev_valid_name`); `%` stands for a number there.
fn is_name(name: &str) -> bool {
    let odd = |b: u8| b.is_ascii_whitespace() || b.is_ascii_control() || b"/:%".contains(&b);
    (1..=15).contains(&name.len()) && ![".", ".."].contains(&name) && !name.bytes().any(odd)
}

/// Sockets that a thread in the namespace opens, to be used from any other.
fn open_files(queues: u16) -> Result<Vec<Tun>, Error> {
    let opened = (0..queues).map(|_| Tun::open()).collect::<io::Result<Vec<_>>>();
    opened.map_err(|e| match e.raw_os_error() {
        Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => Error::NoDriver(sys::FILE),
        _ => Error::system(sys::FILE, "open /dev/net/tun", e),
    })
}

impl Host {
    /// Makes the device of a TAP, or takes over the one that is there, and sets it up. `name` is
    /// that of before, if it was there before.
    ///
    /// # Errors
    /// If namespace, driver or privileges are missing, the name is in use, or the kernel refuses a
    /// setting. A device that was made is gone then.
    pub(crate) fn open(
        places: &mut Places,
        store: &mut Store,
        config: &TapConfig,
        name: Option<&str>,
    ) -> Result<Host, Error> {
        let name = name.or(config.host.name.as_deref());
        if let Some(bad) = name.filter(|n| !is_name(n)) {
            return Err(Error::BadName(bad.into()));
        }
        let place = places.of(&config.host)?;
        let port = &place.port;
        // Another number of queues makes another device.
        let kept = name.map(|name| store.take(place.id(), name)).unwrap_or_default();
        let kept = Some(kept).filter(|kept| kept.len() == usize::from(config.rx_queues));
        let was_kept = kept.is_some();
        let (files, name, adopted) = match (kept, name) {
            (Some(files), Some(name)) => (files, name.to_owned(), true),
            (_, name) => {
                let open = || open_files(config.rx_queues);
                let files = match &place.namespace {
                    Some(namespace) => namespace.run(open)??,
                    None => open()?,
                };
                let adopted = adopted(port, config, name)?.is_some();
                let name = connect(&files, config, name, adopted)?;
                (files, name, adopted)
            }
        };
        let failed = |what| move |e| (what, e);
        let link = (|| {
            let first = &files[0];
            first.set_header(VnetHdr::LEN).map_err(failed("set the offload header"))?;
            // Up to here a device that others use may have had frames for nobody. One that was kept
            // has its carrier still, without which routes would go.
            if !was_kept {
                first.set_carrier(false).map_err(failed("switch the carrier off"))?;
            }
            let splits_udp = offloads(first, config.flags).map_err(failed("set offloads"))?;
            let link = Link::named_by(port, &name).map_err(failed("find it"))?;
            let gone = || ("find it", io::Error::from_raw_os_error(libc::ENODEV));
            Ok((link.ok_or_else(gone)?, splits_udp))
        })();
        let (link, splits_udp) =
            link.map_err(|(what, e): (&'static str, io::Error)| Error::system(&name, what, e))?;
        set_up(port, config, &link, adopted)?;
        if config.flags.has(Flags::PERSIST) {
            let kept = files[0].set_persistent(true);
            kept.map_err(|e| Error::system(&name, "make it persistent", e))?;
        }
        let link = Link::find_by(port, link.index).ok().flatten().unwrap_or(link);
        files.iter().for_each(Tun::drain);
        let queues: Vec<Arc<Tun>> = files.into_iter().map(Arc::new).collect();
        let is_kept = config.owner.is_some();
        if is_kept {
            store::keep(place.id(), &link.name, &queues);
        }
        Ok(Host { queues, info: link.into(), splits_udp, place, adopted, is_kept })
    }

    /// Gives the device up at once, though workers have its queues yet.
    pub(crate) fn close(self) {
        if self.is_kept {
            store::forget(self.place.id(), &self.info.name);
        }
        self.queues.iter().for_each(|queue| queue.release());
    }

    /// Gives the device up as if it had never been made.
    pub(crate) fn undo(self) {
        if let Some(queue) = self.queues.first().filter(|_| !self.adopted) {
            let _ = queue.set_persistent(false);
        }
        self.close();
    }

    /// Returns whether it was there before.
    pub(crate) fn was_there(&self) -> bool {
        self.adopted
    }

    /// Returns the namespace that it is in; `None` if that is the router's own.
    pub(crate) fn namespace(&self) -> Option<&Namespace> {
        self.place.namespace.as_ref()
    }

    /// The way of requests about it.
    pub(crate) fn port(&self) -> &Port {
        &self.place.port
    }

    /// Returns the device as it is now, if it is there.
    pub(crate) fn look(&self) -> Option<IfInfo> {
        Link::find_by(&self.place.port, self.info.ifindex).ok().flatten().map(IfInfo::from)
    }
}

/// Returns the device that is there already and may be taken.
fn adopted(port: &Port, config: &TapConfig, name: Option<&str>) -> Result<Option<Link>, Error> {
    let Some(name) = name else { return Ok(None) };
    let there = Link::named_by(port, name).map_err(|e| Error::system(name, "look for it", e))?;
    let (attach, persist) = (config.flags.has(Flags::ATTACH), config.flags.has(Flags::PERSIST));
    match there {
        None if attach => Err(Error::NoDevice(name.into())),
        Some(link) if attach || persist && link.kind == "tun" => Ok(Some(link)),
        Some(_) => Err(Error::NameTaken(name.into())),
        None => Ok(None),
    }
}

/// Makes all files queues of one device; returns its name.
fn connect(
    files: &[Tun],
    config: &TapConfig,
    name: Option<&str>,
    adopted: bool,
) -> Result<String, Error> {
    let is_tun = config.flags.has(Flags::TUN);
    let (kind, wanted, any) = match is_tun {
        true => ("TUN", sys::IFF_TUN, "tun%d"),
        false => ("TAP", sys::IFF_TAP, "tap%d"),
    };
    let several = if files.len() > 1 { sys::IFF_MULTI_QUEUE } else { 0 };
    let mut flags = wanted | several;
    let name = name.unwrap_or(any);
    let mut made = files[0].set_device(name, flags);
    let is_other = |e: &io::Error| e.raw_os_error() == Some(libc::EINVAL);
    if adopted && several == 0 && made.as_ref().is_err_and(is_other) {
        // One queue of several may be the only one.
        flags |= sys::IFF_MULTI_QUEUE;
        made = files[0].set_device(name, flags);
    }
    let refused = |e: io::Error| match e.raw_os_error() {
        Some(libc::EBUSY) => Error::Busy(name.into()),
        Some(libc::EINVAL) if adopted => {
            Error::OtherKind { name: name.into(), kind, queues: config.rx_queues }
        }
        Some(libc::EPERM | libc::EACCES) => Error::Permission { what: "make a TAP device" },
        _ => Error::system(name, "make a queue", e),
    };
    let real = made.map_err(refused)?;
    for file in &files[1..] {
        file.set_device(&real, flags).map_err(refused)?;
    }
    Ok(real)
}

/// Sets the offloads of flags; returns whether UDP is among them.
fn offloads(tun: &Tun, flags: Flags) -> io::Result<bool> {
    let tcp = match (flags.has(Flags::GSO), flags.has(Flags::CSUM_OFFLOAD)) {
        (true, _) => sys::CSUM | sys::TSO,
        (false, true) => sys::CSUM,
        (false, false) => 0,
    };
    if flags.has(Flags::GSO) && tun.set_offloads(tcp | sys::USO).is_ok() {
        return Ok(true);
    }
    tun.set_offloads(tcp).map(|()| false)
}

/// Sets the device up: values in force are not set again.
fn set_up(port: &Port, config: &TapConfig, link: &Link, adopted: bool) -> Result<(), Error> {
    let host = &config.host;
    let failed =
        |what: &'static str| move |source| Error::Setup { name: link.name.clone(), what, source };
    let master = match &host.bridge {
        None => None,
        Some(bridge) => {
            let found = Link::named_by(port, bridge).map_err(failed("find its bridge"))?;
            let none = || Error::NoBridge { name: link.name.clone(), bridge: bridge.clone() };
            Some(found.ok_or_else(none)?.index)
        }
    };
    let mac = host.mac.map(|m| m.octets()).filter(|m| link.mac != Some(*m));
    let set = |what, settings: LinkSettings| settings.set(port, link.index).map_err(failed(what));
    let all = LinkSettings::default();
    set("set its MAC address", LinkSettings { mac, ..all })?;
    let queue_length = config.rx_ring.map(u32::from);
    set("set the length of its queue", LinkSettings { queue_length, ..all })?;
    let mtu = host.mtu.filter(|mtu| *mtu != link.mtu);
    set("set its MTU", LinkSettings { mtu, ..all })?;
    let master = master.filter(|m| link.master != Some(*m));
    set("make it a port of the bridge", LinkSettings { master, ..all })?;
    let addresses = [
        host.ip4.map(|(ip, length)| (IpAddr::V4(ip), length)),
        host.ip6.map(|(ip, length)| (IpAddr::V6(ip), length)),
    ];
    for (ip, length) in addresses.into_iter().flatten() {
        let what = match ip {
            IpAddr::V4(_) => "set its IPv4 address",
            IpAddr::V6(_) => "set its IPv6 address (net.ipv6.conf.all.disable_ipv6 must be 0)",
        };
        add_address(port, link.index, ip, length).map_err(failed(what))?;
    }
    if !link.is_up() && !host.down {
        set("bring it up", LinkSettings { up: Some(true), ..all })?;
    }
    let gateways = [host.ip4_gw.map(IpAddr::V4), host.ip6_gw.map(IpAddr::V6)];
    for gateway in gateways.into_iter().flatten() {
        match add_default_route(port, link.index, gateway) {
            // A device that stayed may have kept it.
            Err(e) if adopted && e.raw_os_error() == Some(libc::EEXIST) => {}
            done => done.map_err(failed("add the default route"))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_kernel() {
        for bad in ["", "a b", "a/b", "x:1", "tap%d", "sixteen-or-more-", "..", "a\0"] {
            assert!(!is_name(bad), "{bad:?}");
        }
        assert!(is_name("tap0") && is_name("vpp-tap100") && is_name("ice0.1234"));
    }
}
