//! The scenarios, a file per topic.
//!
//! Each puts the router into a lab of network namespaces whose hosts are the kernel's own stack.
//! They need root or user namespaces, and the program: `cargo build --release --bins`.

mod agent;
mod article2;
mod autoconfig;
mod bad_input;
mod bad_start;
mod bridging;
mod collectors;
mod configuration;
mod conntrack;
mod conntrack_ipv6;
mod conntrack_lives;
mod cross_connect;
mod demo;
mod devices;
mod examples;
mod failure;
mod faults;
mod idle;
mod ipv6;
mod killed;
mod lcp;
mod lcp_daemons;
mod lcp_restart;
mod lcp_routes;
mod lcp_systemd;
mod lcp_vrrp;
mod load;
mod load_ends;
mod mpls;
mod mtu;
mod nat44;
mod nat44_lives;
mod nat44_workers;
mod neighbours;
mod netlink;
mod ping;
mod reading;
mod rings;
mod routing;
mod sflow;
mod sflow_far;
mod sflow_many;
mod sflow_paths;
mod sflow_speed;
mod shows;
mod soak;
mod taps;
mod throughput;
mod trace;
mod transcript;
mod vlans;
mod wire;
