//! `sflow enable-disable`.

use crate::cli_support::{ports, refused};
use crate::state::{self, Rate};
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device::interface_arg;
use thalweg_graph::Control;

/// The command.
pub static COMMAND: SFlowEnableDisable = SFlowEnableDisable;

/// The command's type.
pub struct SFlowEnableDisable;

/// Words after the interface.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    enable: bool,
    rate: Rate,
}

fn wish(args: &mut Args<'_>) -> Result<Wish, CliError> {
    let mut wish = Wish { enable: true, rate: Rate::Kept };
    while !args.is_empty() {
        match args.one_of(&["enable", "disable", "rate"])? {
            Some("rate") if args.exact("default") => wish.rate = Rate::General,
            Some("rate") if args.exact("auto") => wish.rate = Rate::Auto,
            Some("rate") => {
                let expected = "a number from 0 to 4294967295, `auto' or `default'";
                wish.rate = Rate::Own(args.parsed("sampling rate", expected)?);
            }
            Some(word) => {
                wish.enable = word == "enable";
                args.end()?;
            }
            None => {
                let expected = "a sampling rate, `rate <N>', `enable' or `disable'";
                wish.rate = Rate::Own(args.parsed("sampling rate", expected)?);
            }
        }
    }
    Ok(wish)
}

impl Command<Control> for SFlowEnableDisable {
    fn path(&self) -> &'static str {
        "sflow enable-disable"
    }
    fn usage(&self) -> &'static str {
        "<interface> [rate <N>|<N>|rate auto|rate default] [enable|disable]"
    }
    fn help(&self) -> &'static str {
        "Enable or disable packet sampling on an interface\n\
         One packet in N is sampled: the interface's own rate if given here (0 samples none),\n\
         else that of `sflow sampling-rate'. `rate auto' follows the speed of the link: N is its\n\
         number of megabits per second, or that of `sflow sampling-rate' while the speed is not\n\
         known. Repeat the command with another N to change the interface's rate, or with\n\
         `rate default' to use the general rate again."
    }
    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        _out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let sw_if = interface_arg(cx, args)?;
        let wish = wish(args)?;
        if wish.enable {
            state::enable(cx, sw_if, wish.rate).map_err(refused)?;
        } else {
            state::disable(cx, sw_if).map_err(refused)?;
        }
        Ok(Outcome::Done)
    }
    fn complete(&self, cx: &Control, before: &[&str], _partial: &str) -> Vec<String> {
        match before {
            [] => ports(cx),
            [.., "rate"] => vec!["auto".into(), "default".into()],
            [.., "enable" | "disable"] => Vec::new(),
            _ => ["rate", "enable", "disable"].map(String::from).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_understood() {
        let wish =
            |text: &str| super::wish(&mut Args::parse(text).unwrap()).map_err(|e| e.to_string());
        let on = |rate| Ok(Wish { enable: true, rate });
        let own = |rate| on(Rate::Own(rate));
        assert_eq!(wish(""), on(Rate::Kept));
        assert_eq!(wish("enable"), on(Rate::Kept));
        assert_eq!(wish("1000"), own(1000));
        assert_eq!(wish("rate 100"), own(100));
        assert_eq!(wish("rate 100 enable"), own(100));
        assert_eq!(wish("1000 disable"), Ok(Wish { enable: false, rate: Rate::Own(1000) }));
        assert_eq!(wish("disable"), Ok(Wish { enable: false, rate: Rate::Kept }));
        assert_eq!(wish("rate default"), on(Rate::General));
        assert_eq!(wish("rate auto"), on(Rate::Auto));
        assert_eq!(wish("rate auto enable"), on(Rate::Auto));
        assert!(wish("disable 7").unwrap_err().contains("unexpected `7'"));
        assert!(wish("many").unwrap_err().contains("expected a sampling rate"));
        assert!(wish("rate").unwrap_err().contains("missing sampling rate"));
    }
}
