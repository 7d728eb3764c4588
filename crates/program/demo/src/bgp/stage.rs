//! Namespaces, links, daemons and the router of the demonstration.

use super::configs::{self, CUSTOMER, ONE, Software, TWO, WORLD};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use thalweg_cli::client::Client;
use thalweg_netns::{Keeper, LinkOptions, Netns, Output, Running, Signal, veth};
use thalweg_peers::{Bird, Frr};

/// Time between two looks at the router's table.
const PERIOD: Duration = Duration::from_millis(50);
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Namespaces, from the customer to the world.
pub struct Places {
    pub customer: Netns,
    pub router: Netns,
    /// The namespace of the twins.
    pub plane: Netns,
    pub one: Netns,
    pub two: Netns,
    pub world: Netns,
}

impl Places {
    pub fn new() -> Result<Places> {
        let of = |name: &str| Netns::new(name);
        let places = Places {
            customer: of("customer")?,
            router: of("router")?,
            plane: of("plane")?,
            one: of("one")?,
            two: of("two")?,
            world: of("world")?,
        };
        let plain = LinkOptions::default;
        let with = |address: &str| LinkOptions::default().address(address);
        let Places { customer, router, one, two, world, .. } = &places;
        veth((router, "cust", &plain()), (customer, "eth0", &with("10.3.0.2/24")))?;
        customer.ip("route add default via 10.3.0.1")?;
        for (net, name, provider) in [(1, "one", one), (2, "two", two)] {
            let there = with(&format!("10.{net}.0.2/24"));
            veth((router, name, &plain()), (provider, "edge", &there))?;
            let (here, there) = (format!("10.{net}.9.1/24"), format!("10.{net}.9.2/24"));
            veth((provider, "world", &with(&here)), (world, name, &with(&there)))?;
            thalweg_netns::enable_ipv4_forwarding(provider)?;
            provider.ip(&format!("route add {WORLD} via 10.{net}.9.2"))?;
        }
        // Each address of the world is here. The customer's come by either provider.
        world.ip(&format!("route add local {WORLD} dev lo"))?;
        for which in ["all", "default", "one", "two"] {
            world.set_sysctl(&format!("net/ipv4/conf/{which}/rp_filter"), "0")?;
        }
        world.ip(&format!("route add {CUSTOMER} via 10.2.9.1"))?;
        Ok(places)
    }

    /// Packets that the world has received from each provider.
    pub fn received(&self) -> Result<[u64; 2]> {
        Ok([self.world.link("one")?.rx_packets, self.world.link("two")?.rx_packets])
    }
}

/// The daemon at the twins.
pub enum Daemon {
    Bird(Bird),
    Frr(Frr),
}

/// A session with a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    pub established: bool,
    /// Changes with each new session.
    pub mark: String,
}

impl Daemon {
    pub fn start(software: Software, plane: &Netns) -> Result<Daemon> {
        match software {
            Software::Bird => Bird::start(plane, &configs::ours_bird()).map(Daemon::Bird),
            Software::Frr => Frr::start(plane, &[("bgpd", &configs::ours_frr())]).map(Daemon::Frr),
        }
    }

    /// Kills it, as a fault would, and starts it again as graceful restart wants.
    pub fn kill_and_start(&mut self) -> Result<()> {
        match self {
            Daemon::Bird(bird) => bird.restart(Signal::KILL, &["-R"]),
            // Both, as a service manager does. To `zebra` that goes on, a `bgpd` that has heard of
            // the end of one provider's routes has them all.
            Daemon::Frr(frr) => {
                frr.end("bgpd", Signal::KILL)?;
                frr.end("zebra", Signal::KILL)?;
                frr.start_again("zebra", None, &["-K", "120"])?;
                frr.start_again("bgpd", None, &[])
            }
        }
    }

    /// Returns the sessions with both providers.
    pub fn sessions(&self) -> Result<[Session; 2]> {
        let both = match self {
            Daemon::Bird(bird) => {
                let all = bird.birdc("show protocols")?;
                ["one", "two"].map(|name| bird_session(&all, name))
            }
            Daemon::Frr(frr) => {
                let text = frr.vtysh("show bgp ipv4 unicast summary json")?;
                let all: Value = serde_json::from_str(&text).context("an answer of bgpd")?;
                let daemon = frr.pid("bgpd").unwrap_or(0);
                ["10.1.0.2", "10.2.0.2"].map(|peer| frr_session(&all["peers"][peer], daemon))
            }
        };
        Ok(both)
    }

    pub fn said(&self) -> String {
        match self {
            Daemon::Bird(bird) => bird.said(),
            Daemon::Frr(frr) => frr.said(),
        }
    }
}

