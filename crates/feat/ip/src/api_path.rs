//! Paths in messages: one reader and one writer for routes of IP and of labels.

use std::net::IpAddr;
use thalweg_api::Retval;
use thalweg_api::types::fib::{
    FibMplsLabel, FibPath, FibPathFlags, FibPathNh, FibPathNhProto, FibPathType,
};
use thalweg_device::SwIfIndex;
use thalweg_fib::rib::{Labels, MAX_LABELS, Mark, Mode, PathKind};
use thalweg_fib::{LookIn, PathText, Place, TableId, Version, via_label_of};
use thalweg_wire::mpls::{Label, MAX_LABEL};

/// Returns the error that something in a path is not there yet.
///
/// # Errors
/// Always.
pub fn unimplemented<T>(what: &str) -> Result<T, Retval> {
    Err(Retval::UNIMPLEMENTED.because(format_args!("{what} are not supported yet")))
}

/// Reads a path of a message. A next hop without an interface names the message's table.
///
/// # Errors
/// If neither routes nor labels have such a path.
pub fn read(p: &FibPath) -> Result<PathText<SwIfIndex>, Retval> {
    let labels = labels(p)?;
    // Clients leave these zero, or write VPP's words for "none".
    let none = |n: u32| n == 0 || n == u32::MAX;
    if !none(p.rpf_id) || !none(p.nh.obj_id) || !none(p.nh.classify_table_index) {
        return unimplemented("RPF ids, tunnels and classifier tables of paths");
    }
    let via_label = via_label(p)?;
    let place = match p.r#type {
        FibPathType::NORMAL => leading(p, via_label),
        FibPathType::LOCAL => Place::End(PathKind::Local),
        FibPathType::DROP => Place::End(PathKind::Drop),
        FibPathType::ICMP_UNREACH => Place::End(PathKind::Unreachable),
        FibPathType::ICMP_PROHIBIT => Place::End(PathKind::Prohibit),
        FibPathType::INTERFACE_RX => receiving(p)?,
        known if known.known() => return unimplemented("paths of this type"),
        _ => return Err(Retval::INVALID_VALUE),
    };
    if !p.proto.known() {
        let why = "the next hop's protocol is none of 0 to 4";
        return Err(Retval::INVALID_VALUE.because(why));
    }
    let mut path = PathText { labels, ..PathText::to(place) };
    if place.kind() == Some(PathKind::Normal) {
        // A message without weights has zeros.
        (path.weight, path.preference) = (p.weight.max(1), p.preference);
    }
    Ok(path)
}

fn interface(p: &FibPath) -> Option<SwIfIndex> {
    (p.sw_if_index != u32::MAX).then_some(SwIfIndex(p.sw_if_index))
}

/// Place of a path that leads on, or has the packet looked up again.
fn leading(p: &FibPath, via_label: Option<Label>) -> Place<SwIfIndex> {
    if let Some(label) = via_label {
        return Place::Label(label);
    }
    let [n1, n2, n3, n4, ..] = p.nh.address.0;
    let next_hop = match p.proto {
        FibPathNhProto::IP4 => Some(IpAddr::V4([n1, n2, n3, n4].into())),
        FibPathNhProto::IP6 => Some(IpAddr::V6(p.nh.address.0.into())),
        _ => None,
    };
    let (table, interface) = (TableId(p.table_id), interface(p));
    match (next_hop.filter(|ip| !ip.is_unspecified()), interface, p.proto) {
        (Some(address), ..) => {
            let table = interface.is_none().then_some(table);
            Place::NextHop { address, interface, table }
        }
        (None, Some(interface), _) => Place::Interface(interface),
        (None, None, FibPathNhProto::IP4) => Place::Lookup(LookIn::Ip(Version::V4), table),
        (None, None, FibPathNhProto::IP6) => Place::Lookup(LookIn::Ip(Version::V6), table),
        (None, None, FibPathNhProto::MPLS) => Place::Lookup(LookIn::Mpls, table),
        (None, None, _) => Place::Lookup(LookIn::Own, table),
    }
}

/// Place of a path that has an interface receive the packet.
fn receiving(p: &FibPath) -> Result<Place<SwIfIndex>, Retval> {
    let interface = interface(p).ok_or(Retval::NO_MATCHING_INTERFACE)?;
    let control_word = p.flags == FibPathFlags::POP_PW_CW;
    Ok(match p.proto {
        FibPathNhProto::ETHERNET => Place::Layer2 { interface, control_word },
        FibPathNhProto::IP6 => Place::Receive(Version::V6, interface),
        _ => Place::Receive(Version::V4, interface),
    })
}

