//! thalweg-cli
