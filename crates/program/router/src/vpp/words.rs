//! VPP's diagnostic words that have nothing to show here.
//!
//! Clients and test harnesses type them for their logs and give up on an error: each answers with
//! one line that says why there is nothing, and succeeds. They are not listed in help or
//! completion. Nothing that sets, creates or deletes is among them.

use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// A word that has nothing to show.
pub struct Word {
    /// Its path.
    pub path: &'static str,
    /// Reason why nothing is shown: the line that it prints.
    pub why: &'static str,
}

impl Command<Control> for Word {
    fn path(&self) -> &'static str {
        self.path
    }

    fn listed(&self) -> bool {
        false
    }

    fn usage(&self) -> &'static str {
        "[...]"
    }

    fn help(&self) -> &'static str {
        self.why
    }

    fn run(
        &self,
        _: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        // Arguments do not matter.
        let _ = args.rest();
        out.json(serde_json::json!({ "nothing": self.why }));
        out.line(self.why);
        Ok(Outcome::Done)
    }
}

const IP6: &str = "nothing: this release does not have that for IPv6";
const MROUTE: &str = "nothing: this release has no multicast routes";
const TUNNEL: &str = "nothing: this release has no tunnels";
const DRIVER: &str = "nothing: the drivers are host-interface, TAP, loopback and packet generator";
const ACL: &str = "nothing: `show flow' and `flow dump' have the rules of interfaces";
const HOST: &str = "nothing: there is no host stack; TCP and UDP sessions end elsewhere";
const FIB: &str = "nothing by this word: `show ip fib' has routes and paths, `show adj' and \
                   `show load-balance' what they lead to";
const REASSEMBLY: &str = "nothing: datagrams are not reassembled; NAT44 and flow rules let later \
                          fragments follow the first";
const EVENTS: &str = "nothing: there is no event log; `show logging' has the log";
const EI: &str = "nothing: NAT44 is endpoint-dependent; leave out `ei'";
const PUNT: &str = "nothing: there are no punt clients; `show punt reasons' and `show punt stats' \
                    have the figures";
const L2: &str = "nothing by this word: `show mode' has cross connects, bridges and tag rewriting";
const RINGS: &str = "nothing: clients use a socket, not rings in shared memory; `show api clients' \
                     lists them";
const TESTS: &str = "nothing: tests of the code are not part of the program";
const CLASSIFY: &str = "nothing: classifier tables only choose packets; `show classify filter' has \
                        those of traces and captures";
const BOND: &str = "nothing: this release has no bonds and none of their protocols";
const POLICER: &str = "nothing: this release has no policers and no QoS marks";
const BUFFERS: &str = "nothing: what a packet carries is not recorded; `trace add' shows its way";
const SESSIONS: &str = "nothing by this word: `show threads' and `show unix files' have the \
                        sessions' threads and sockets";

macro_rules! words {
    ($($path:literal => $why:expr,)*) => {
        /// All words that have nothing to show.
        pub static WORDS: &[Word] = &[$(Word { path: $path, why: $why },)*];

        /// The same as commands.
        pub(super) static COMMANDS: &[&dyn Command<Control>] =
            &[$(&Word { path: $path, why: $why },)*];
    };
}

