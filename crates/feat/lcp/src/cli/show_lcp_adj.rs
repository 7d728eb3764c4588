//! `show lcp adj`.

use crate::pairs;
use serde_json::json;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_fib::Forwarding;
use thalweg_graph::Control;

/// `show lcp adj [verbose]`
pub struct ShowLcpAdj;

/// The command.
pub static COMMAND: ShowLcpAdj = ShowLcpAdj;

impl Command<Control> for ShowLcpAdj {
    fn path(&self) -> &'static str {
        "show lcp adj"
    }

    fn usage(&self) -> &'static str {
        "[verbose]"
    }

    fn help(&self) -> &'static str {
        "Show the adjacencies by which packets of twins leave\n\
         Packets keep the header that the kernel wrote, so that there are two for each interface, \
         not one for each neighbour. `verbose' describes them."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let verbose = !args.is_empty() && args.choice("option", &["verbose"])? == "verbose";
        args.end()?;
        let forwarding = c.state::<Forwarding>();
        let forwarding = forwarding.borrow();
        out.list(pairs::all(c), |pair| {
            let [ip4, ip6] = pair.pair.to;
            let described = [ip4, ip6].map(|dpo| forwarding.describe(c, dpo));
            let mut text =
                format!("{} from {}: ip4 {}, ip6 {}", pair.phy, pair.name, ip4.get(), ip6.get());
            if verbose {
                text += &format!("\n  {}\n  {}", described[0], described[1]);
            }
            let row = json!({
                "phy": pair.phy,
                "name": pair.name,
                "ip4": { "index": ip4.get(), "text": described[0] },
                "ip6": { "index": ip6.get(), "text": described[1] },
            });
            (text, row)
        });
        Ok(Outcome::Done)
    }

    fn complete(&self, _: &Control, before: &[&str], _: &str) -> Vec<String> {
        if before.is_empty() { vec!["verbose".into()] } else { Vec::new() }
    }
}
