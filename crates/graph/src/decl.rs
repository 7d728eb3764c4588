//! Declarations of nodes, arcs and errors: plain statics next to the code they describe.

use crate::control::BuildCx;
use crate::node::{InputNode, Node, Runner, Tap};

/// Position of a node in every worker's graph.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct NodeId(pub u16);

/// A feature arc: a point in the graph at which features can be enabled per interface.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ArcId(pub u8);

/// Severity of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// A normal event.
    Info,
    /// An event that an operator may want to know about.
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

/// A counter of a node. A drop reason is also the trace label of the packets that it counts, and
/// sets their sFlow discard code.
#[derive(Clone, Copy, Debug)]
pub struct ErrorDecl {
    /// Short name, unique in the node: `ttl_expired`.
    pub name: &'static str,
    /// Text that `show errors` prints.
    pub text: &'static str,
    /// Severity.
    pub severity: Severity,
    /// sFlow v5 discard reason, for drop reasons: one of [`discard`](crate::discard).
    pub discard: u16,
}

/// Kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Receives packets: polled once per loop.
    Input,
    /// Receives no packets, but is polled once per loop: it has work of its own.
    Timer,
    /// Processes frames.
    Internal,
    /// Transmits packets.
    Tx,
    /// Drops packets.
    Drop,
    /// Inspects frames on an arc without moving them.
    Tap,
}

/// Interface that selects a packet's features on an arc.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArcKey {
    /// The interface that the packet came in by.
    Rx,
    /// The interface that the packet leaves by.
    Tx,
}

/// A feature arc.
#[derive(Debug)]
pub struct ArcDecl {
    /// `device-input`, `ip4-unicast`, …
    pub name: &'static str,
    /// Interface that selects the features.
    pub key: ArcKey,
    /// Node after the last feature, unless the interface has its own.
    pub end: &'static str,
}

/// Stages of an arc: a packet passes the features of an earlier one first, whatever their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Takes packets past what the interface decides: those that only pass through for another one.
    Passage,
    /// Decides if the interface takes or sends such packets at all.
    Admission,
    /// Fragments become datagrams, or are found to belong together.
    Reassembly,
    /// Checks that a packet fits its way: its length, its source.
    Check,
    /// Permits or denies: filters see addresses as they are on the wire of the arc's interface when
    /// it receives, and as hosts inside know them when it sends.
    #[default]
    Filter,
    /// Rate, marks and segment sizes of what is left.
    Shaping,
    /// Addresses of another realm, in packets.
    Translation,
    /// The same, by rules for whole frames. Answers to translated packets are restored in this
    /// order: that of the way out, backwards.
    FrameTranslation,
}

/// A node's place on an arc.
#[derive(Clone, Copy, Debug)]
pub struct FeatureDecl {
    /// The arc's name.
    pub arc: &'static str,
    /// Its stage there.
    pub stage: Stage,
    /// Features of the same stage that must come later.
    pub before: &'static [&'static str],
    /// Features of the same stage that must come earlier.
    pub after: &'static [&'static str],
}

impl FeatureDecl {
    /// A place on an arc, at its default stage.
    pub const fn on(arc: &'static str) -> FeatureDecl {
        FeatureDecl { arc, stage: Stage::Filter, before: &[], after: &[] }
    }
    /// Returns the feature at another stage.
    #[must_use]
    pub const fn at(self, stage: Stage) -> FeatureDecl {
        FeatureDecl { stage, ..self }
    }
    /// Goes earlier than some of its stage.
    #[must_use]
    pub const fn before(self, before: &'static [&'static str]) -> FeatureDecl {
        FeatureDecl { before, ..self }
    }
    /// Goes later than some of its stage.
    #[must_use]
    pub const fn after(self, after: &'static [&'static str]) -> FeatureDecl {
        FeatureDecl { after, ..self }
    }
}

/// A node's declaration.
pub struct NodeDecl {
    /// Name in `show runtime`, traces and other nodes' declarations.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Next nodes by name; [`Verdict::next`](crate::Verdict::next) counts in this order.
    pub next: &'static [&'static str],
    /// Counters and drop reasons; verdicts and counts name them by position.
    pub errors: &'static [ErrorDecl],
    /// Node that receives its drops.
    pub drop: &'static str,
    /// Place on an arc, if it is a feature.
    pub feature: Option<FeatureDecl>,
    /// Further arcs that it is on; for taps, and for features after which no packet goes on.
    pub also_on: &'static [&'static str],
    /// Builds a worker's instance.
    pub build: fn(&BuildCx<'_>) -> Built,
}