words! {
    "buffer metadata tracking" => BUFFERS,
    "clear api histogram" => RINGS,
    "clear buffer traces" => BUFFERS,
    "clear fib walk" => FIB,
    "debug lacp" => BOND,
    "event-logger clear" => EVENTS,
    "event-logger restart" => EVENTS,
    "event-logger save" => EVENTS,
    "event-logger stop" => EVENTS,
    "event-logger trace" => EVENTS,
    "interface collect detailed-stats" =>
        "nothing to do: unicast, multicast and broadcast are counted on all interfaces",
    "show acl-plugin acl" => ACL,
    "show acl-plugin interface" => ACL,
    "show acl-plugin sessions" => ACL,
    "show acl-plugin tables" => ACL,
    "show api dump" => "nothing by this word: `show api message-table' lists the messages",
    "show api histogram" => RINGS,
    "show api plugin" => "nothing by this word: `show api message-table' lists the messages",
    "show api ring-stats" => RINGS,
    "show app" => HOST,
    "show bond" => BOND,
    "show buffer metadata" => BUFFERS,
    "show buffer traces" => BUFFERS,
    "show classify flow" => CLASSIFY,
    "show classify policer" => CLASSIFY,
    "show cli-sessions" => SESSIONS,
    "show dpdk buffer" => DRIVER,
    "show dpdk version" => DRIVER,
    "show event-logger" => EVENTS,
    "show fib entry" => FIB,
    "show fib entry-delegate" => FIB,
    "show fib path-lists" => FIB,
    "show fib paths" => FIB,
    "show fib source" => FIB,
    "show fib uRPF" => FIB,
    "show fib walk" => FIB,
    "show frame-queue histogram" =>
        "nothing: the depth of hand-off rings is not recorded; `show handoff' has their figures",
    "show geneve tunnel" => TUNNEL,
    "show gre tunnel" => TUNNEL,
    "show hash" => "nothing: hash functions cannot be chosen",
    "show inacl" => CLASSIFY,
    "show init-function" => "nothing by this word: `show plugins' lists what was started",
    "show interface span" =>
        "nothing: ports are not mirrored; flow rules with `output:' send copies",
    "show interface transceiver" => DRIVER,
    "show interface tx-hash" => "nothing: a worker sends by the queue of its own number",
    "show ip container" => "nothing: this release has no container proxies",
    "show ip features" => "nothing by this word: `show features' and `show interface features'",
    "show ip local" =>
        "nothing by this word: `show udp ports' has what listens, `show errors' what came",
    "show ip mfib" => MROUTE,
    "show ip session redirect" => CLASSIFY,
    "show ip source-and-port-range-check" => "nothing: flow rules check sources and ports",
    "show ip4-full-reassembly" => REASSEMBLY,
    "show ip4-sv-reassembly" => REASSEMBLY,
    "show ip6 hbh" => IP6,
    "show ip6 local" => IP6,
    "show ip6 mfib" => IP6,
    "show ip6-full-reassembly" => IP6,
    "show ip6-sv-reassembly" => IP6,
    "show ipip tunnel" => TUNNEL,
    "show ipsec all" => TUNNEL,
    "show ipsec sa" => TUNNEL,
    "show ipsec spd" => TUNNEL,
    "show l2 rewrite entries" => L2,
    "show l2 rewrite interfaces" => L2,
    "show l2patch" => L2,
    "show l2tpv3" => TUNNEL,
    "show l2xcrw" => L2,
    "show lacp" => BOND,
    "show lldp" => BOND,
    "show load-balance-map" => FIB,
    "show logging configuration" =>
        "one level for all classes: `logging { default-log-level }' at start, or THALWEG_LOG",
    "show lookup-dpo" => FIB,
    "show macro" => "nothing: this command line has no macros",
    "show memif" => DRIVER,
    "show mfib entry" => MROUTE,
    "show mfib interface" => MROUTE,
    "show mfib itf flags" => MROUTE,
    "show mfib route flags" => MROUTE,
    "show nat44 ei addresses" => EI,
    "show nat44 ei ha" => EI,
    "show nat44 ei hash tables" => EI,
    "show nat44 ei interfaces" => EI,
    "show nat44 ei sessions" => EI,
    "show nat44 ei static mappings" => EI,
    "show outacl" => CLASSIFY,
    "show pci" => DRIVER,
    "show perfmon active-bundle" => "nothing: `show runtime' has the clocks of each node",
    "show perfmon statistics" => "nothing: `show runtime' has the clocks of each node",
    "show physmem" => "nothing by this word: `show buffers' and `show memory' have the figures",
    "show policer" => POLICER,
    "show policer pools" => POLICER,
    "show punt client" => PUNT,
    "show punt db" => PUNT,
    "show punt socket registrations" => PUNT,
    "show qos mark" => POLICER,
    "show qos record" => POLICER,
    "show replicate" => MROUTE,
    "show session" => HOST,
    "show session stats" => HOST,
    "show statistics hash" => "nothing: clients look names up in the segment's directory",
    "show statistics segment" =>
        "nothing by this word: the segment has the figures of `show interface', `show errors', \
         `show runtime' and `show adj'",
    "show tcp config" => HOST,
    "show tcp stats" => HOST,
    "show teib" => TUNNEL,
    "show terminal" => SESSIONS,
    "show udp encap" => TUNNEL,
    "show udp punt" => PUNT,
    "show unix errors" => "nothing by this word: what the kernel refuses is in `show logging'",
    "show vhost-user" => DRIVER,
    "show virtio pci" => DRIVER,
    "show vlib frame-allocation" =>
        "nothing: each worker keeps its frames; `show buffers' has the packets in them",
    "show vmxnet3" => DRIVER,
    "show vxlan tunnel" => TUNNEL,
    "test fib-walk-process" => TESTS,
    "test frame-queue nelts" =>
        "nothing changed: hand-off rings have a size by the number of workers; `show handoff' has it",
    "test frame-queue threshold" =>
        "nothing changed: hand-off rings have a size by the number of workers; `show handoff' has it",
    "test ip checksum" => TESTS,
    "test l2fib" => TESTS,
    "test l2patch" => L2,
    "trace frame-queue" =>
        "nothing to do: `trace add' follows packets from worker to worker",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_accepted_and_ignored() {
        let sets = ["set", "create", "delete", "del", "add", "enable", "disable", "ip", "nat44"];
        for word in WORDS {
            let first = word.path.split_whitespace().next().unwrap_or_default();
            assert!(!sets.contains(&first), "{}", word.path);
            assert!(!word.why.contains('\n') && word.why.len() < 160, "{}", word.path);
        }
        let mut paths: Vec<_> = WORDS.iter().map(|word| word.path).collect();
        paths.sort_unstable();
        assert!(WORDS.iter().map(|word| word.path).eq(paths), "in order");
    }
}
