//! `thalctl`: the router's command line.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    // Of the router it links nothing.
    thalweg_ctl::main()
}
