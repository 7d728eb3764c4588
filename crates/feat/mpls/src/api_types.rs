//! Helpers shared by the API messages.

use crate::label_table::{Action, Behind, To};
use crate::message_types::{MplsRoute, MplsTunnel};
use crate::tunnels::Tunnel;
use crate::{Bound, Key, LabelView, Via};
use std::net::IpAddr;
use thalweg_api::Retval;
use thalweg_api::types::fib::{FibPath, FibPathFlags, FibPathNhProto, FibPathType};
use thalweg_api::types::{InterfaceIndex, Prefix};
use thalweg_feat_ip::{Path, PathKind, api_path};
use thalweg_fib::{Place, TableId, Version};
use thalweg_graph::Control;
use thalweg_wire::mpls::{Label, MAX_LABEL};

/// Protocol of the packet behind the bottom in messages.
const EOS_IP4: u8 = 0;
/// The same of IPv6 packets.
const EOS_IP6: u8 = 1;
/// The same of pseudowires.
const EOS_ETHERNET: u8 = 3;
/// The same of labels that are not the bottom.
const EOS_MPLS: u8 = 2;

/// Returns the table and label of a message.
pub(crate) fn key(route: &MplsRoute) -> Result<(TableId, Key), Retval> {
    let unimplemented = |what: &str| {
        Err(Retval::UNIMPLEMENTED.because(format_args!("{what} are not supported yet")))
    };
    let label = Label(route.mr_label);
    if label > MAX_LABEL {
        return Err(Retval::INVALID_VALUE.because("a label has up to 20 bits"));
    }
    if route.mr_is_multicast {
        return unimplemented("replicated labels");
    }
    let eos = route.mr_eos != 0;
    if eos && route.mr_eos_proto > EOS_ETHERNET {
        return unimplemented("packets of this protocol behind the bottom of the stack");
    }
    Ok((TableId(route.mr_table_id), Key { label, eos }))
}

/// Converts the paths of a message.
pub(crate) fn vias(route: &MplsRoute) -> Result<Vec<Via>, Retval> {
    let all = route.mr_paths.iter().map(via).collect::<Result<Vec<Via>, Retval>>()?;
    // The popped label says what is behind it: a path that says otherwise would mislead packets.
    let popped = |via: &Via| match via {
        Via::Ip6(_) => Some(EOS_IP6),
        Via::Path(p) if p.labels.sent().as_slice().is_empty() => match (p.kind, p.next_hop) {
            (PathKind::Normal, Some(IpAddr::V6(_))) => Some(EOS_IP6),
            (PathKind::Normal, Some(_)) | (PathKind::Lookup(_) | PathKind::InterfaceRx, _) => {
                Some(EOS_IP4)
            }
            _ => None,
        },
        _ => None,
    };
    let named = route.mr_eos_proto;
    let is_ip = route.mr_eos != 0 && [EOS_IP4, EOS_IP6].contains(&named);
    if is_ip && all.iter().filter_map(popped).any(|proto| proto != named) {
        let why = "paths that pop the label have next hops or tables of the protocol of the packet";
        return Err(Retval::INVALID_VALUE.because(why));
    }
    Ok(all)
}

/// Converts a path of a message.
pub(crate) fn via(p: &FibPath) -> Result<Via, Retval> {
    if ![FibPathFlags::NONE, FibPathFlags::POP_PW_CW].contains(&p.flags) {
        return api_path::unimplemented("flags of paths");
    }
    let mut path = api_path::read(p)?;
    match &mut path.place {
        Place::End(PathKind::Unreachable | PathKind::Prohibit) => {
            return api_path::unimplemented("paths of this type");
        }
        Place::NextHop { table, .. } => *table = table.filter(|id| *id != TableId(0)),
        _ if p.proto == FibPathNhProto::BIER => {
            return api_path::unimplemented("paths of this protocol");
        }
        _ => {}
    }
    Ok(Via::of(path))
}

/// Converts the paths of a tunnel in a message.
pub(crate) fn tunnel_paths(tunnel: &MplsTunnel) -> Result<Vec<Path>, Retval> {
    let path = |p: &FibPath| match via(p)? {
        Via::Path(path) => Ok(path),
        _ => Err(Retval::INVALID_VALUE.because("a path of a tunnel is one to a next hop")),
    };
    tunnel.mt_paths.iter().map(path).collect()
}

/// Converts a tunnel to its API type.
pub(crate) fn describe_tunnel(c: &Control, tunnel: &Tunnel) -> MplsTunnel {
    let flags = match tunnel.control_word {
        true => FibPathFlags::POP_PW_CW,
        false => FibPathFlags::NONE,
    };
    let path = |p: &Path| FibPath { flags, ..describe_path(&Via::Path(*p)) };
    let view = thalweg_device::interface::view(c, tunnel.sw_if);
    MplsTunnel {
        mt_sw_if_index: InterfaceIndex(tunnel.sw_if.get()),
        mt_tunnel_index: tunnel.number,
        mt_l2_only: tunnel.layer2,
        mt_is_multicast: false,
        mt_tag: view.map(|view| view.tag.as_str().into()).unwrap_or_default(),
        mt_paths: tunnel.paths.iter().map(path).collect(),
    }
}

/// Returns the prefix of a message.
pub(crate) fn bound(table: TableId, prefix: Prefix) -> Result<Bound, Retval> {
    let (address, len) = prefix.parts()?;
    let why = "a prefix has up to 32 bits, or 128 of IPv6";
    Bound::new(table, address, len).ok_or_else(|| Retval::INVALID_PREFIX_LENGTH.because(why))
}

fn describe_path(via: &Via) -> FibPath {
    api_path::write(&via.text(), Version::V4, TableId(0))
}

/// The path of a label that every table has.
fn own_path(action: Action) -> FibPath {
    let r#type = match action {
        Action::Punt => FibPathType::LOCAL,
        Action::Drop => FibPathType::DROP,
        _ => FibPathType::NORMAL,
    };
    let proto = match action {
        Action::LookUpMplsHere => FibPathNhProto::MPLS,
        Action::Ip(Behind { version: Version::V6, .. }, To::Here) => FibPathNhProto::IP6,
        _ => FibPathNhProto::IP4,
    };
    FibPath { sw_if_index: u32::MAX, weight: 1, r#type, proto, ..FibPath::default() }
}

/// Converts a label to its API type.
pub(crate) fn describe(table: TableId, view: &LabelView) -> MplsRoute {
    let mr_paths = match &view.vias[..] {
        [] => vec![own_path(view.action)],
        vias => vias.iter().map(describe_path).collect(),
    };
    MplsRoute {
        mr_table_id: table.get(),
        mr_label: view.key.label.get(),
        mr_eos: view.key.eos.into(),
        mr_eos_proto: match (view.key.eos, view.action) {
            (false, _) => EOS_MPLS,
            (true, Action::ReceiveL2(..)) => EOS_ETHERNET,
            (true, Action::Ip(Behind { version: Version::V6, .. }, _)) => EOS_IP6,
            (true, Action::Member(Version::V6, _)) => EOS_IP6,
            (true, _) => EOS_IP4,
        },
        mr_is_multicast: false,
        mr_paths,
    }
}
