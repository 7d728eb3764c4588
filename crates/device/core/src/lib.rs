//! thalweg-device
