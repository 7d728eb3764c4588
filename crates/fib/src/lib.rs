//! thalweg-fib
