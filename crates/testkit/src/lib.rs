//! thalweg-testkit
