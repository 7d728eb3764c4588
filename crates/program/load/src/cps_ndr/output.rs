//! The file of `cps_ndr.py`: the statistics of the last good sample, shaped as TRex's.

use serde_json::{Value, json};

use super::Args;
use crate::sample::Sample;

/// The file's text. Without a good sample it holds only the options.
pub(super) fn text(args: &Args, best: Option<&Sample>) -> String {
    let mut all = best.map_or_else(|| json!({}), statistics);
    all["conntrack_ndr_profile"] = json!({
        "max_iterations": args.max_iterations,
        "sample_time": args.sample_time,
        "error_threshold": args.error_threshold,
        "reset_command": args.reset_command,
        "udp_percent": args.traffic.udp_percent,
        "num_messages": args.traffic.num_messages,
        "message_size": args.traffic.message_size,
        "server_wait": args.traffic.server_wait,
        "min_cps": args.min_cps,
        "max_cps": args.max_cps,
        "max_flows": args.traffic.max_flows,
        "adaptive_window": args.adaptive_window,
        "ramp_up": args.ramp_up,
    });
    format!("{all:#}\n")
}

fn statistics(sample: &Sample) -> Value {
    let (clients, servers) = (&sample.clients, &sample.servers);
    let (sent, sent_bits) = sample.sent();
    let (received, received_bits) = sample.received();
    let port = |counts: &thalweg_load::talk::Counts| {
        json!({
            "opackets": counts.sent,
            "ipackets": counts.received,
            "obytes": counts.sent_bytes,
            "ibytes": counts.received_bytes,
            "oerrors": counts.no_room,
            "ierrors": counts.bad_checksum,
            "tx_pps": sample.per_second(counts.sent),
            "rx_pps": sample.per_second(counts.received),
            "tx_bps": 8.0 * sample.per_second(counts.sent_bytes),
            "rx_bps": 8.0 * sample.per_second(counts.received_bytes),
        })
    };
    let side = |counts: &thalweg_load::talk::Counts| {
        json!({
            "tcps_connattempt": counts.begun,
            "tcps_connects": counts.established,
            "tcps_closed": counts.completed,
            "tcps_conndrops": counts.lost.all(),
            "tcps_rexmttimeo": counts.data_retries,
            "tcps_rexmttimeo_syn": counts.syn_retries,
            "tcps_sndrexmitpack": counts.fast_retries,
            "tcps_rcvduppack": counts.duplicates,
            "tcps_rcvoopack": counts.reordered,
            "tcps_rcvbadsum": counts.bad_checksum,
            "tcps_sndbyte": counts.said,
            "tcps_rcvbyte": counts.heard,
        })
    };
    json!({
        "global": {
            "active_flows": sample.active,
            "open_flows": sample.open,
            "tx_cps": sample.per_second(clients.begun),
            "tx_expected_cps": sample.rate,
            "tx_pps": sample.per_second(sent),
            "tx_bps": sample.per_second(sent_bits),
            "rx_pps": sample.per_second(received),
            "rx_bps": sample.per_second(received_bits),
            "queue_full": clients.no_room + servers.no_room,
        },
        "0": port(clients),
        "1": port(servers),
        "total": port(&clients.plus(servers)),
        "traffic": {
            "client": side(clients),
            "server": side(servers),
        },
        "latency": {},
    })
}
