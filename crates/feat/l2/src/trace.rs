//! Trace lines of layer 2 nodes.

use thalweg_buffer::Frame;
use thalweg_wire::MacAddr;

/// Formats destination and source address of packet `i`.
pub(crate) fn addresses(frame: &Frame, i: u8) -> String {
    match frame.data(i).first_chunk::<12>() {
        Some([a, b, c, d, e, f, g, h, j, k, l, m]) => {
            let (to, from) = ([*a, *b, *c, *d, *e, *f], [*g, *h, *j, *k, *l, *m]);
            format!("dst {} src {}", MacAddr(to), MacAddr(from))
        }
        None => "without addresses".into(),
    }
}
