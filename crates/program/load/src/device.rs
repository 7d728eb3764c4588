//! The tester's graph: ports with hosts behind them. The device under test is this graph itself, or
//! whatever its interfaces lead to.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use thalweg_buffer::PoolConfig;
use thalweg_device::{Interfaces, MacAddr, SwIfIndex, interface};
use thalweg_device_load::{Answers, Change, DirectionReport, Dropped, Progress, Report, Times};
use thalweg_engine::Feature;
use thalweg_graph::{Control, EngineConfig, Severity};
use thalweg_load::talk::Opening;

use super::blame::Seen;
use super::far::{self, Far};
use super::set::Set;
use super::spot::{Drops, Hop, Side, Spot, Way};
use super::work::{Group, Shares, Work};
use thalweg_program_router::features::FEATURES;

/// The names of a pair's ports; clients are behind the first, servers behind the second.
fn names(pair: usize) -> [String; 2] {
    [format!("load{}", 2 * pair), format!("load{}", 2 * pair + 1)]
}

/// Pairs of the tester's interfaces, and the device that they lead to.
type Outside = (Vec<[SwIfIndex; 2]>, Box<dyn Far>);

/// A device with clients and servers.
pub(super) struct Device {
    control: Control,
    /// Pairs of ports.
    pairs: Vec<[SwIfIndex; 2]>,
    /// The tester's interfaces to a device outside, and that device.
    outside: Option<Outside>,
    /// Groups of connections: number of the pair, number in the pair, group.
    groups: Vec<(usize, usize, Group)>,
    shares: Shares,
    /// The pairs of ports that have streams, with their numbers.
    streamed: Vec<(usize, [SwIfIndex; 2])>,
    seed: u64,
}

/// Time in which the rate of connections grows, or their number, if the profile does not say.
const RAMP: Duration = Duration::from_secs(1);

/// Counts of both sides, all groups together.
#[derive(Clone, Debug, Default)]
pub(super) struct Books {
    pub(super) clients: Report,
    pub(super) servers: Report,
    /// The same of each group.
    pub(super) groups: Vec<OfGroup>,
}

/// Counts of a group of connections.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfGroup {
    /// True if its number is held, so that none is judged by when it began.
    pub(super) held: bool,
    pub(super) clients: Report,
    pub(super) servers: Report,
}

impl Books {
    /// Books of one group.
    pub(super) fn of(&self, group: usize) -> Books {
        let mut books = Books::default();
        self.groups.get(group).into_iter().for_each(|of| books.add(*of));
        books
    }

    fn add(&mut self, of: OfGroup) {
        let OfGroup { clients, servers, .. } = of;
        self.clients.add(&clients);
        self.servers.add(&servers);
        self.groups.push(of);
    }
}

/// Hosts behind the ports, the number that decides chance, and the number of workers that share
/// the hosts out.
#[derive(Clone, Copy)]
pub(super) struct Hosts<'a> {
    pub(super) work: &'a Work,
    pub(super) seed: u64,
    pub(super) cores: usize,
}

impl Hosts<'_> {
    /// Number of pairs of ports.
    fn pairs(&self) -> usize {
        self.work.pairs.len()
    }
}

/// Buffers of the device for each of a few workers: more than one processor has under way.
const BUFFERS: usize = 64 * 1024;
const FEW: usize = 4;
/// The graph's reason for what a full queue between workers drops.
const CONGESTED: &str = "congestion drop";

impl Device {
    /// Starts this graph as the device, and configures it.
    pub(super) fn inside(set: Set, commands: &str, hosts: &Hosts<'_>) -> Result<Device> {
        ensure!(
            !matches!(set, Set::Route | Set::Labels) || hosts.pairs() == 1,
            "--device route and labels have routes for one pair of ports, and the profile has {}; --device \
             nothing leaves them to --commands",
            hosts.pairs()
        );
        let mut device = Device::start(hosts.pairs(), hosts.cores)?;
        for pair in 0..hosts.pairs() {
            let [a, b] = names(pair);
            device.run(&set.commands([&a, &b], pair as u32 + 1))?;
        }
        // Output of the user's commands is for the user.
        crate::put!("{}", device.run(commands).context("--commands")?);
        device.give(hosts)?;
        Ok(device)
    }