fn bird_session(all: &str, name: &str) -> Session {
    let line = all.lines().find(|line| line.split_whitespace().next() == Some(name));
    let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    // Name, protocol, table, state, since, and the state of the session.
    Session {
        established: words.contains(&"Established"),
        mark: words.get(4).copied().unwrap_or_default().to_owned(),
    }
}

/// Reads a session of `bgpd`, which counts them from its start on.
fn frr_session(peer: &Value, daemon: u32) -> Session {
    Session {
        established: peer["state"] == "Established",
        mark: format!("{} of {daemon}", peer["connectionsEstablished"]),
    }
}

/// Daemons of the providers.
pub struct Providers {
    _one: Bird,
    _two: Frr,
}

impl Providers {
    pub fn start(places: &Places, routes: u32) -> Result<Providers> {
        let one = Bird::start(&places.one, &configs::provider_bird(1, ONE, routes))?;
        let config = configs::provider_frr(2, TWO, routes);
        let two = Frr::start(&places.two, &[("bgpd", &config)])?;
        Ok(Providers { _one: one, _two: two })
    }
}

/// The router, and the service manager that starts it again.
pub struct Router {
    running: Option<Running>,
    dir: PathBuf,
    ns: Netns,
    keeper: Keeper,
}

impl Router {
    /// Starts it with files in a directory.
    pub fn start(places: &Places, dir: &Path) -> Result<Router> {
        let plane = places.plane.descriptor_path().display().to_string();
        let startup =
            format!("unix {{ nodaemon runtime-dir {} cli-listen cli.sock }}\n", dir.display());
        fs::write(dir.join("startup.conf"), startup).context("write startup.conf")?;
        fs::write(dir.join("thalweg.yaml"), configs::document(&plane)).context("write it")?;
        let (ns, keeper) = (places.router.clone(), Keeper::new()?);
        let mut router = Router { running: None, dir: dir.to_owned(), ns, keeper };
        router.launch()?;
        Ok(router)
    }

    fn launch(&mut self) -> Result<()> {
        let program = std::env::current_exe().context("find this program's file")?;
        let (script, _lent) = self.keeper.hand_over()?;
        let command = self
            .ns
            .command("bash")
            .args(["-c", &script])
            .arg(program)
            .args(["run", "-c"])
            .arg(self.dir.join("startup.conf"))
            .arg("--config")
            .arg(self.dir.join("thalweg.yaml"))
            .env("NOTIFY_SOCKET", self.keeper.socket());
        self.running = Some(command.spawn()?);
        Ok(())
    }

    /// Kills it, as a fault would, and starts it again.
    pub fn kill_and_start(&mut self) -> Result<()> {
        let mut running = self.running.take().context("the router does not run")?;
        running.signal(Signal::KILL)?;
        running.wait(STOP_LIMIT)?;
        self.launch()
    }

    /// Its command line.
    pub fn socket(&self) -> PathBuf {
        thalweg_cli::paths::cli_socket(&self.dir)
    }

    /// An error if it has ended.
    pub fn alive(&mut self) -> Result<()> {
        let running = self.running.as_mut().context("the router does not run")?;
        match running.try_status()? {
            None => Ok(()),
            Some(status) => bail!("the router ended with {status}\n{}", running.stderr()),
        }
    }

    /// Asks it to end and waits for it.
    pub fn stop(mut self) -> Result<Output> {
        self.running.take().context("the router does not run")?.stop(STOP_LIMIT)
    }
}

/// Sets the router's routes next to the kernel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Routes of the kernel that the router knows.
    pub known: u64,
    /// Changes that the kernel has announced.
    pub notices: u64,
    /// Changes that wait to be taken.
    pub waiting: u64,
    /// All that there was at its start has been listed.
    pub complete: bool,
    /// Routes of the router's table.
    pub forwarded: u64,
}

impl Table {
    /// Tells if all routes of a provider are the router's, and no change of them waits.
    pub fn has_all(&self, routes: u32) -> bool {
        self.complete && self.waiting == 0 && self.forwarded >= u64::from(routes)
    }

    fn read(client: &mut Client) -> Result<Table> {
        let mut ask = |command: &str| -> Result<Value> {
            let text = client.run(&format!("{command} | json"))?;
            serde_json::from_str(&text).with_context(|| format!("`{command}' gave {text:?}"))
        };
        let lcp = ask("show lcp routes")?;
        let fib = ask("show ip fib table 0 summary")?;
        let of = &lcp["namespaces"][0];
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        Ok(Table {
            known: number(&of["routes"]),
            notices: number(&of["notices"]),
            waiting: number(&of["waiting"]),
            complete: of["complete"] == true,
            forwarded: number(&fib[0]["routes"]),
        })
    }
}