impl NodeDecl {
    /// Returns the arcs that it is on.
    pub(crate) fn arcs(&self) -> impl Iterator<Item = &'static str> {
        self.feature.iter().map(|f| f.arc).chain(self.also_on.iter().copied())
    }

    /// Defaults, for `..NodeDecl::DEFAULT`.
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
    /// Processes frames.
    Node(Box<dyn Runner>),
    /// Receives packets.
    Input(Box<dyn InputNode>),
    /// Inspects frames.
    Tap(Box<dyn Tap>),
    /// The node cannot be made: the router does not start, and says why.
    Refused(String),
}

impl Built {
    /// Wraps a per-packet node.
    pub fn node<N: Node>(node: N) -> Built {
        Built::Node(Box::new(crate::node::Adapter::new(node)))
    }
    /// Wraps a node that processes frames itself.
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
///
/// The first ones may have a list of their own, for a node that goes on to them only. Their
/// verdicts are those of both nodes:
///
/// ```
/// thalweg_graph::next_nodes! {
///     SHARED { LOOKUP => "ip4-lookup", LOCAL => "ip4-local" }
///     PUNT => "ip4-punt",
/// }
/// assert_eq!(SHARED, ["ip4-lookup", "ip4-local"]);
/// assert_eq!(NEXT_NODES, ["ip4-lookup", "ip4-local", "ip4-punt"]);
/// assert_eq!(PUNT, thalweg_graph::Verdict::next(2));
/// ```
#[macro_export]
macro_rules! next_nodes {
    (
        $first:ident { $($begin:ident => $shared:literal),* $(,)? }
        $($name:ident => $node:literal),* $(,)?
    ) => {
        $crate::next_nodes! { $($begin => $shared,)* $($name => $node,)* }
        /// The first of the next nodes.
        pub(crate) const $first: &[&str] = &[$($shared),*];
    };
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

/// Declares a node's counters: a constant per counter and the list for the declaration. Each has a
/// severity, a reason of [`discard`](crate::discard), and a text.
///
/// ```
/// thalweg_graph::errors! {
///     TTL: Error, TTL_EXCEEDED, "ip4 ttl <= 1";
///     SEEN: Info, UNKNOWN, "packets seen";
/// }
/// assert_eq!(ERRORS.len(), 2);
/// ```
///
/// The first ones may have a list of their own, for a node that counts nothing else. Their
/// constants are those of both nodes:
///
/// ```
/// thalweg_graph::errors! {
///     SHARED {
///         TTL: Error, TTL_EXCEEDED, "ip4 ttl <= 1";
///         SEEN: Info, UNKNOWN, "packets seen";
///     }
///     LOST: Error, UNKNOWN, "packets lost";
/// }
/// let names = |list: &[thalweg_graph::ErrorDecl]| list.iter().map(|e| e.name).collect::<Vec<_>>();
/// assert_eq!(names(SHARED), ["TTL", "SEEN"]);
/// assert_eq!(names(ERRORS), ["TTL", "SEEN", "LOST"]);
/// assert_eq!(LOST, thalweg_graph::ErrorCode(2));
/// ```
#[macro_export]
macro_rules! errors {
    (
        $first:ident {
            $($begin:ident: $degree:ident, $reason:ident, $shared:literal;)*
        }
        $($name:ident: $severity:ident, $discard:ident, $text:literal;)*
    ) => {
        $crate::errors! {
            $($begin: $degree, $reason, $shared;)*
            $($name: $severity, $discard, $text;)*
        }
        /// The first of the counters.
        pub(crate) const $first: &[$crate::ErrorDecl] =
            $crate::errors!(@list $($begin: $degree, $reason, $shared;)*);
    };
    ($($name:ident: $severity:ident, $discard:ident, $text:literal;)*) => {
        $crate::errors!(@consts 0u16; $($name,)*);
        /// Counters in the order of the constants above.
        pub(crate) const ERRORS: &[$crate::ErrorDecl] =
            $crate::errors!(@list $($name: $severity, $discard, $text;)*);
    };
    (@list $($name:ident: $severity:ident, $discard:ident, $text:literal;)*) => {
        &[$($crate::ErrorDecl {
            name: stringify!($name),
            text: $text,
            severity: $crate::Severity::$severity,
            discard: $crate::discard::$discard,
        }),*]
    };
    (@consts $i:expr; $name:ident, $($rest:ident,)*) => {
        #[allow(dead_code)]
        pub(crate) const $name: $crate::ErrorCode = $crate::ErrorCode($i);
        $crate::errors!(@consts $i + 1; $($rest,)*);
    };
    (@consts $i:expr;) => {};
}
