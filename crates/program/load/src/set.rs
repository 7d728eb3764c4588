//! Ways in which a device handles the packets of its two ports.

use thalweg_device::MacAddr;

/// Connection of the two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Set {
    /// Nothing: the commands do it
    Nothing,
    /// A layer 2 cross connect, in the kernel a bridge
    CrossConnect,
    /// IPv4 routes, with static neighbours
    Route,
    /// MPLS routes for the profile mpls: label 16 from the clients' side, 17 from the servers'
    Labels,
    /// Four rules that track connections and let the client's side open them
    Tracker,
}

/// MAC addresses of clients and of servers.
const HOSTS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];

/// A host of each side, the device's address there, and the hosts' network.
pub(super) const NETWORKS: [[&str; 3]; 2] =
    [["192.0.2.2", "192.0.2.1/30", "16.0.0.0/8"], ["192.0.2.6", "192.0.2.5/30", "48.0.0.0/8"]];

impl Set {
    /// MAC addresses of the device's ports. A router has the ones that hosts send to.
    pub(super) fn device_macs(self) -> [MacAddr; 2] {
        match self {
            Set::Route | Set::Labels => [HOSTS[1], HOSTS[0]],
            _ => [MacAddr([2, 0, 0, 0, 9, 0]), MacAddr([2, 0, 0, 0, 9, 1])],
        }
    }

    /// The router's commands for it, with its ports' names and a table of rules.
    pub(super) fn commands(self, ports: [&str; 2], table: u32) -> String {
        let [a, b] = ports;
        let connected =
            format!("set interface l2 xconnect {a} {b}\nset interface l2 xconnect {b} {a}\n");
        match self {
            Set::Nothing => String::new(),
            Set::CrossConnect => connected,
            Set::Route => {
                let side = |(at, port): (usize, &str)| {
                    let ([host, own, network], mac) = (NETWORKS[at], HOSTS[at]);
                    let ours = self.device_macs()[at];
                    format!(
                        "set interface mac address {port} {ours}\n\
                         set interface ip address {port} {own}\n\
                         set ip neighbor {port} {host} {mac} static\n\
                         ip route add {network} via {host} {port}\n"
                    )
                };
                ports.into_iter().enumerate().map(side).collect()
            }
            Set::Labels => {
                let [[first, ..], [second, ..]] = NETWORKS;
                Set::Route.commands(ports, table)
                    + &format!(
                        "mpls table add 0\n\
                         set interface mpls {a} enable\n\
                         set interface mpls {b} enable\n\
                         mpls local-label add 16 eos via {second} {b} out-labels 16\n\
                         mpls local-label add 17 eos via {first} {a} out-labels 17\n"
                    )
            }
            Set::Tracker => {
                let rules: String =
                    rules(a).iter().map(|rule| format!("flow add {table} {rule}\n")).collect();
                let port = |port: &str| format!("set interface flow {port} {table}\n");
                let tracking = format!(
                    "set conntrack limit {CONNECTIONS}\nset conntrack timeouts default {}\n",
                    TIMEOUTS.join(" ")
                );
                format!("{tracking}{connected}{rules}{}{}", port(a), port(b))
            }
        }
    }

    /// The same for the kernel, as arguments of `ip`; forwarding is switched on besides.
    pub(super) fn routes(self, ports: [&str; 2]) -> Vec<String> {
        let side = |(at, port): (usize, &str)| {
            let ([host, own, network], mac) = (NETWORKS[at], HOSTS[at]);
            [
                format!("address add {own} dev {port}"),
                format!("neighbour replace {host} lladdr {mac} dev {port} nud permanent"),
                format!("route add {network} via {host} dev {port}"),
            ]
        };
        ports.into_iter().enumerate().flat_map(side).collect()
    }
}

/// Connections that a tracker holds at most, as in article 4.
pub(super) const CONNECTIONS: u32 = 5_000_000;

/// A tracker's timeouts in seconds, as in article 4: what has ended is soon forgotten. Established
/// connections keep the usual one, since those that are held may be silent for long.
pub(super) const TIMEOUTS: [&str; 8] = [
    "udp_first=1",
    "udp_single=1",
    "udp_multiple=30",
    "tcp_syn_sent=1",
    "tcp_syn_recv=1",
    "tcp_fin_wait=1",
    "tcp_time_wait=1",
    "tcp_close=1",
];

/// Article 4's four rules: those that a client's side opens are tracked, others are dropped.
pub(super) fn rules(client: &str) -> [String; 4] {
    [
        "priority=1,ip,ct_state=-trk,actions=ct(table=0)".into(),
        format!("priority=1,ip,ct_state=+trk+new,in_port={client},actions=ct(commit),normal"),
        "priority=1,ip,ct_state=+trk+est,actions=normal".into(),
        "priority=0,actions=drop".into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_has_the_addresses_that_hosts_send_to() {
        let commands = Set::Route.commands(["a", "b"], 1);
        for line in [
            "set interface mac address a 02:00:00:00:00:02",
            "set ip neighbor b 192.0.2.6 02:00:00:00:00:02 static",
            "ip route add 48.0.0.0/8 via 192.0.2.6 b",
        ] {
            assert!(commands.contains(line), "{line}\n{commands}");
        }
        assert_eq!(Set::Route.routes(["a", "b"]).len(), 6);
        let labels = Set::Labels.commands(["a", "b"], 1);
        assert!(labels.starts_with(&commands) && labels.contains("via 192.0.2.6 b out-labels 16"));
        assert!(Set::Nothing.commands(["a", "b"], 1).is_empty());
    }
}
