//! Connections of a `zebra` that the tests play.

#![allow(clippy::unwrap_used)]

use super::super::{Change, Hops, Taken};
use super::*;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::sync::mpsc::{Receiver, channel};
use thalweg_netlink::fpm;
use thalweg_netlink::wire::message;

/// Far more than anything here takes.
const SOON: Duration = Duration::from_secs(30);

fn frame(messages: &[Vec<u8>]) -> Vec<u8> {
    fpm::frame(&messages.concat())
}

/// A route to 192.0.2.`n` by an object, or its deletion, of which `zebra` says no kind.
fn route(n: u8, object: Option<u32>, metric: u32) -> Vec<u8> {
    let (kind, of) = if object.is_some() { (24, 1) } else { (25, 0) };
    message(kind, &[2, 32, 0, 0, 254, 186, 0, of, 0, 0, 0, 0], |w| {
        w.bytes(1, &[192, 0, 2, n]).u32(6, metric);
        object.into_iter().for_each(|id| _ = w.u32(30, id));
    })
}

fn object(id: u32, gateway: u8) -> Vec<u8> {
    message(104, &[2, 0, 11, 0, 0, 0, 0, 0], |w| {
        w.u32(1, id).u32(5, 7).bytes(6, &[10, 0, 0, gateway]);
    })
}

fn object_gone(id: u32) -> Vec<u8> {
    message(105, &[2, 0, 11, 0, 0, 0, 0, 0], |w| _ = w.u32(1, id))
}

struct Fpm {
    routes: Routes,
    news: Receiver<()>,
}

impl Fpm {
    fn start(limits: Limits, hold: Duration) -> Fpm {
        let (tell, news) = channel();
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let announce = move || tell.send(()).is_ok();
        let routes = Routes::listen(None, limits, address, hold, announce).unwrap();
        Fpm { routes, news }
    }

    fn state(&self) -> FpmState {
        self.routes.state().fpm.unwrap()
    }

