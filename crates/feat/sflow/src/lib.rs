//! thalweg-feat-sflow
