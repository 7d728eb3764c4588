//! Labelled packets through a router of real features between test interfaces.

#![allow(clippy::expect_used, clippy::panic)]

mod answers;
mod attacks;
mod found;
mod ip6;
mod lab;
mod labels;
mod many;
mod punts;
mod random;
mod routes;
mod tunnels;
mod via_label;
