//! `want_ping_finished_events`: sends echo requests and notifies the client of the result.

use crate::family::Version;
use crate::message_types::{
    PING, PingFinishedEvent, WantPingFinishedEvents, WantPingFinishedEventsReply,
};
use crate::ping::{self, Ping, Request};
use std::time::{Duration, Instant};
use thalweg_api::{Call, Caller, ClientId, Clients, Message, Retval};
use thalweg_cli::{Output, Task, TaskPoll};
use thalweg_graph::Control;

/// Maximum interval in seconds.
const LONGEST: f64 = 86_400.0;

/// Least time to wait for the last reply.
const SHORTEST_WAIT: Duration = Duration::from_millis(50);

/// The service.
pub static SERVICE: Call<Control, WantPingFinishedEvents, WantPingFinishedEventsReply> =
    Call::known(&PING, handle).with_events(&[PingFinishedEvent::DEF]);

fn handle(
    c: &mut Control,
    caller: &Caller,
    rq: WantPingFinishedEvents,
) -> Result<WantPingFinishedEventsReply, Retval> {
    let to = rq.address.ip()?;
    ping::max_size(c, Version::of_ip(to))?;
    if rq.repeat == 0 || !(ping::SHORTEST..=LONGEST).contains(&rq.interval) {
        return Err(Retval::INVALID_VALUE
            .because("repeat must be at least 1, interval between 10 us and one day"));
    }
    let request = Request {
        to,
        repeat: rq.repeat,
        interval: Duration::from_secs_f64(rq.interval),
        size: 100,
        source: None,
        table: None,
        burst: 1,
        // The client has said how long it waits for each.
        patience: Duration::from_secs_f64(rq.interval).max(SHORTEST_WAIT),
    };
    let ping = ping::start(c, request).map_err(|error| Retval::UNSPECIFIED.because(error))?;
    poll(c, ping, caller.id());
    Ok(WantPingFinishedEventsReply)
}

/// Polls a session until it is done or the client disconnects.
fn poll(c: &mut Control, mut ping: Ping, client: ClientId) {
    let clients = c.state::<Clients>().borrow().clone();
    let (now, mut out) = (Instant::now(), Output::new());
    if !clients.contains(client) {
        return ping.cancel(c, &mut out);
    }
    match ping.poll(c, now, &mut out) {
        TaskPoll::At(at) => {
            c.after(at.saturating_duration_since(now), move |c| poll(c, ping, client));
        }
        TaskPoll::Done | TaskPoll::Failed(_) => {
            let (request_count, reply_count) = ping.counts();
            // The client may have disconnected just now.
            let _ = clients.send(client, &PingFinishedEvent { request_count, reply_count });
        }
    }
}
