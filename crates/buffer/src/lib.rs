//! thalweg-buffer