/// Writes a path of a table of such packets.
#[must_use]
pub fn write(path: &PathText<SwIfIndex>, own: Version, table: TableId) -> FibPath {
    let proto = |version| match version {
        Version::V4 => FibPathNhProto::IP4,
        Version::V6 => FibPathNhProto::IP6,
    };
    let mut out = FibPath {
        sw_if_index: path.place.interface().copied().unwrap_or(SwIfIndex::MAX).get(),
        table_id: table.get(),
        weight: path.weight,
        preference: path.preference,
        proto: proto(own),
        ..FibPath::default()
    };
    match path.place {
        Place::NextHop { address, table, .. } => {
            out.proto = proto(Version::of_ip(address));
            out.nh = FibPathNh { address: address.into(), ..FibPathNh::default() };
            out.table_id = table.map_or(out.table_id, TableId::get);
        }
        Place::Label(label) => (out.proto, out.nh.via_label) = (FibPathNhProto::MPLS, label.get()),
        Place::Lookup(of, table) => {
            out.table_id = table.get();
            out.proto = match of {
                LookIn::Own | LookIn::AnyIp => out.proto,
                LookIn::Ip(version) => proto(version),
                LookIn::Mpls => FibPathNhProto::MPLS,
            };
        }
        Place::Receive(version, _) => {
            (out.proto, out.r#type) = (proto(version), FibPathType::INTERFACE_RX);
        }
        Place::Layer2 { control_word, .. } => {
            (out.proto, out.r#type) = (FibPathNhProto::ETHERNET, FibPathType::INTERFACE_RX);
            if control_word {
                out.flags = FibPathFlags::POP_PW_CW;
            }
        }
        Place::Interface(_) | Place::Group(_) => {}
        Place::End(kind) => out.r#type = type_of_end(kind),
    }
    put_labels(&mut out, &path.labels);
    out
}

fn type_of_end(kind: PathKind) -> FibPathType {
    match kind {
        PathKind::Local => FibPathType::LOCAL,
        PathKind::Unreachable => FibPathType::ICMP_UNREACH,
        PathKind::Prohibit => FibPathType::ICMP_PROHIBIT,
        _ => FibPathType::DROP,
    }
}

/// Returns the label whose paths a path of a message follows, if it follows one.
fn via_label(p: &FibPath) -> Result<Option<Label>, Retval> {
    // Clients leave it zero, or write VPP's words for "none".
    let number = p.nh.via_label;
    if number == 0 || number > MAX_LABEL.get() {
        return Ok(None);
    }
    if p.proto != FibPathNhProto::MPLS {
        let why = "a path that follows a label (`via_label') has the protocol MPLS";
        return Err(Retval::INVALID_VALUE.because(why));
    }
    let why = "labels up to 15 are reserved, and have no paths that a path could follow";
    via_label_of(number).map(Some).ok_or_else(|| Retval::INVALID_VALUE.because(why))
}

/// Returns the labels of a path in a message.
fn labels(p: &FibPath) -> Result<Labels, Retval> {
    let sent = p.label_stack.get(..usize::from(p.n_labels));
    let sent = sent.ok_or_else(|| Retval::INVALID_VALUE.because("a path has up to 16 labels"))?;
    if sent.iter().any(|l| l.exp > 7) {
        return Err(Retval::INVALID_VALUE.because("the class of a label is up to 7"));
    }
    // 64 is what 0 stands for.
    let mark = |l: &FibMplsLabel| Mark { ttl: if l.ttl == 64 { 0 } else { l.ttl }, class: l.exp };
    let marks: Vec<Mark> = sent.iter().map(mark).collect();
    let uniform = sent.iter().any(|l| l.is_uniform != 0);
    let mode = if uniform { Mode::Uniform } else { Mode::Pipe };
    let all: Vec<Label> = sent.iter().map(|l| Label(l.label)).collect();
    let labels = Labels::new(&all).map(|labels| labels.marked(&marks).in_mode(mode));
    labels.ok_or_else(|| {
        let limit = format_args!("a path has up to {MAX_LABELS} labels of 20 bits");
        Retval::INVALID_VALUE.because(limit)
    })
}

/// Sets the labels of a path in a message.
fn put_labels(p: &mut FibPath, labels: &Labels) {
    for (to, (label, mark)) in p.label_stack.iter_mut().zip(labels.iter()) {
        (to.label, to.ttl, to.exp) = (label.get(), mark.ttl, mark.class);
        to.is_uniform = (labels.mode() != Mode::Pipe).into();
    }
    p.n_labels = labels.as_slice().len() as u8;
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_fib::path_words::path_of;

    #[test]
    fn messages_have_the_paths_that_words_have() {
        for text in [
            "192.0.2.1 next-hop-table 9 weight 2 preference 3 out-labels 16 17 ttl 9 exp 5",
            "192.0.2.1 pg0 weight 255 out-labels implicit-null uniform",
            "2001:db8::1 next-hop-table 7",
            "fe80::1 pg0 preference 255",
            "pg0 weight 2 out-labels 16",
            "via-label 33 weight 2 out-labels 44",
            "ip4-lookup-in-table 0",
            "ip4-lookup-in-table 9 out-labels implicit-null uniform",
            "ip6-lookup-in-table 9",
            "mpls-lookup-in-table 9",
            "rx-ip4 pg0",
            "rx-ip6 pg0 out-labels implicit-null uniform",
            "l2-input-on pg0",
            "l2-input-on pg0 pop-pw-cw",
            "local",
            "drop",
            "unreachable",
            "prohibit",
        ] {
            let path = path_of(text).unwrap().map(|_| SwIfIndex(3));
            for own in Version::ALL {
                let message = write(&path, own, TableId(7));
                assert_eq!(read(&message), Ok(path), "{text}");
            }
        }
        let own = path_of("lookup in table 9").unwrap().map(|_: &str| SwIfIndex(3));
        let message = write(&own, Version::V6, TableId(7));
        assert_eq!(read(&message).map(|p| p.to_string()).as_deref(), Ok("ip6-lookup-in-table 9"));
    }
}
