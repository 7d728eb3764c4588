//! Spellings of a limit: `rx 1400` in documents, `ip4 rx ip4-mss 1400` on the command line.

use crate::{Clamp, Direction, MIN_MSS};
use thalweg_cli::{Args, CliError};
use thalweg_config::declare::Value;
use thalweg_engine::setting::{Form, read_words};

/// The limit for one version of IP, by its word: `ip4`.
pub struct ClampForm(pub &'static str);

impl Form for ClampForm {
    type Value = Clamp;

    fn usage(&self) -> &'static str {
        "[rx|tx] <bytes>"
    }

    fn take(&self, args: &mut Args<'_>) -> Result<Clamp, CliError> {
        let direction = match args.one_of_exact(&["rx", "tx"]) {
            Some("rx") => Direction::Rx,
            Some(_) => Direction::Tx,
            None => Direction::Both,
        };
        let mss = args.number("MSS", MIN_MSS.into(), u16::MAX.into())? as u16;
        Ok(Clamp { mss, direction })
    }

    fn words(&self, Clamp { mss, direction }: &Clamp) -> String {
        format!("{ip} {} {ip}-mss {mss}", direction.word(), ip = self.0)
    }

    fn yaml(&self, Clamp { mss, direction }: &Clamp) -> Value {
        match direction {
            Direction::Both => Value::from(u32::from(*mss)),
            one => Value::from(format!("{} {mss}", one.word())),
        }
    }

    fn read(&self, value: &Value) -> Result<Clamp, String> {
        let right = format!("`[rx|tx] <bytes from {MIN_MSS} to 65535>'");
        read_words(value, |args| self.take(args)).map_err(|_| right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_are_written() {
        let read = |text: &str| ClampForm("ip4").read(&text.into()).ok();
        let clamp = |mss, direction| Some(Clamp { mss, direction });
        assert_eq!(read("rx 1400"), clamp(1400, Direction::Rx));
        assert_eq!(read("tx 64"), clamp(64, Direction::Tx));
        assert_eq!(read("65535"), clamp(65_535, Direction::Both));
        for bad in ["", "rx", "rx 63", "65536", "both 1400", "rx 1400 1"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
