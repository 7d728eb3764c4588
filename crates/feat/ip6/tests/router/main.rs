//! A router of the real features, whose packets pass between test interfaces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod attacks;
mod dad;
mod forwarding;
mod icmp;
mod kernels;
mod lab;
mod neighbors;
mod path_mtu;
mod random;
mod redirects;
