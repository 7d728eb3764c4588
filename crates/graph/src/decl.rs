//! What a node, an arc and an error are: plain statics beside the code they describe.

use crate::control::BuildCx;
use crate::node::{InputNode, Node, Runner, Tap};

/// Position of a node in every worker's graph.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct NodeId(pub u16);

/// A feature arc: a place in the graph where features may be hung in, per interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ArcId(pub u8);

/// How bad it is that an event was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// Ordinary business.
    Info,
    /// Something that an operator may want to know.
    Warning,
    /// A packet was lost.
    Error,
}

impl Severity {
    /// The word that `show errors` prints.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warn",
            Severity::Error => "error",
        }
    }
}

/// A counter of a node. If it is a drop reason, it is also the trace label and the sFlow discard
/// code of the packets that it counts.
#[derive(Clone, Copy, Debug)]
pub struct ErrorDecl {
    /// Short name, unique in the node: `ttl_expired`.
    pub name: &'static str,
    /// What `show errors` prints.
    pub text: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// sFlow v5 discard reason (256 = unknown), for drop reasons.
    pub discard: u16,
}

/// What part a node plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Brings packets in: polled once per loop.
    Input,
    /// Handles frames.
    Internal,
    /// Hands packets to a device.
    Tx,
    /// Ends packets.
    Drop,
    /// Looks at frames on an arc without moving them.
    Tap,
}

/// Which interface selects a packet's features on an arc.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArcKey {
    /// The interface that it came from.
    Rx,
    /// The interface that it leaves by.
    Tx,
}

/// A feature arc.
#[derive(Debug)]
pub struct ArcDecl {
    /// `device-input`, `ip4-unicast`, …
    pub name: &'static str,
    /// Whose features.
    pub key: ArcKey,
    /// The node behind the last feature, unless the interface has its own.
    pub end: &'static str,
}

/// A node's place on an arc.
#[derive(Debug)]
pub struct FeatureDecl {
    /// The arc's name.
    pub arc: &'static str,
    /// Features on the same arc that must come later.
    pub before: &'static [&'static str],
    /// Features on the same arc that must come earlier.
    pub after: &'static [&'static str],
}

/// A node, declared in one place.
pub struct NodeDecl {
    /// The name by which `show runtime`, traces and other nodes call it.
    pub name: &'static str,
    /// What part it plays.
    pub kind: Kind,
    /// Next nodes by name; [`Verdict::next`](crate::Verdict::next) counts in this order.
    pub next: &'static [&'static str],
    /// Counters and drop reasons; verdicts and counts name them by position.
    pub errors: &'static [ErrorDecl],
    /// Where the node's drops go.
    pub drop: &'static str,
    /// If it is a feature: where.
    pub feature: Option<FeatureDecl>,
    /// More arcs that it sits on; for taps.
    pub also_on: &'static [&'static str],
    /// Makes a worker's instance.
    pub build: fn(&BuildCx<'_>) -> Built,
}

impl NodeDecl {
    /// The arcs that it sits on.
    pub(crate) fn arcs(&self) -> impl Iterator<Item = &'static str> {
        self.feature.iter().map(|f| f.arc).chain(self.also_on.iter().copied())
    }

    /// What most nodes have in common, for `..NodeDecl::DEFAULT`.
    pub const DEFAULT: NodeDecl = NodeDecl {
        name: "",
        kind: Kind::Internal,
        next: &[],
        errors: &[],
        drop: "error-drop",
        feature: None,
        also_on: &[],
        build: |_| unreachable!("a node without a build function"),
    };
}

/// A worker's instance of a node.
pub enum Built {
    /// Handles frames.
    Node(Box<dyn Runner>),
    /// Brings packets in.
    Input(Box<dyn InputNode>),
    /// Looks on.
    Tap(Box<dyn Tap>),
}

impl Built {
    /// Wraps a per-packet node.
    pub fn node<N: Node>(node: N) -> Built {
        Built::Node(Box::new(crate::node::Adapter::new(node)))
    }
    /// Wraps a node that handles frames itself.
    pub fn runner<R: Runner + 'static>(node: R) -> Built {
        Built::Node(Box::new(crate::node::OwnLines(node)))
    }
    /// Wraps an input node.
    pub fn input<N: InputNode>(node: N) -> Built {
        Built::Input(Box::new(crate::node::OwnLines(node)))
    }
    /// Wraps a tap.
    pub fn tap<T: Tap>(tap: T) -> Built {
        Built::Tap(Box::new(crate::node::OwnLines(tap)))
    }
}

/// Declares next nodes: a constant verdict per next and the list for the declaration.
///
/// ```
/// thalweg_graph::next_nodes! { LOOKUP => "ip4-lookup", LOCAL => "ip4-local" }
/// assert_eq!(NEXT_NODES, ["ip4-lookup", "ip4-local"]);
/// ```
#[macro_export]
macro_rules! next_nodes {
    ($($name:ident => $node:literal),* $(,)?) => {
        $crate::next_nodes!(@consts 0u16; $($name,)*);
        /// Next nodes in the order of the verdicts above.
        pub(crate) const NEXT_NODES: &[&str] = &[$($node),*];
    };
    (@consts $i:expr; $name:ident, $($rest:ident,)*) => {
        #[allow(dead_code)]
        const $name: $crate::Verdict = $crate::Verdict::next($i);
        $crate::next_nodes!(@consts $i + 1; $($rest,)*);
    };
    (@consts $i:expr;) => {};
}

/// Declares a node's counters: a constant per counter and the list for the declaration.
///
/// ```
/// thalweg_graph::errors! {
///     TTL: Error, 257, "ip4 ttl <= 1";
///     SEEN: Info, 256, "packets seen";
/// }
/// assert_eq!(ERRORS.len(), 2);
/// ```
#[macro_export]
macro_rules! errors {
    ($($name:ident: $severity:ident, $discard:expr, $text:literal;)*) => {
        $crate::errors!(@consts 0u16; $($name,)*);
        /// Counters in the order of the constants above.
        pub(crate) const ERRORS: &[$crate::ErrorDecl] = &[$($crate::ErrorDecl {
            name: stringify!($name),
            text: $text,
            severity: $crate::Severity::$severity,
            discard: $discard,
        }),*];
    };
    (@consts $i:expr; $name:ident, $($rest:ident,)*) => {
        #[allow(dead_code)]
        pub(crate) const $name: $crate::ErrorCode = $crate::ErrorCode($i);
        $crate::errors!(@consts $i + 1; $($rest,)*);
    };
    (@consts $i:expr;) => {};
}
