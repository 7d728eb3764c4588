//! thalweg-feat-ip4
