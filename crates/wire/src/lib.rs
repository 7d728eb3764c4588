//! thalweg-wire
