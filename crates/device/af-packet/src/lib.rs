//! thalweg-device-af-packet