    /// Starts this graph as the tester of a device that these pairs of interfaces lead to.
    pub(super) fn outside(
        interfaces: &[[&str; 2]],
        far: Box<dyn Far>,
        hosts: &Hosts<'_>,
    ) -> Result<Device> {
        ensure!(
            hosts.pairs() == interfaces.len(),
            "the profile has {} pairs of ports, and this device {}: name as many with --ports; \
             without it and --lab, there are as many as the profile takes",
            hosts.pairs(),
            interfaces.len()
        );
        let mut device = Device::start(interfaces.len(), hosts.cores)?;
        // Workers take from rings at times of their own: of a stream that comes by several, packets
        // would seem reordered that were not.
        let rings = if hosts.work.has_streams() { 1 } else { hosts.cores };
        let mut outside = Vec::new();
        for (pair, interfaces) in interfaces.iter().enumerate() {
            for (port, interface) in names(pair).into_iter().zip(interfaces) {
                device.run(&format!(
                    "create host-interface name {interface} num-rx-queues {rings}
                     set interface state host-{interface} up
                     set interface l2 xconnect {port} host-{interface}
                     set interface l2 xconnect host-{interface} {port}"
                ))?;
            }
            let [a, b] = interfaces.map(|name| format!("host-{name}"));
            let ours = |name: &str| interface::find(&device.control, name);
            outside.push([ours(&a)?, ours(&b)?]);
        }
        device.outside = Some((outside, far));
        device.give(hosts)?;
        Ok(device)
    }

    /// Starts the graph, with pairs of ports and workers.
    fn start(pairs: usize, cores: usize) -> Result<Device> {
        let config = EngineConfig {
            workers: vec![None; cores],
            pool: PoolConfig { buffers: BUFFERS * cores.min(FEW), ..PoolConfig::default() },
            ..EngineConfig::default()
        };
        let mut control = Control::new(config)?;
        let features: Vec<&Feature> =
            FEATURES.iter().copied().chain([&thalweg_device_load::FEATURE]).collect();
        thalweg_engine::start(&mut control, &features)?;
        let mut device = Device {
            control,
            pairs: Vec::new(),
            outside: None,
            groups: Vec::new(),
            shares: Shares::of(&Work::default()),
            streamed: Vec::new(),
            seed: 0,
        };
        for pair in 0..pairs {
            let [a, b] = names(pair);
            let mut create = |name: &str, at: usize| {
                let mac = MacAddr([2, 0, 0, 0, 9, (2 * pair + at) as u8]);
                thalweg_device_load::create(&mut device.control, name, mac)
            };
            let ports = [create(&a, 0)?, create(&b, 1)?];
            device.pairs.push(ports);
        }
        Ok(device)
    }

    /// Puts new hosts behind the ports.
    fn give(&mut self, hosts: &Hosts<'_>) -> Result<()> {
        for (ports, pair) in self.pairs.iter().zip(&hosts.work.pairs) {
            let plans: Vec<_> = pair.groups.iter().map(|group| &group.plan).collect();
            let streams = pair.streams.as_ref();
            thalweg_device_load::set_hosts(&mut self.control, *ports, &plans, streams, hosts.seed)?;
        }
        let groups = hosts.work.groups();
        self.groups = groups.map(|(pair, number, group)| (pair, number, group.clone())).collect();
        self.shares = Shares::of(hosts.work);
        let streamed = self.pairs.iter().copied().enumerate().zip(&hosts.work.pairs);
        let streamed = streamed.filter(|(_, pair)| pair.streams.is_some());
        self.streamed = streamed.map(|(ports, _)| ports).collect();
        self.seed = hosts.seed;
        Ok(())
    }

    /// True if there are streams behind its ports.
    pub(super) fn has_streams(&self) -> bool {
        !self.streamed.is_empty()
    }

