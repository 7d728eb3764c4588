//! Rings on real devices, in network namespaces that the tests make.

mod rings;
mod support;
mod wire;
