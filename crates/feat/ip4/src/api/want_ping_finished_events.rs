//! `want_ping_finished_events`: sends echo requests, and tells the client when it is done.

use crate::ping::{self, Ping, Request};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use thalweg_api::schema::Module;
use thalweg_api::types::Address;
use thalweg_api::{Call, Caller, ClientId, Clients, Message, Retval};
use thalweg_cli::{Output, Task, TaskPoll};
use thalweg_graph::Control;

/// The module.
static PING: Module = Module { name: "ping", folder: "plugins", version: "0.1.0" };

/// The longest time between two requests, in seconds.
const LONGEST: f64 = 86_400.0;

/// Asks for echo requests.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct WantPingFinishedEvents {
    /// Whom to ask.
    pub address: Address,
    /// How often.
    #[api(default = 1)]
    pub repeat: u32,
    /// Seconds from one request to the next.
    #[api(default = 1.0)]
    pub interval: f64,
}

/// Tells how it went.
#[derive(Debug, Message)]
#[api(event)]
pub struct PingFinishedEvent {
    /// Requests sent.
    pub request_count: u32,
    /// Replies that came in time.
    pub reply_count: u32,
}

/// The service.
pub static SERVICE: Call<Control, WantPingFinishedEvents, WantPingFinishedEventsReply> =
    Call::known(&PING, handle).with_events(&[PingFinishedEvent::DEF]);

fn handle(
    c: &mut Control,
    caller: &Caller,
    rq: WantPingFinishedEvents,
) -> Result<WantPingFinishedEventsReply, Retval> {
    let IpAddr::V4(to) = rq.address.ip()? else {
        return Err(Retval::UNIMPLEMENTED.because("IPv6 addresses are not asked for an echo yet"));
    };
    if rq.repeat == 0 || !(ping::SHORTEST..=LONGEST).contains(&rq.interval) {
        return Err(
            Retval::INVALID_VALUE.because("once at least, with a time between 10 us and a day")
        );
    }
    let request = Request {
        to,
        repeat: rq.repeat,
        interval: Duration::from_secs_f64(rq.interval),
        size: 100,
        source: None,
        table: None,
        burst: 1,
    };
    let ping = ping::start(c, request).map_err(|error| Retval::UNSPECIFIED.because(error))?;
    poll(c, ping, caller.id());
    Ok(WantPingFinishedEventsReply)
}

/// Goes on with a session until it is done, or the client gone.
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
            // It may have gone just now.
            let _ = clients.send(client, &PingFinishedEvent { request_count, reply_count });
        }
    }
}
