//! thalweg-device-pg
