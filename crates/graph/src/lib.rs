//! thalweg-graph
