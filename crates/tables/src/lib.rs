//! thalweg-tables
