//! Types and helpers shared by the API messages.

use crate::label_table::Action;
use crate::{Key, LabelView, Via};
use std::net::IpAddr;
use thalweg_api::schema::Module;
use thalweg_api::types::fib::{FibPath, FibPathFlags, FibPathNhProto, FibPathType};
use thalweg_api::{ApiType, Retval, Text};
use thalweg_device::SwIfIndex;
use thalweg_feat_ip::{Path, PathKind};
use thalweg_fib::TableId;
use thalweg_wire::mpls::{Label, MAX_LABEL};

/// The API module.
pub static MPLS: Module = Module { name: "mpls", folder: "core", version: "1.1.1" };

/// A label table.
#[derive(Clone, Debug, Default, ApiType)]
pub struct MplsTable {
    /// Table id.
    pub mt_table_id: u32,
    /// User-given name.
    pub mt_name: Text<64>,
}

/// A label and its paths.
#[derive(Clone, Debug, Default, ApiType)]
pub struct MplsRoute {
    /// Table id.
    pub mr_table_id: u32,
    /// The label.
    pub mr_label: u32,
    /// Nonzero where it is the bottom of the stack.
    pub mr_eos: u8,
    /// Protocol of the packet behind the bottom: 0 for IPv4.
    pub mr_eos_proto: u8,
    /// A replicated label.
    pub mr_is_multicast: bool,
    /// Paths.
    #[api(count = "mr_n_paths: u8")]
    pub mr_paths: Vec<FibPath>,
}

/// Protocol of the packet behind the bottom in messages.
const EOS_IP4: u8 = 0;
/// That of labels that are not the bottom.
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
    if eos && route.mr_eos_proto != EOS_IP4 && route.mr_eos_proto != EOS_MPLS {
        return unimplemented("packets other than IPv4 behind the bottom of the stack");
    }
    Ok((TableId(route.mr_table_id), Key { label, eos }))
}

/// Converts a path of a message.
pub(crate) fn via(p: &FibPath) -> Result<Via, Retval> {
    let unimplemented = |what: &str| {
        Err(Retval::UNIMPLEMENTED.because(format_args!("{what} are not supported yet")))
    };
    let labels = thalweg_feat_ip::api_types::labels(p)?;
    let none = |n: u32| n == 0 || n == u32::MAX;
    if !none(p.rpf_id) || !none(p.nh.obj_id) || !none(p.nh.classify_table_index) {
        return unimplemented("RPF ids, tunnels and classifier tables of paths");
    }
    if !none(p.nh.via_label) && p.nh.via_label <= MAX_LABEL.get() {
        return unimplemented("next hops by label");
    }
    if p.flags != FibPathFlags::NONE {
        return unimplemented("flags of paths");
    }
    let sw_if = (p.sw_if_index != u32::MAX).then_some(SwIfIndex(p.sw_if_index));
    let [n1, n2, n3, n4, ..] = p.nh.address.0;
    let next_hop = match p.proto {
        FibPathNhProto::IP4 => Some(IpAddr::V4([n1, n2, n3, n4].into())),
        FibPathNhProto::MPLS => None,
        _ => return unimplemented("paths of this protocol"),
    };
    let next_hop = next_hop.filter(|ip| !ip.is_unspecified());
    let special = |kind| Ok(Via::Path(Path { sw_if, ..Path::special(kind) }));
    match p.r#type {
        FibPathType::NORMAL => {}
        FibPathType::LOCAL => return special(PathKind::Local),
        FibPathType::DROP => return special(PathKind::Drop),
        FibPathType::INTERFACE_RX if sw_if.is_some() => return special(PathKind::InterfaceRx),
        FibPathType::INTERFACE_RX => return Err(Retval::NO_MATCHING_INTERFACE),
        known if known.known() => return unimplemented("paths of this type"),
        _ => return Err(Retval::INVALID_VALUE),
    }
    match (next_hop, sw_if, p.proto) {
        (None, None, FibPathNhProto::MPLS) => Ok(Via::Mpls(TableId(p.table_id))),
        (None, None, _) => special(PathKind::Lookup(TableId(p.table_id))),
        _ => {
            let (weight, preference) = (p.weight.max(1), p.preference);
            let path = Path { next_hop, sw_if, ..Path::special(PathKind::Normal) };
            Ok(Via::Path(Path { weight, preference, labels, ..path }))
        }
    }
}

fn describe_path(via: &Via) -> FibPath {
    let mut out = FibPath { sw_if_index: u32::MAX, weight: 1, ..FibPath::default() };
    let p = match via {
        Via::Path(p) => p,
        Via::Mpls(table) => {
            (out.proto, out.table_id) = (FibPathNhProto::MPLS, table.get());
            return out;
        }
    };
    out.sw_if_index = p.sw_if.map_or(u32::MAX, SwIfIndex::get);
    (out.weight, out.preference) = (p.weight, p.preference);
    out.nh.address = p.next_hop.map(Into::into).unwrap_or_default();
    out.r#type = match p.kind {
        PathKind::Local => FibPathType::LOCAL,
        PathKind::InterfaceRx => FibPathType::INTERFACE_RX,
        PathKind::Normal | PathKind::Lookup(_) => FibPathType::NORMAL,
        _ => FibPathType::DROP,
    };
    if let PathKind::Lookup(table) = p.kind {
        out.table_id = table.get();
    }
    thalweg_feat_ip::api_types::put_labels(&mut out, &p.labels);
    out
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
        mr_eos_proto: if view.key.eos { EOS_IP4 } else { EOS_MPLS },
        mr_is_multicast: false,
        mr_paths,
    }
}
