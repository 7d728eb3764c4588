//! Timeouts of connections, by protocol and state.

use std::fmt;

use thalweg_tables::flow::{MAX_TIMEOUT, Millis};

/// The state of a connection that selects its timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Timeout {
    /// TCP: a SYN from one side.
    TcpSynSent,
    /// TCP: a side has not been acknowledged yet.
    TcpSynRecv,
    /// TCP: both sides are established.
    TcpEstablished,
    /// TCP: one side has sent a FIN.
    TcpFinWait,
    /// TCP: both have sent a FIN, not both of which are acknowledged.
    TcpTimeWait,
    /// TCP: both FINs are acknowledged, or there was a reset.
    TcpClose,
    /// UDP and protocols without states: a single packet.
    UdpFirst,
    /// UDP and protocols without states: several packets in one direction.
    UdpSingle,
    /// UDP and protocols without states: packets in both directions.
    UdpMultiple,
    /// ICMP queries: no reply yet.
    IcmpFirst,
    /// ICMP queries: answered.
    IcmpReply,
}

/// Names of Linux states that are accepted but have no effect here.
const WITHOUT_MEANING: [&str; 5] =
    ["tcp_close_wait", "tcp_last_ack", "tcp_syn_sent2", "tcp_retransmit", "tcp_unack"];

impl Timeout {
    /// All timeouts.
    pub const ALL: [Timeout; 11] = [
        Timeout::TcpSynSent,
        Timeout::TcpSynRecv,
        Timeout::TcpEstablished,
        Timeout::TcpFinWait,
        Timeout::TcpTimeWait,
        Timeout::TcpClose,
        Timeout::UdpFirst,
        Timeout::UdpSingle,
        Timeout::UdpMultiple,
        Timeout::IcmpFirst,
        Timeout::IcmpReply,
    ];

    /// Name in a policy.
    pub const fn name(self) -> &'static str {
        match self {
            Timeout::TcpSynSent => "tcp_syn_sent",
            Timeout::TcpSynRecv => "tcp_syn_recv",
            Timeout::TcpEstablished => "tcp_established",
            Timeout::TcpFinWait => "tcp_fin_wait",
            Timeout::TcpTimeWait => "tcp_time_wait",
            Timeout::TcpClose => "tcp_close",
            Timeout::UdpFirst => "udp_first",
            Timeout::UdpSingle => "udp_single",
            Timeout::UdpMultiple => "udp_multiple",
            Timeout::IcmpFirst => "icmp_first",
            Timeout::IcmpReply => "icmp_reply",
        }
    }

    /// Default in seconds.
    pub const fn default_seconds(self) -> u32 {
        match self {
            Timeout::TcpEstablished => 86400,
            Timeout::TcpFinWait => 900,
            Timeout::TcpTimeWait => 45,
            Timeout::UdpFirst | Timeout::UdpSingle | Timeout::IcmpFirst => 60,
            _ => 30,
        }
    }
}

/// Reason why a policy is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The word has no `=`.
    #[error("`{0}` is not a timeout: NAME=SECONDS expected, such as udp_first=60")]
    NoValue(String),
    /// Unknown name.
    #[error("unknown timeout `{0}`; known are {names}", names = names())]
    Unknown(String),
    /// The value is not a number of seconds, or is too large.
    #[error("{name}: seconds from 1 to {max} expected, not `{value}`", max = MAX_TIMEOUT / 1000)]
    Seconds {
        /// Name of the timeout.
        name: String,
        /// The value as written.
        value: String,
    },
}

fn names() -> String {
    Timeout::ALL.map(Timeout::name).join(", ")
}

/// Timeouts of a zone, or of all zones without a policy of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    millis: [Millis; Timeout::ALL.len()],
    /// A bit for each timeout that is set explicitly.
    set: u16,
}

impl Default for Policy {
    fn default() -> Self {
        let millis = Timeout::ALL.map(|timeout| timeout.default_seconds() * 1000);
        Policy { millis, set: 0 }
    }
}

impl Policy {
    /// Parses words such as `udp_first=1 tcp_established=30`, separated by blanks or commas.
    ///
    /// # Errors
    /// [`PolicyError`] for the first invalid word.
    pub fn parse(text: &str) -> Result<Policy, PolicyError> {
        let mut policy = Policy::default();
        for word in text.split([' ', ',', '\t']).filter(|word| !word.is_empty()) {
            policy.read(word)?;
        }
        Ok(policy)
    }

    fn read(&mut self, word: &str) -> Result<(), PolicyError> {
        let (name, value) = word.split_once('=').ok_or(PolicyError::NoValue(word.into()))?;
        let seconds = value.parse().ok().filter(|s| (1..=MAX_TIMEOUT / 1000).contains(s));
        let wrong = || PolicyError::Seconds { name: name.into(), value: value.into() };
        let seconds = seconds.ok_or_else(wrong)?;
        match Timeout::ALL.iter().find(|t| t.name() == name) {
            Some(timeout) => self.set(*timeout, seconds),
            None if WITHOUT_MEANING.contains(&name) => {}
            None => return Err(PolicyError::Unknown(name.into())),
        }
        Ok(())
    }

    /// Sets a timeout, clamped to between 1 second and 12 days.
    pub fn set(&mut self, timeout: Timeout, seconds: u32) {
        let longest = MAX_TIMEOUT / 1000;
        self.millis[timeout as usize] = seconds.clamp(1, longest) * 1000;
        self.set |= 1 << timeout as u16;
    }

    /// A timeout in milliseconds.
    #[inline]
    pub fn millis(&self, timeout: Timeout) -> Millis {
        self.millis[timeout as usize]
    }
}

/// The timeouts that are set explicitly, in the order of [`Timeout::ALL`].
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = Timeout::ALL.iter().filter(|t| self.set >> **t as u16 & 1 == 1);
        for (i, timeout) in set.enumerate() {
            let blank = if i == 0 { "" } else { " " };
            write!(f, "{blank}{}={}", timeout.name(), self.millis(*timeout) / 1000)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_partial() {
        let policy = Policy::parse("udp_first=1 udp_single=2,tcp_unack=7 icmp_reply=3").unwrap();
        assert_eq!(policy.to_string(), "udp_first=1 udp_single=2 icmp_reply=3");
        assert_eq!(policy.millis(Timeout::UdpSingle), 2000);
        assert_eq!(policy.millis(Timeout::TcpEstablished), 86_400_000);
        assert_eq!(policy.millis(Timeout::UdpMultiple), 30_000);
    }

    #[test]
    fn invalid_words_are_reported() {
        for (text, part) in [
            ("udp_first", "NAME=SECONDS expected"),
            ("udp_last=3", "known are tcp_syn_sent, tcp_syn_recv"),
            ("udp_first=0", "seconds from 1 to 1073741"),
            ("udp_first=x", "not `x'"),
        ] {
            let e = Policy::parse(text).unwrap_err().to_string();
            assert!(e.contains(&part.replace('\'', "`")) || e.contains(part), "{e}");
        }
    }
}
