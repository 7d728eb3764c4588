//! `show cpu`: the processor and the instruction set that the packet path uses.

use thalweg_buffer::simd;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::clock;
use thalweg_graph::control::Control;

/// `show cpu`
pub struct ShowCpu;

/// The command.
pub static COMMAND: ShowCpu = ShowCpu;

/// Returns a field of the first processor in `/proc/cpuinfo`.
fn field<'t>(cpuinfo: &'t str, name: &str) -> &'t str {
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(key, _)| key.trim() == name).map_or("unknown", |(_, value)| value.trim())
}

impl Command<Control> for ShowCpu {
    fn path(&self) -> &'static str {
        "show cpu"
    }

    fn help(&self) -> &'static str {
        "Show the processor and the instruction set that frame kernels use"
    }

    fn run(
        &self,
        _: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        args.end()?;
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let (model, ghz) = (field(&info, "model name"), clock::hz() / 1e9);
        let (level, best) = (simd::level().name(), simd::Level::best().name());
        out.json(serde_json::json!({
            "model": model, "clock_hz": clock::hz(), "kernels": level, "best_kernels": best,
        }));
        out.line(format_args!("{:<24} {model}", "Model name:"));
        out.line(format_args!("{:<24} {ghz:.2} GHz", "Base frequency:"));
        let note = match level == best {
            true => String::new(),
            false => format!(" (by THALWEG_SIMD; the best is {best})"),
        };
        out.line(format_args!("{:<24} {level}{note}", "Frame kernels:"));
        Ok(Outcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_cpuinfo() {
        let info = "processor\t: 0\nmodel name\t: A: B\n\nmodel name\t: C\n";
        assert_eq!(field(info, "model name"), "A: B");
        assert_eq!(field(info, "flags"), "unknown");
    }
}
