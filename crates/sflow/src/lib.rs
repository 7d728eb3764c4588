//! thalweg-sflow
