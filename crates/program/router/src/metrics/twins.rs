//! Metrics of the twins that interfaces have in the kernel, and of the kernel's routes over them.

use std::fmt::Result;
use thalweg_feat_lcp::class::Class;
use thalweg_feat_lcp::pairs::{self, PairView};
use thalweg_feat_lcp::routes::{self, RoutesView};
use thalweg_feat_lcp::sync::{self, NamespaceView};
use thalweg_graph::Control;
use thalweg_stats::metrics::Page;

/// Figures of all twins.
#[derive(Clone, Debug)]
pub(crate) struct Twins {
    /// All pairs, each with the number of what the interface refuses of its twin.
    pairs: Vec<(PairView, usize)>,
    namespaces: Vec<NamespaceView>,
    changes: sync::Counters,
    routes: Vec<RoutesView>,
    taken: routes::Counters,
}

impl Twins {
    pub(crate) fn read(c: &Control) -> Twins {
        let of_pair = |pair: PairView| {
            let not_taken = sync::not_taken(c, pair.pair.phy);
            (pair, not_taken)
        };
        Twins {
            pairs: pairs::all(c).into_iter().map(of_pair).collect(),
            namespaces: sync::namespaces(c),
            changes: sync::counters(c),
            routes: routes::namespaces(c),
            taken: routes::counters(c),
        }
    }

    /// Writes them as metrics, unless there is none.
    pub(crate) fn write(&self, page: &mut Page<'_>) -> Result {
        if self.pairs.is_empty() {
            return Ok(());
        }
        let help = "Whether the kernel has the twin of an interface";
        page.gauge("thalweg_lcp_twin_present", help, |v| {
            let mut pairs = self.pairs.iter();
            pairs.try_for_each(|(p, _)| {
                let labels = [("interface", &*p.phy), ("twin", &*p.name)];
                v.add(&labels, u64::from(!p.is_away))
            })
        })?;
        let help = "Settings and addresses of a twin that its interface does not take now";
        page.gauge("thalweg_lcp_not_taken", help, |v| {
            let mut pairs = self.pairs.iter();
            pairs.try_for_each(|(p, n)| v.add(&[("interface", &*p.phy)], *n as u64))
        })?;
        let help = "Packets for twins, by class and result; `limited' ones were dropped";
        page.counter("thalweg_lcp_punted_packets", help, |v| {
            for (p, _) in &self.pairs {
                for (class, n) in Class::ALL.iter().zip(p.punted) {
                    for (result, n) in [("passed", n.passed), ("limited", n.limited)] {
                        let labels =
                            [("interface", &*p.phy), ("class", class.name()), ("result", result)];
                        v.add(&labels, n)?;
                    }
                }
            }
            Ok(())
        })?;
        page.counter("thalweg_lcp_changes", "Changes of twins by Linux, by result", |v| {
            v.add(&[("result", "taken")], self.changes.taken)?;
            v.add(&[("result", "refused")], self.changes.not_taken)
        })?;
        self.netlink(page)?;
        self.routes(page)
    }

    fn netlink(&self, page: &mut Page<'_>) -> Result {
        type One = (&'static str, &'static str, fn(&NamespaceView) -> u64);
        let each: [One; 4] = [
            ("thalweg_lcp_notices", "Notices of the kernel about a namespace", |n| {
                n.counters.notices
            }),
            ("thalweg_lcp_overruns", "Times that notices were lost, and all was read again", |n| {
                n.counters.overruns
            }),
            ("thalweg_lcp_orders", "Changes of twins by the router", |n| n.counters.orders),
            ("thalweg_lcp_refused", "Changes of twins that the kernel has refused", |n| {
                n.counters.refused
            }),
        ];
        for (name, help, value) in each {
            page.counter(name, help, |v| {
                let mut all = self.namespaces.iter();
                all.try_for_each(|n| v.add(&[("netns", &n.name)], value(n)))
            })?;
        }
        Ok(())
    }