    fn until(&self, what: &str, is: impl Fn(&FpmState) -> bool) {
        let begin = Instant::now();
        while !is(&self.state()) {
            assert!(begin.elapsed() < SOON, "{what}: {:?}", self.routes.state());
            // Paced: the next look.
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn connect(&self) -> TcpStream {
        self.until("it listens", |fpm| fpm.listens);
        TcpStream::connect(self.state().address).unwrap()
    }

    /// Sends frames, and waits until all are taken.
    fn send(&self, stream: &mut TcpStream, frames: &[Vec<u8>]) {
        let before = self.state().frames;
        stream.write_all(&frames.concat()).unwrap();
        self.until("frames", |fpm| fpm.frames == before + frames.len() as u64);
    }

    fn take(&self) -> Taken {
        let _ = self.news.recv_timeout(SOON);
        self.routes.take(10_000)
    }

    fn gateway(&self, n: u8) -> Option<String> {
        let used = self.routes.find(&[254], ([192, 0, 2, n].into(), 32))?;
        let Hops::Object(id) = used.hops else { return Some("no object".into()) };
        let shared = self.routes.0.lock();
        let hops = shared.shadow.objects.hops(id);
        Some(format!("{} {:?}", used.metric, hops[0].gateway.unwrap()))
    }
}

fn gone(taken: &Taken) -> usize {
    taken.routes.iter().filter(|Change { now, .. }| now.is_none()).count()
}

#[test]
fn routes_come_change_and_go() {
    let fpm = Fpm::start(Limits::default(), SOON);
    let mut zebra = fpm.connect();
    let first = [frame(&[object(5, 1)]), frame(&[route(1, Some(5), 0), route(2, Some(5), 0)])];
    fpm.send(&mut zebra, &first);
    let taken = fpm.take();
    assert_eq!((taken.objects.len(), taken.routes.len(), gone(&taken)), (1, 2, 0));
    assert_eq!(fpm.gateway(1).unwrap(), "20 10.0.0.1");
    // A deletion and a new route of another metric are one change.
    let change = [route(1, None, 0), route(1, Some(6), 7)];
    fpm.send(&mut zebra, &[frame(&[object(6, 2)]), frame(&change)]);
    let taken = fpm.take();
    assert_eq!((taken.routes.len(), gone(&taken)), (1, 0));
    assert_eq!(fpm.gateway(1).unwrap(), "20 10.0.0.2");
    fpm.send(&mut zebra, &[frame(&[route(2, None, 0)]), frame(&[object_gone(5)])]);
    let taken = fpm.take();
    assert_eq!((gone(&taken), taken.gone.len(), fpm.routes.state().objects), (1, 1, 1));
    assert_eq!(fpm.routes.state().routes, 1);
}

/// An object that is deleted first stays until its last route has gone.
#[test]
fn an_object_outlives_its_deletion_while_it_has_routes() {
    let fpm = Fpm::start(Limits::default(), SOON);
    let mut zebra = fpm.connect();
    fpm.send(&mut zebra, &[frame(&[object(5, 1), route(1, Some(5), 0)])]);
    fpm.send(&mut zebra, &[frame(&[object_gone(5)])]);
    assert_eq!(fpm.gateway(1).unwrap(), "20 10.0.0.1");
    fpm.send(&mut zebra, &[frame(&[route(1, None, 0)])]);
    let begin = Instant::now();
    while fpm.routes.state().objects > 0 {
        assert!(begin.elapsed() < SOON);
        // Paced: the next look.
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Numbers of objects mean something else after a restart; routes of before keep what they had.
#[test]
fn a_new_connection_announces_all_again() {
    let hold = Duration::from_millis(300);
    let fpm = Fpm::start(Limits::default(), SOON);
    let mut zebra = fpm.connect();
    fpm.send(&mut zebra, &[frame(&[object(5, 1), route(1, Some(5), 0), route(2, Some(5), 0)])]);
    assert_eq!(fpm.state().stale_until, None);
    drop(zebra);
    fpm.until("the end", |fpm| fpm.client.is_none() && fpm.stale_until.is_some());
    assert_eq!(fpm.gateway(1).unwrap(), "20 10.0.0.1");
    fpm.routes.hold(hold);
    let mut zebra = fpm.connect();
    fpm.send(&mut zebra, &[frame(&[object(5, 9), route(1, Some(5), 0)])]);
    assert_eq!(fpm.gateway(1).unwrap(), "20 10.0.0.9");
    if fpm.state().stale_until.is_some() {
        assert_eq!(fpm.gateway(2).unwrap_or("20 10.0.0.1".into()), "20 10.0.0.1");
    }
    fpm.until("what is stale to go", |fpm| fpm.stale_until.is_none());
    assert_eq!((fpm.gateway(2), fpm.routes.state().objects), (None, 1));
    assert_eq!(fpm.gateway(1).unwrap(), "20 10.0.0.9");
    // Nobody comes back.
    drop(zebra);
    fpm.until("the end", |fpm| fpm.client.is_none() && fpm.stale_until.is_none());
    assert_eq!((fpm.routes.state().routes, fpm.routes.state().objects), (0, 0));
}

#[test]
fn one_client_is_served_and_silent_ones_make_way() {
    let fpm = Fpm::start(Limits::default(), SOON);
    let _silent = fpm.connect();
    fpm.until("one", |fpm| fpm.connections == 1);
    let mut zebra = fpm.connect();
    fpm.until("two", |fpm| fpm.connections == 2);
    fpm.send(&mut zebra, &[frame(&[object(5, 1), route(1, Some(5), 0)])]);
    let mut other = fpm.connect();
    fpm.until("one refused", |fpm| fpm.refused == 1);
    assert_eq!(other.read(&mut [0]).unwrap_or(0), 0);
    // Half a frame is no frame; a wrong one ends the connection, and its routes stay.
    let half = frame(&[route(2, Some(5), 0)]);
    zebra.write_all(&half[..9]).unwrap();
    zebra.write_all(&half[9..]).unwrap();
    fpm.until("the rest", |fpm| fpm.frames == 2);
    zebra.write_all(b"GET / HTTP/1.1").unwrap();
    fpm.until("a fault", |fpm| fpm.faults == 1 && fpm.client.is_none());
    assert_eq!(fpm.routes.state().routes, 2);
}

#[test]
fn what_is_beyond_limits_is_left_out() {
    let limits = Limits { routes: 3, objects: 2, ..Limits::default() };
    let fpm = Fpm::start(limits, SOON);
    let mut zebra = fpm.connect();
    let objects: Vec<Vec<u8>> = (0..5).map(|n| object(n, n as u8)).collect();
    let routes: Vec<Vec<u8>> = (0..9).map(|n| route(n, Some(0), 0)).collect();
    fpm.send(&mut zebra, &[frame(&objects), frame(&routes), frame(&[route(0, Some(4), 0)])]);
    let state = fpm.routes.state();
    assert_eq!((state.objects, state.routes, state.left.beyond), (2, 2, 10));
}

#[test]
fn routes_of_the_kernel_kind_make_way_for_those_of_interfaces() {
    let fpm = Fpm::start(Limits::default(), SOON);
    let mut zebra = fpm.connect();
    fpm.send(&mut zebra, &[frame(&[object(5, 1), route(1, Some(5), 0)])]);
    let mut own = route(1, Some(5), 0);
    own[16 + 5] = 2;
    fpm.send(&mut zebra, &[frame(&[own])]);
    assert_eq!(fpm.routes.state().routes, 0);
}

/// The connection is closed for a list of all; what it announces no more goes after a time.
#[test]
fn all_is_announced_again_when_a_user_asks() {
    let fpm = Fpm::start(Limits::default(), Duration::ZERO);
    // Nobody is asked.
    fpm.routes.resync();
    let mut zebra = fpm.connect();
    fpm.send(&mut zebra, &[frame(&[object(5, 1), route(1, Some(5), 0), route(2, Some(5), 0)])]);
    fpm.routes.resync();
    assert_eq!(zebra.read(&mut [0]).unwrap_or(0), 0);
    fpm.until("the end", |fpm| fpm.client.is_none() && fpm.stale_until.is_some());
    // A hold of nothing is long enough for that, and for what comes over the new connection.
    let mut zebra = fpm.connect();
    fpm.send(&mut zebra, &[frame(&[object(5, 9), route(1, Some(5), 0)])]);
    assert_eq!(fpm.gateway(1).unwrap(), "20 10.0.0.9");
    assert_eq!(fpm.gateway(2).unwrap(), "20 10.0.0.1");
    let left = fpm.state().stale_until.unwrap().saturating_duration_since(Instant::now());
    assert!(left > ASKED_HOLD / 2, "{left:?}");
    if let Some(state) = &mut fpm.routes.0.lock().fpm {
        state.stale_until = Some(Instant::now());
    }
    fpm.routes.0.wake();
    fpm.until("the rest to go", |fpm| fpm.stale_until.is_none());
    assert_eq!((fpm.gateway(1).as_deref(), fpm.gateway(2)), (Some("20 10.0.0.9"), None));
}
