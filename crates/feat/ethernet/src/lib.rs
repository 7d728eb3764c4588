//! thalweg-feat-ethernet
