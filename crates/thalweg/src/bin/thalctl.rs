//! `thalctl`: the router's command line.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    thalweg::ctl::main()
}
