//! Output of traces: which of them, and with which times.

use crate::classify::{Classifier, ClassifyError};
use std::sync::Arc;
use std::time::SystemTime;
use thalweg_graph::clock;
use thalweg_graph::control::Control;
use thalweg_graph::decl::NodeId;
use thalweg_graph::trace::PacketTrace;

/// Kept traces, for `show trace` and the binary API.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracing {
    pub(crate) filter: Option<ShownFilter>,
    /// Name of the filter's node, whose number may be another one's later.
    node: Option<Arc<str>>,
    pub(crate) stamp: Stamp,
}

/// Traces that meet something, or that do not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownFilter {
    pub(crate) what: What,
    pub(crate) include: bool,
    /// Maximum number per thread.
    pub(crate) count: usize,
}

/// Selection of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A node that they go through.
    Node(NodeId),
    /// A classifier table, or one that it leads to, which hits the packet where its trace begins.
    Table(u32),
}

impl ShownFilter {
    /// Keeps the traces that are shown.
    pub(crate) fn keep(&self, c: &Control, packets: &mut Vec<PacketTrace>) {
        let include = self.include;
        match self.what {
            What::Node(node) => {
                let meets = |p: &PacketTrace| p.steps.iter().any(|step| step.node == node);
                packets.retain(|p| meets(p) == include);
            }
            What::Table(first) => {
                let filter = c.state::<Classifier>().borrow().filter(first);
                // Packets that the router made have no head, and meet no table.
                packets.retain(|p| (!p.head.is_empty() && filter.matches(&p.head)) == include);
            }
        }
        packets.truncate(self.count);
    }
}

/// Format of the time of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// Time since the start.
    #[default]
    Relative,
    /// Seconds since 1970.
    Unix,
    /// Date and time of day, in UTC.
    Datetime,
}

impl Stamp {
    pub(crate) const WORDS: [&'static str; 3] = ["relative", "unix", "datetime"];

    pub(crate) fn of(word: &str) -> Stamp {
        match word {
            "unix" => Stamp::Unix,
            "datetime" => Stamp::Datetime,
            _ => Stamp::Relative,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        Stamp::WORDS[self as usize]
    }

    /// Formats a time in ticks.
    pub(crate) fn format(self, at: u64) -> String {
        match self {
            Stamp::Relative => clock::format_since_start(at),
            Stamp::Unix => {
                let since = clock::wall(at).duration_since(SystemTime::UNIX_EPOCH);
                let since = since.unwrap_or_default();
                format!("{}.{:06}", since.as_secs(), since.subsec_micros())
            }
            Stamp::Datetime => thalweg_cli::utc(clock::wall(at)).replacen(' ', "T", 1) + "Z",
        }
    }
}

/// Returns whether a node still has a name.
fn has_name(c: &Control, id: NodeId, name: &str) -> bool {
    c.nodes().get(usize::from(id.0)).is_some_and(|entry| &*entry.name == name)
}

impl Tracing {
    pub(crate) fn init(c: &mut Control) {
        c.insert(Tracing::default());
    }

    pub(crate) fn of(c: &Control) -> Tracing {
        let mut tracing = c.state::<Tracing>().borrow().clone();
        let name = tracing.node.as_ref();
        let stays = match tracing.filter.as_mut().map(|filter| &mut filter.what) {
            // A table may have been removed since, and another one may begin its chain.
            Some(What::Table(first)) => {
                let now = c.state::<Classifier>().borrow().shown();
                *first = now.unwrap_or(*first);
                now.is_some()
            }
            // A node may have ended with its interface, and come back by another number.
            Some(What::Node(id)) if !name.is_some_and(|name| has_name(c, *id, name)) => {
                let now = name.and_then(|name| c.node(name));
                *id = now.unwrap_or(*id);
                now.is_some()
            }
            _ => true,
        };
        tracing.filter = tracing.filter.filter(|_| stays);
        tracing
    }

    /// Sets which traces are shown.
    ///
    /// # Errors
    /// [`ClassifyError::NoTable`].
    pub(crate) fn show(c: &Control, filter: Option<ShownFilter>) -> Result<(), ClassifyError> {
        let table = filter.and_then(|filter| match filter.what {
            What::Table(index) => Some(index),
            What::Node(_) => None,
        });
        c.state::<Classifier>().borrow_mut().show(table)?;
        let node = filter.and_then(|filter| match filter.what {
            What::Node(id) => c.nodes().get(usize::from(id.0)).map(|entry| entry.name.clone()),
            What::Table(_) => None,
        });
        let state = c.state::<Tracing>();
        let mut state = state.borrow_mut();
        (state.filter, state.node) = (filter, node);
        Ok(())
    }
}
