//! Configurations of the router and of the daemons.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

/// Autonomous systems of the customer's edge and of the providers.
pub const OURS: u32 = 64_500;
pub const ONE: u32 = 64_501;
pub const TWO: u32 = 64_502;
/// The first of the destinations. Each route has 256 addresses, with room for a million.
const FIRST: u32 = u32::from_be_bytes([16, 0, 0, 0]);
/// The prefix of all destinations.
pub const WORLD: &str = "16.0.0.0/4";
/// The customer's prefix.
pub const CUSTOMER: &str = "10.3.0.0/24";
/// Routes that there can be.
pub const MOST: u32 = 1 << 20;

/// A routing daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Software {
    /// BIRD 2
    Bird,
    /// FRRouting
    Frr,
}

impl Software {
    pub fn name(self) -> &'static str {
        match self {
            Software::Bird => "BIRD",
            Software::Frr => "FRRouting",
        }
    }
}

/// Destination of a route by number.
pub fn prefix(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(FIRST + (number << 8))
}

/// Addresses all over a table of this many routes.
pub fn addresses(routes: u32, count: u32) -> Vec<Ipv4Addr> {
    let number = |i: u32| u64::from(i) * u64::from(routes) / u64::from(count);
    let one = |i| Ipv4Addr::from(u32::from(prefix(number(i) as u32)) + 1);
    (0..count).map(one).collect()
}

/// The router's document.
pub fn document(namespace: &str) -> String {
    let interface = |name: &str, address: &str| {
        format!("  host-{name}:\n    addresses: [{address}]\n    lcp: {name}\n")
    };
    format!(
        "interfaces:\n{}{}{}thalweg:\n  lcp: {{netns: {namespace}, sync: true}}\n",
        interface("one", "10.1.0.1/24"),
        interface("two", "10.2.0.1/24"),
        interface("cust", "10.3.0.1/24"),
    )
}

/// Common to all neighbours of BIRD: sessions begin within a second, so that the demonstration
/// does not wait, and routes outlive a restart.
const BIRD_BGP: &str = "connect delay time 1; connect retry time 1; error wait time 1, 2; \
                        hold time 9; graceful restart on;";

/// BIRD at the twins. Routes of the first provider are better.
pub fn ours_bird() -> String {
    let bgp = |name: &str, net: u32, remote: u32, preference: u32| {
        format!(
            "protocol bgp {name} {{\n  local 10.{net}.0.1 as {OURS}; neighbor 10.{net}.0.2 as \
             {remote};\n  {BIRD_BGP}\n  ipv4 {{\n    import filter {{ bgp_local_pref = \
             {preference}; accept; }};\n    export where net = {CUSTOMER};\n  }};\n}}\n"
        )
    };
    format!(
        "log stderr all;\nrouter id 10.3.0.1;\ngraceful restart wait 60;\n\
         protocol device {{ scan time 10; }}\n\
         protocol direct {{ ipv4; interface \"cust\"; }}\n\
         protocol kernel {{ graceful restart; ipv4 {{ export where source = RTS_BGP; }}; }}\n{}{}",
        bgp("one", 1, ONE, 200),
        bgp("two", 2, TWO, 100)
    )
}

/// FRRouting's `bgpd` at the twins. Routes of the first provider are better.
pub fn ours_frr() -> String {
    let neighbor = |net: u32, remote: u32| {
        format!(
            " neighbor 10.{net}.0.2 remote-as {remote}\n neighbor 10.{net}.0.2 timers connect 1\n"
        )
    };
    format!(
        "ip prefix-list own permit {CUSTOMER}\n\
         route-map first permit 10\n set local-preference 200\n\
         route-map out permit 10\n match ip address prefix-list own\n\
         router bgp {OURS}\n bgp router-id 10.3.0.1\n no bgp ebgp-requires-policy\n \
         timers bgp 3 9\n bgp graceful-restart\n bgp graceful-restart preserve-fw-state\n{}{} \
         address-family ipv4 unicast\n  network {CUSTOMER}\n  \
         neighbor 10.1.0.2 route-map first in\n  neighbor 10.1.0.2 route-map out out\n  \
         neighbor 10.2.0.2 route-map out out\n exit-address-family\n",
        neighbor(1, ONE),
        neighbor(2, TWO)
    )
}

/// BIRD at a provider, with all routes.
pub fn provider_bird(net: u32, asn: u32, routes: u32) -> String {
    let mut text = format!(
        "log stderr all;\nrouter id 10.{net}.0.2;\nprotocol device {{ scan time 10; }}\n\
         protocol bgp edge {{\n  local 10.{net}.0.2 as {asn}; neighbor 10.{net}.0.1 as {OURS};\n  \
         {BIRD_BGP}\n  ipv4 {{ import all; export where source = RTS_STATIC; next hop self; }};\n}}\n\
         protocol static {{\n  ipv4;\n"
    );
    for number in 0..routes {
        let _ = writeln!(text, "  route {}/24 blackhole;", prefix(number));
    }
    text + "}\n"
}

/// FRRouting's `bgpd` at a provider, with all routes.
pub fn provider_frr(net: u32, asn: u32, routes: u32) -> String {
    let mut text = format!(
        "router bgp {asn}\n bgp router-id 10.{net}.0.2\n no bgp ebgp-requires-policy\n \
         no bgp network import-check\n timers bgp 3 9\n \
         neighbor 10.{net}.0.1 remote-as {OURS}\n neighbor 10.{net}.0.1 timers connect 1\n \
         address-family ipv4 unicast\n"
    );
    for number in 0..routes {
        let _ = writeln!(text, "  network {}/24", prefix(number));
    }
    text + " exit-address-family\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_all_over_the_table() {
        assert_eq!(prefix(0).to_string(), "16.0.0.0");
        assert_eq!(prefix(MOST - 1).to_string(), "31.255.255.0");
        for routes in [50, 100_000, MOST] {
            let all = addresses(routes, 50);
            assert_eq!(all[0].to_string(), "16.0.0.1");
            let last = (u32::from(all[49]) - FIRST) >> 8;
            assert_eq!(last, (u64::from(routes) * 49 / 50) as u32);
        }
    }

    #[test]
    fn providers_have_all_routes() {
        let lines = |text: String, word: &str| text.lines().filter(|l| l.contains(word)).count();
        assert_eq!(lines(provider_bird(1, ONE, 100), "/24 blackhole"), 100);
        assert_eq!(lines(provider_frr(2, TWO, 100), "  network 16."), 100);
        let document = document("/proc/1/fd/3");
        assert_eq!(document.matches("lcp: ").count(), 4, "{document}");
    }
}