/// A moment at which the router had all routes, late by up to the time between two looks.
#[derive(Clone, Copy)]
pub struct Filled {
    /// When the kernel's last change before that was seen.
    pub noticed: Instant,
    /// When nothing waited any more.
    pub full: Instant,
}

/// The last look at the router.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// None if the router did not answer.
    table: Option<Table>,
    /// When the kernel's last change was seen first.
    noticed: Option<Instant>,
    /// The first such moment, and the last one that changes went before.
    first: Option<Filled>,
    last: Option<Filled>,
}

/// A thread that looks at the router's table, so that the screen never waits for it.
pub struct Looks {
    seen: Arc<Mutex<Seen>>,
    stop: Arc<AtomicBool>,
}

impl Looks {
    pub fn start(socket: PathBuf, routes: u32) -> Result<Looks> {
        let (seen, stop) =
            (Arc::new(Mutex::new(Seen::default())), Arc::new(AtomicBool::new(false)));
        let (into, until) = (seen.clone(), stop.clone());
        let run = move || {
            let (mut notices, mut was_full) = (None, false);
            while !until.load(Ordering::Acquire) {
                // A client that is kept would speak to a router that is gone.
                let read = Client::connect(&socket).map_err(anyhow::Error::from);
                let read = read.and_then(|mut client| Table::read(&mut client)).ok();
                let mut seen = into.lock().unwrap_or_else(PoisonError::into_inner);
                let now = Instant::now();
                let counted = read.map(|table| table.notices);
                let has_changed = counted.is_some() && counted != notices;
                if has_changed {
                    (notices, seen.noticed) = (counted, Some(now));
                }
                let is_full = read.is_some_and(|table| table.has_all(routes));
                if is_full && (has_changed || !was_full) {
                    let noticed = seen.noticed.unwrap_or(now);
                    seen.last = Some(Filled { noticed, full: now });
                    seen.first = seen.first.or(seen.last);
                }
                was_full = is_full;
                seen.table = read;
                drop(seen);
                std::thread::sleep(PERIOD);
            }
        };
        std::thread::Builder::new().name("looks".into()).spawn(run).context("start a thread")?;
        Ok(Looks { seen, stop })
    }

    fn seen(&self) -> Seen {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last look; `None` if the router did not answer.
    pub fn table(&self) -> Option<Table> {
        self.seen().table
    }

    /// The first moment at which the router had all routes.
    pub fn first_full(&self) -> Option<Filled> {
        self.seen().first
    }

    /// The last moment at which it had all routes after a change.
    pub fn last_full(&self) -> Option<Filled> {
        self.seen().last
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        // If the router hangs, so does the thread: leave it.
        self.stop.store(true, Ordering::Release);
    }
}

/// Has the router list the kernel's routes once more.
pub fn resync(socket: &Path) -> Result<()> {
    Client::connect(socket)?.run("lcp resync").map(drop).context("lcp resync")
}

/// Reads the last list of routes: the routes that differed, once one that was asked for is there.
pub fn last_list(socket: &Path) -> Result<Option<u64>> {
    let text = Client::connect(socket)?.run("show lcp routes | json")?;
    let shown: Value = serde_json::from_str(&text).context("show lcp routes")?;
    let last = &shown["namespaces"][0]["last"];
    Ok((last["cause"] == "a user asked").then(|| last["differences"].as_u64()).flatten())
}

/// The number of routes that daemons have put into the kernel.
pub fn kernel_routes(plane: &Netns) -> Result<u64> {
    let text = plane.ip(&format!("-4 route show table main root {WORLD}"))?;
    ensure!(text.len() < 1 << 30, "a long list");
    Ok(text.lines().filter(|line| line.contains(" dev ")).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sessions_are_read() {
        let all = "Name       Proto      Table      State  Since         Info\n\
                   kernel1    Kernel     master4    up     17:01:00.001\n\
                   one        BGP        ---        up     17:01:04.518  Established\n\
                   two        BGP        ---        start  17:01:05.000  Connect\n";
        let one = Session { established: true, mark: "17:01:04.518".into() };
        assert_eq!(bird_session(all, "one"), one);
        assert!(!bird_session(all, "two").established);
        assert_eq!(bird_session("", "one"), Session::default());
        let peer = json!({ "state": "Established", "connectionsEstablished": 2 });
        let two = Session { established: true, mark: "2 of 7".into() };
        assert_eq!(frr_session(&peer, 7), two);
        assert!(!frr_session(&Value::Null, 7).established);
    }
}
