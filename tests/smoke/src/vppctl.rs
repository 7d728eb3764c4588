//! A client that puts on the socket what VPP's `vppctl` does, byte for byte.
//!
//! The client shares no code with the server, on purpose: both agree on the protocol.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use thalweg_testkit::WAIT_LIMIT;

const PATIENCE: Duration = WAIT_LIMIT;

/// Opening bytes of the server, in one piece.
const NEGOTIATION: [u8; 36] = [
    0xff, 0xfc, 0x22, 0xff, 0xfe, 0x22, // no linemode
    0xff, 0xfb, 0x03, 0xff, 0xfd, 0x03, // suppress go-ahead
    0xff, 0xfb, 0x01, 0xff, 0xfe, 0x01, // the server echoes
    0xff, 0xfd, 0x18, 0xff, 0xfa, 0x18, 0x01, 0xff, 0xf0, // send your terminal type
    0xff, 0xfd, 0x1f, 0xff, 0xfa, 0x1f, 0x01, 0xff, 0xf0, // send your window size
];

/// Runs one command as `vppctl -s SOCKET COMMAND` does, and gives what that would print, lines
/// ended by LF.
///
/// # Errors
/// If the server does not keep to the protocol. A command that fails is no error: `vppctl` cannot
/// tell either.
pub fn vppctl(socket: &Path, command: &str) -> Result<String> {
    let mut stream =
        UnixStream::connect(socket).with_context(|| format!("connect to {}", socket.display()))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // The client takes all options from a single read of 100 bytes.
    let mut opening = [0; 100];
    let length = stream.read(&mut opening).context("read the negotiation")?;
    ensure!(opening[..length] == NEGOTIATION, "the server opened with {:02x?}", &opening[..length]);
    let mut request = b"\xff\xfa\x18\0vppctl\xff\xf0".to_vec();
    request.extend(command.as_bytes());
    request.extend(b"\n\0");
    stream.write_all(&request)?;

    let mut answer = Vec::new();
    let ended = read_until(&mut stream, &mut answer, |answer| answer.ends_with(b"\0"));
    ended.with_context(|| format!("answer to `{command}' so far: {answer:02x?}"))?;
    answer.pop();
    ensure!(!answer.contains(&0), "a NUL inside the answer to `{command}'");
    stream.write_all(b"quit\n").context("say quit")?;
    let mut rest = Vec::new();
    let closed = stream.read_to_end(&mut rest);
    // Leaving data unread, the server may reset instead of close.
    if let Err(error) = closed
        && error.kind() != ErrorKind::ConnectionReset
    {
        return Err(error).context("wait for the server to close after quit");
    }
    ensure!(rest.iter().all(|byte| *byte == 0), "after quit came {rest:02x?}");
    plain(answer)
}

fn read_until(
    stream: &mut UnixStream,
    answer: &mut Vec<u8>,
    done: impl Fn(&[u8]) -> bool,
) -> Result<()> {
    let mut chunk = [0; 4096];
    let deadline = Instant::now() + PATIENCE;
    while !done(answer) {
        ensure!(Instant::now() < deadline, "the answer has no end after {PATIENCE:?}");
        let length = stream.read(&mut chunk)?;
        if length == 0 {
            bail!("the server closed before the answer was complete");
        }
        answer.extend(&chunk[..length]);
    }
    Ok(())
}

/// Every line has to end in CR LF.
fn plain(answer: Vec<u8>) -> Result<String> {
    let text = String::from_utf8(answer).context("the answer is no UTF-8")?;
    let lines = text.replace("\r\n", "\n");
    ensure!(!lines.contains('\r'), "a CR without LF in {text:?}");
    ensure!(
        text.matches('\n').count() == text.matches("\r\n").count(),
        "an LF without CR in {text:?}"
    );
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_checked() {
        assert_eq!(plain(b"a\r\nb\r\n".to_vec()).unwrap(), "a\nb\n");
        assert!(plain(b"a\nb\r\n".to_vec()).is_err());
        assert!(plain(b"a\rb\r\n".to_vec()).is_err());
        assert!(plain(vec![0xff]).is_err());
    }
}
