//! thalweg-feat-arp
