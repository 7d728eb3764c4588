//! `thalctl`: the router's command line.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    // The program links no part of the router.
    thalweg_ctl::main()
}