    /// Groups of connections, in the order of their books.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().map(|(.., group)| group)
    }

    /// Begins a trial with this number: which packets of streams are dropped from now on is noted,
    /// by the graph itself and by a device outside that can.
    pub(super) fn begin(&mut self, trial: u8) -> Result<()> {
        self.change(Change::Begin(trial));
        thalweg_device_load::witness(&mut self.control, trial, self.seed)?;
        match &mut self.outside {
            Some((_, far)) => far.witness(trial, self.seed),
            None => Ok(()),
        }
    }

    /// Begins the window of a trial: packets due and connections opened from now on are judged.
    /// Connections held by number are opened whenever one has ended: how they end is counted.
    pub(super) fn begin_window(&mut self) -> Result<()> {
        if !self.groups.is_empty() {
            thalweg_device_load::witness_talks(&mut self.control);
            if let Some((_, far)) = &mut self.outside {
                far.window()?;
            }
        }
        self.change(Change::Judging(true));
        self.set_judging(true);
        Ok(())
    }

    pub(super) fn end_window(&mut self) {
        self.change(Change::Judging(false));
        self.set_judging(false);
    }

    /// Packets of the window that were dropped, as far as they were noted.
    pub(super) fn dropped(&mut self) -> Result<Vec<Seen>> {
        let answers = thalweg_device_load::ask_dropped(&mut self.control);
        let own = self.answer(&answers)?;
        let mut all: Vec<Seen> = own.into_iter().map(|dropped| self.seen(dropped)).collect();
        if let Some((_, far)) = &mut self.outside {
            all.extend(far.dropped()?);
        }
        Ok(all)
    }

    fn seen(&self, dropped: Dropped) -> Seen {
        let (node, reason) = thalweg_device_load::place(&self.control, &dropped);
        // Its sub-interface may have received it.
        let parent = interface::view(&self.control, dropped.rx).ok().and_then(|view| view.parent);
        let port = parent.unwrap_or(dropped.rx);
        let pair = self.pairs.iter().position(|ports| ports.contains(&port));
        Seen {
            what: dropped.what,
            at: dropped.at,
            pair: pair.unwrap_or_default(),
            spot: self.node(&node, &reason),
            interface: self.interface_name(dropped.rx),
        }
    }

    /// A node of this graph, which is the device under test unless that is outside.
    fn node(&self, name: &str, reason: &str) -> Spot {
        let side = if self.outside.is_some() { Side::Tester } else { Side::Device };
        let spot = Spot::new(side, name, reason).watched();
        let pairs = self.outside.iter().flat_map(|(pairs, _)| pairs).enumerate();
        let ports = pairs.flat_map(|(pair, ports)| {
            ports.iter().enumerate().map(move |(at, port)| (pair, at, *port))
        });
        let Some(port) = name.strip_suffix("-tx") else { return spot };
        match ports.into_iter().find(|(.., sw_if)| self.interface_name(*sw_if) == port) {
            Some((pair, at, _)) => far::sent_by((pair, Hop::In), spot.going(Way::sent_by(at))),
            None => spot,
        }
    }

    fn interface_name(&self, sw_if: SwIfIndex) -> String {
        interface::view(&self.control, sw_if).map_or_else(|_| String::new(), |view| view.name)
    }

    fn node_name(&self, index: usize) -> String {
        let node = self.control.nodes().get(index);
        node.map_or_else(|| "unknown node".to_owned(), |node| node.name.to_string())
    }

    /// Changes all streams.
    pub(super) fn change(&mut self, change: Change) {
        for (_, ports) in &self.streamed {
            thalweg_device_load::change_streams(&mut self.control, *ports, change);
        }
    }

    /// Reads what became of the streams: of each pair that has some, with its number, from the
    /// first port to the second and back.
    pub(super) fn streams(&mut self) -> Result<Vec<(usize, [DirectionReport; 2])>> {
        let ask = |(pair, ports): &(usize, [SwIfIndex; 2])| {
            (*pair, thalweg_device_load::ask_streams(&mut self.control, *ports))
        };
        let answers: Vec<_> = self.streamed.iter().map(ask).collect();
        answers.iter().map(|(pair, answer)| Ok((*pair, self.answer(answer)?))).collect()
    }

    /// Reads how far the streams are, all pairs together.
    pub(super) fn progress(&mut self) -> Result<[Progress; 2]> {
        let ask = |(_, ports): &(usize, [SwIfIndex; 2])| {
            thalweg_device_load::ask_progress(&mut self.control, *ports)
        };
        let answers: Vec<_> = self.streamed.iter().map(ask).collect();
        let mut sums = [Progress::default(); 2];
        for answer in &answers {
            let pair = self.answer(answer)?;
            sums.iter_mut().zip(pair).for_each(|(sum, of)| sum.add(of));
        }
        Ok(sums)
    }

    /// Reads the latency of streams so far: the worst of the first ones of each pair.
    pub(super) fn times(&mut self) -> Result<Times> {
        let ask = |(_, ports): &(usize, [SwIfIndex; 2])| {
            thalweg_device_load::ask_times(&mut self.control, *ports)
        };
        let answers: Vec<_> = self.streamed.iter().map(ask).collect();
        answers.iter().try_fold(Times::default(), |all, answer| Ok(all.max(self.answer(answer)?)))
    }

    fn answer<T>(&mut self, answers: &Answers<T>) -> Result<T> {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            self.control.run_once(Some(Duration::from_millis(1)));
            match answers.try_recv() {
                Ok(answer) => return Ok(answer),
                Err(_) if Instant::now() < end => {}
                Err(error) => return Err(error).context("the hosts do not answer for 10 s"),
            }
        }
    }

    /// Samples what all ports receive with sFlow, one packet of a number; 0: none. `was`: the
    /// number so far.
    pub(super) fn sample(&mut self, was: u32, rate: u32) -> Result<()> {
        let mut lines = String::new();
        if (was == 0) != (rate == 0) {
            let off = if rate == 0 { " disable" } else { "" };
            let names = (0..self.pairs.len()).flat_map(names);
            lines.extend(names.map(|name| format!("sflow enable {name}{off}\n")));
        }
        if rate > 0 {
            lines += &format!("sflow sampling-rate {rate}\n");
        }
        self.run(&lines).map(drop)
    }

    /// Packets that sFlow has sampled so far, and samples that were lost.
    pub(super) fn samples(&self) -> (u64, u64) {
        let of = |text: &str| {
            let all = self.control.errors().iter().enumerate();
            let ours = all.filter(|(_, (node, decl))| {
                decl.text == text && self.node_name(usize::from(node.0)) == "sflow"
            });
            let workers = 0..self.control.workers();
            let sum = |index| workers.clone().map(|w| self.control.error_count(w, index)).sum();
            ours.map(|(index, _)| -> u64 { sum(index as u32) }).sum()
        };
        (of("sflow packets sampled"), of("sflow packets dropped"))
    }

    /// Runs commands, one per line, and returns what they print.
    fn run(&mut self, lines: &str) -> Result<String> {
        let mut said = String::new();
        let tree = thalweg_engine::command_tree(&self.control)
            .map_err(|error| anyhow::anyhow!("{error:?}"))?;
        for (at, line) in lines.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (text, end) = tree.run_line(&mut self.control, line);
            if let Err(error) = end {
                bail!("line {}: {line}: {error}", at + 1);
            }
            said += &text;
        }
        self.control.sync();
        Ok(said)
    }

    /// Sets how many connections to open each second, all groups together. Connections held by
    /// number come at a pace of their own, unless there are no others.
    pub(super) fn set_rate(&mut self, rate: f64) {
        self.open(Some(rate), None);
    }

    /// The same, at a time since the start: each group is as far as its ramp says. Without a rate,
    /// all groups are held.
    pub(super) fn open(&mut self, rate: Option<f64>, since: Option<Duration>) {
        let only_held = self.groups().all(|group| group.hold.is_some());
        for (pair, number, group) in &self.groups {
            let share = match (since, group.ramp) {
                (None, _) => 1.0,
                (Some(since), Some(ramp)) => ramp.share(since.as_micros() as u64),
                (Some(since), None) => (since.as_secs_f64() / RAMP.as_secs_f64()).min(1.0),
            };
            let full = match (group.hold, rate) {
                (_, Some(rate)) if rate <= 0.0 => 0.0,
                (None, rate) => rate.unwrap_or_default() * self.shares.of_rated(group.share),
                (Some(_), Some(rate)) if only_held => rate * self.shares.of_held(group.share),
                (Some(_), _) => group.fill(),
            };
            let opening = Opening {
                // Held connections grow in number.
                rate: if group.hold.is_some() { full } else { full * share },
                hold: group.hold.map(|hold| (f64::from(hold) * share).ceil() as u32),
                total: group.total,
            };
            if let Some([clients, _]) = self.pairs.get(*pair) {
                thalweg_device_load::set_opening(&mut self.control, *clients, *number, opening);
            }
        }
    }

    /// Time until all groups have their full rate or number.
    pub(super) fn ramp(&self) -> Duration {
        let of = |group: &Group| group.ramp.map_or(RAMP, |ramp| Duration::from_micros(ramp.time));
        self.groups().map(of).max().unwrap_or_default()
    }

    fn set_judging(&mut self, judging: bool) {
        for (pair, number, group) in &self.groups {
            if let (Some([clients, _]), None) = (self.pairs.get(*pair), group.hold) {
                thalweg_device_load::set_judging(&mut self.control, *clients, *number, judging);
            }
        }
    }

    /// Forgets all connections, without a packet, and leaves the device alone.
    pub(super) fn hush(&mut self) {
        for port in self.pairs.iter().flatten().copied() {
            thalweg_device_load::abandon(&mut self.control, port);
        }
    }

    /// Forgets all connections, without a packet, and has the device forget them.
    pub(super) fn abandon(&mut self) -> Result<()> {
        self.hush();
        match &mut self.outside {
            Some((_, far)) => far.forget(),
            None => self.run("clear conntrack").map(drop),
        }
    }

    /// Lets it run; false if `stop` ended that.
    pub(super) fn wait(&mut self, time: Duration, stop: &dyn Fn() -> bool) -> bool {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if stop() {
                return false;
            }
            self.control.run_once(Some(left.min(Duration::from_millis(20))));
        }
        !stop()
    }

    /// Reads all counters.
    pub(super) fn books(&mut self) -> Result<Books> {
        if self.groups.is_empty() {
            return Ok(Books::default());
        }
        let ports: Vec<SwIfIndex> = self.pairs.iter().flatten().copied().collect();
        let answers = thalweg_device_load::ask(&mut self.control, &ports);
        let reports = self.answer(&answers)?;
        let mut books = Books::default();
        for (pair, number, group) in &self.groups {
            let [clients, servers] = [0, 1].map(|side| {
                let of_port = reports.get(2 * pair + side);
                of_port.and_then(|all| all.get(*number)).copied().unwrap_or_default()
            });
            books.add(OfGroup { held: group.hold.is_some(), clients, servers });
        }
        Ok(books)
    }

    /// Reads what has been dropped so far, and where.
    pub(super) fn drops(&mut self) -> Result<Drops> {
        let mut drops = Drops::default();
        self.missed();
        // The tester's own workers had no room for these: the graph counts them with its others.
        let views = self.control.hand_off_views();
        let own = views.iter().filter(|view| view.queue == thalweg_device_load::HAND_OFF);
        let own: u64 = own.map(|view| view.drops).sum();
        drops.add(Spot::new(Side::Tester, "load", "another worker's queue full"), own);
        for (index, (node, decl)) in self.control.errors().iter().enumerate() {
            if decl.severity != Severity::Error {
                continue;
            }
            let workers = 0..self.control.workers();
            let of = |worker| self.control.error_count(worker, index as u32);
            let mut packets: u64 = workers.map(of).sum();
            let name = self.node_name(usize::from(node.0));
            if name == "error-drop" && decl.text == CONGESTED {
                packets = packets.saturating_sub(own);
            }
            drops.add(self.node(&name, decl.text), packets);
        }
        let pairs = self.outside.iter().flat_map(|(pairs, _)| pairs);
        for (at, sw_if) in pairs.flat_map(|pair| pair.iter().copied().enumerate()) {
            let missed = self.control.interface_totals_raw(sw_if).rx_miss;
            let spot = Spot::new(Side::Tester, &self.interface_name(sw_if), "receive ring full");
            drops.add(spot.going(Way::received_by(at)), missed);
        }
        if let Some((_, far)) = &mut self.outside {
            far.drops(&mut drops)?;
        }
        Ok(drops)
    }

    /// Makes the interfaces count what the kernel had no room for: they ask once a second
    /// otherwise.
    fn missed(&mut self) {
        let Some((interfaces, _)) = &self.outside else { return };
        for sw_if in interfaces.iter().flatten().copied() {
            let device = self.control.state::<Interfaces>().borrow().device(sw_if);
            if let Some(device) = device {
                device.poll_missed(&mut self.control, sw_if);
            }
        }
        self.control.sync();
    }

    /// The machine's interfaces that the graph has, by name.
    pub(super) fn host_interfaces(&self) -> Vec<String> {
        let all = self.control.state::<Interfaces>();
        let names =
            |view: &interface::InterfaceView| Some(view.name.strip_prefix("host-")?.to_owned());
        all.borrow().iter().filter_map(names).collect()
    }

    /// The device's own name.
    pub(super) fn name(&self) -> String {
        match &self.outside {
            Some((_, far)) => far.name(),
            None => format!("Thalweg {}, in this process", env!("CARGO_PKG_VERSION")),
        }
    }

    /// Ends the device.
    ///
    /// # Errors
    /// If a device outside does not end well.
    pub(super) fn close(mut self) -> Result<()> {
        self.control.shut_down();
        let outside = self.outside.take();
        // The rings hold interfaces that go with the device.
        drop(self);
        outside.map_or(Ok(()), |(_, far)| far.stop())
    }
}
