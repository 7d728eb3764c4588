//! Linux control plane: twins outlive the router while a service manager keeps their descriptors.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use thalweg_smoke::{Config, Keeper, Router};
use thalweg_testkit::{
    LinkOptions, Netns, PingOptions, WAIT_LIMIT, lab_test, ping, veth, wait_until_seen,
};

/// A router with a document, whose interface has a twin with a static route, and a host.
struct Edge {
    plane: Netns,
    host: Netns,
    keeper: Keeper,
    config: Config,
    router: Router,
    _files: TempDir,
}

impl Edge {
    fn start() -> Result<Edge> {
        let [router, plane, host] = ["lcp-router", "lcp-plane", "lcp-host"].map(Netns::new);
        let (router, plane, host) = (router?, plane?, host?);
        plane.ip("link set lo up")?;
        for (what, value) in [("accept_dad", "0"), ("disable_ipv6", "0")] {
            for which in ["all", "default"] {
                plane.set_sysctl(&format!("net/ipv6/conf/{which}/{what}"), value)?;
            }
        }
        let theirs = LinkOptions::default().address("10.1.0.2/24");
        veth((&router, "e0", &LinkOptions::default()), (&host, "eth0", &theirs))?;
        let (keeper, files) = (Keeper::new()?, tempfile::tempdir()?);
        let config = Config::empty().kept_by(&keeper).keeps(&files.path().join("thalweg.yaml"));
        let start = config.clone().commands(&format!(
            "create host-interface name e0
             set interface ip address host-e0 10.1.0.1/24
             set interface ip address host-e0 fd01::1/64
             set interface state host-e0 up
             lcp lcp-sync on
             lcp create host-e0 host-if e0 netns {}
             config commit",
            plane.descriptor_path().display()
        ));
        let router = Router::start(&router, &start)?;
        let edge = Edge { plane, host, keeper, config, router, _files: files };
        edge.await_twin("fd01::1/64")?;
        Ok(edge)
    }

    fn twin(&self) -> Result<String> {
        self.plane.ip("-d address show dev e0")
    }

    fn await_twin(&self, word: &str) -> Result<()> {
        wait_until_seen(WAIT_LIMIT, "the twin", || {
            let twin = self.twin()?;
            ensure!(twin.contains(word), "no {word}: {twin}");
            Ok(())
        })
    }

    fn index(&self) -> Result<u32> {
        Ok(self.plane.link("e0")?.index)
    }

    /// All routes of the twins' namespace.
    fn routes(&self) -> Result<String> {
        Ok(self.plane.ip("route")? + &self.plane.ip("-6 route show dev e0")?)
    }

    /// A host reaches a program behind the twin: what it sends comes by punting and leaves by the
    /// twin.
    fn reaches(&self) -> Result<()> {
        ping(&self.plane, std::net::Ipv4Addr::new(10, 1, 0, 2), &PingOptions::default())?
            .all_answered()
    }
}

lab_test! {
    fn a_killed_router_leaves_its_twins_to_the_next() {
        let mut edge = Edge::start()?;
        ensure!(edge.keeper.names().len() == 1, "{:?}", edge.keeper.names());
        // A daemon's route with a next-hop object goes with the carrier, and does not come back.
        edge.plane.ip("nexthop add id 7 via 10.1.0.2 dev e0")?;
        edge.plane.ip("route add 203.0.113.0/24 nhid 7")?;
        edge.reaches()?;
        let (index, routes, before) = (edge.index()?, edge.routes()?, edge.twin()?);
        edge.router.kill_and_start(&edge.config.clone())?;
        edge.reaches()?;
        assert_eq!((edge.index()?, edge.routes()?), (index, routes));
        assert_eq!(edge.twin()?, before);
        // Values in force were not set again.
        let shown = edge.router.json("show lcp")?;
        assert_eq!(shown["namespaces"][0]["orders"], 0, "{shown}");
        // The pair's end is the twin's, and what is kept goes with it.
        edge.router.cli("lcp delete host-e0")?;
        wait_until_seen(WAIT_LIMIT, "the twin to go", || {
            ensure!(edge.twin().is_err() && edge.keeper.names().is_empty(), "it is there");
            Ok(())
        })?;
        drop(edge.host);
        edge.router.stop().map(drop)
    }

    /// Addresses that were written while the router was away are made, and nothing else.
    fn a_changed_document_changes_kept_twins() {
        let mut edge = Edge::start()?;
        let index = edge.index()?;
        let file = edge.config.document.clone().context("a document")?;
        let text = std::fs::read_to_string(Path::new(&file))?;
        ensure!(text.contains("10.1.0.1/24"), "{text}");
        std::fs::write(&file, text.replace("10.1.0.1/24", "10.1.0.7/24"))?;
        edge.router.kill_and_start(&edge.config.clone())?;
        edge.await_twin("10.1.0.7/24")?;
        assert_eq!(edge.index()?, index);
        edge.router.stop().map(drop)
    }
}