    /// Figures of connections of `zebra`, where the router listens.
    fn fpm(&self, page: &mut Page<'_>) -> Result {
        type Value = fn(&RoutesView) -> Option<u64>;
        let connected: Value = |n| n.state.fpm.as_ref().map(|fpm| u64::from(fpm.client.is_some()));
        let all = |value: Value| self.routes.iter().filter_map(move |n| Some((n, value(n)?)));
        if all(connected).next().is_none() {
            return Ok(());
        }
        page.gauge("thalweg_lcp_fpm_connected", "Whether zebra is connected", |v| {
            all(connected).try_for_each(|(n, value)| v.add(&[("netns", &n.name)], value))
        })?;
        let counters: [(&str, &str, Value); 3] = [
            ("thalweg_lcp_fpm_connections", "Connections of zebra", |n| {
                n.state.fpm.as_ref().map(|fpm| fpm.connections)
            }),
            ("thalweg_lcp_fpm_refused", "Connections refused, as there was one", |n| {
                n.state.fpm.as_ref().map(|fpm| fpm.refused)
            }),
            ("thalweg_lcp_fpm_faults", "Frames of zebra that could not be read", |n| {
                n.state.fpm.as_ref().map(|fpm| fpm.faults)
            }),
        ];
        for (name, help, value) in counters {
            page.counter(name, help, |v| {
                all(value).try_for_each(|(n, value)| v.add(&[("netns", &n.name)], value))
            })?;
        }
        Ok(())
    }

    fn routes(&self, page: &mut Page<'_>) -> Result {
        fn of(n: &RoutesView) -> [(&str, &str); 2] {
            [("netns", &n.name), ("source", n.source())]
        }
        type One = (&'static str, &'static str, fn(&RoutesView) -> u64);
        let sizes: [One; 6] = [
            ("thalweg_lcp_routes", "Routes of the kernel that are followed", |n| {
                n.state.routes as u64
            }),
            ("thalweg_lcp_labels", "Routes of labels of the kernel that are followed", |n| {
                n.state.labels as u64
            }),
            ("thalweg_lcp_nexthop_objects", "Next-hop objects of the kernel", |n| {
                n.state.objects as u64
            }),
            ("thalweg_lcp_routes_waiting", "Changes of routes that wait to be taken", |n| {
                n.state.waiting as u64
            }),
            (
                "thalweg_lcp_routes_left",
                "Routes, labels and objects left out, unsupported or too many",
                |n| n.state.left.unsupported + n.state.left.beyond,
            ),
            ("thalweg_lcp_routes_complete", "Whether the first list of routes is complete", |n| {
                u64::from(n.state.complete)
            }),
        ];
        for (name, help, value) in sizes {
            page.gauge(name, help, |v| {
                self.routes.iter().try_for_each(|n| v.add(&of(n), value(n)))
            })?;
        }
        let counters: [One; 6] = [
            ("thalweg_lcp_route_notices", "Notices of the kernel about routes", |n| {
                n.state.counters.notices
            }),
            ("thalweg_lcp_route_overruns", "Times that notices about routes were lost", |n| {
                n.state.counters.overruns
            }),
            ("thalweg_lcp_route_resyncs", "Times that all routes were listed again", |n| {
                n.state.counters.resyncs
            }),
            (
                "thalweg_lcp_route_interrupted",
                "Lists of routes that a change has interrupted",
                |n| n.state.counters.interrupted,
            ),
            ("thalweg_lcp_route_failed", "Lists of routes that the kernel has refused", |n| {
                n.state.counters.failed
            }),
            (
                "thalweg_lcp_route_restarts",
                "Times that the socket of notices was opened again",
                |n| n.state.counters.restarts,
            ),
        ];
        for (name, help, value) in counters {
            page.counter(name, help, |v| {
                self.routes.iter().try_for_each(|n| v.add(&of(n), value(n)))
            })?;
        }
        self.fpm(page)?;
        page.counter(
            "thalweg_lcp_route_changes",
            "Changes of routes by the kernel, by result",
            |v| {
                v.add(&[("result", "taken")], self.taken.taken)?;
                v.add(&[("result", "refused")], self.taken.refused)
            },
        )
    }
}
