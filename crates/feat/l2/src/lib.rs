//! thalweg-feat-l2
