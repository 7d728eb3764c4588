use super::*;
use proptest::prelude::*;

fn profile() -> Profile {
    Profile { clients: 3, ports: (1000, 10), concurrent: 7, ..Profile::default() }
}

fn server(profile: &Profile) -> Server {
    let (client, server) = profile.client_mac;
    Server::new((server, client), profile.server.1, profile.answer)
}

/// Passes frames back and forth; `keep` decides which arrive. Returns the counters of both sides
/// and the number of open connections.
fn run(
    profile: Profile,
    rounds: u64,
    mut keep: impl FnMut() -> bool,
) -> (Counts, ServerCounts, u32) {
    let mut server = server(&profile);
    let mut client = Client::new(profile, 0).unwrap();
    let mut to_server: Vec<Vec<u8>> = Vec::new();
    for round in 0..rounds {
        let now = round * 1000;
        client.poll(now, 4, &mut to_server);
        let mut to_client: Vec<Vec<u8>> = Vec::new();
        for frame in to_server.drain(..).filter(|_| keep()) {
            server.receive(&frame, &mut to_client);
        }
        for frame in to_client.into_iter().filter(|_| keep()) {
            client.receive(now, &frame, &mut to_server);
        }
    }
    (client.counts(), server.counts(), client.open())
}

#[test]
fn a_connection_is_eight_packets() {
    let mut client = Client::new(Profile { concurrent: 1, ..profile() }, 0).unwrap();
    let mut server = server(&profile());
    let (mut there, mut back) = (Vec::new(), Vec::new());
    let mut seen = Vec::new();
    client.poll(0, 4, &mut there);
    client.set_concurrent(0);
    while !there.is_empty() {
        for frame in there.drain(..) {
            let segment = frame::Segment::read(&frame).unwrap();
            seen.push((segment.flags, segment.data));
            server.receive(&frame, &mut back);
        }
        for frame in back.drain(..) {
            let segment = frame::Segment::read(&frame).unwrap();
            seen.push((segment.flags, segment.data));
            client.receive(0, &frame, &mut there);
        }
    }
    let (fin, syn, psh, ack) = (1, 2, 8, 16);
    assert_eq!(
        seen,
        [
            (syn, 0),
            (syn | ack, 0),
            (ack, 0),
            (psh | ack, 40),
            (psh | ack, 40),
            (fin | ack, 0),
            (fin | ack, 0),
            (ack, 0)
        ]
    );
    let counts = client.counts();
    assert_eq!((counts.opened, counts.completed, counts.sent, counts.received), (1, 1, 5, 3));
    assert_eq!((client.open(), counts.lost, counts.unexpected), (0, 0, 0));
}

#[test]
fn without_loss_all_complete() {
    for (requests, rate) in [(0, None), (1, None), (5, None), (1, Some(500.0))] {
        let profile = Profile { requests, rate, ..profile() };
        let (counts, answered, open) = run(profile, 1000, || true);
        assert_eq!(counts.opened, counts.completed + u64::from(open));
        assert_eq!(
            (counts.lost, counts.unexpected, counts.foreign, answered.foreign),
            (0, 0, 0, 0)
        );
        assert!(counts.completed > 100, "{counts:?}");
        assert!(counts.answered >= counts.completed * u64::from(requests));
        if rate.is_some() {
            assert!((495..=505).contains(&counts.opened), "{counts:?}");
        }
    }
}

#[test]
fn invalid_profiles_are_refused() {
    for (wrong, part) in [
        (Profile { clients: 0, ..profile() }, "clients is zero"),
        (Profile { ports: (60000, 6000), ..profile() }, "6000 ports from 60000 on"),
        (Profile { clients: u32::MAX, ..profile() }, "too many"),
        (Profile { request: 2000, ..profile() }, "a request of 2000 bytes"),
    ] {
        let e = Client::new(wrong, 0).unwrap_err().to_string();
        assert!(e.contains(part), "{e}");
    }
}

/// A sink with no room.
struct Full;

impl Sink for Full {
    fn frame(&mut self, _: usize) -> Option<&mut [u8]> {
        None
    }
}

#[test]
fn frames_without_room_are_lost() {
    let mut client = Client::new(profile(), 0).unwrap();
    client.poll(0, 4, &mut Full);
    assert_eq!((client.counts().no_room, client.open()), (4, 4));
    client.set_concurrent(0);
    client.poll(2_000_000, 4, &mut Full);
    assert_eq!((client.counts().lost, client.open()), (4, 0));
}

proptest! {
    #[test]
    fn losses_are_counted(loss in 0.0f64..0.5, seed: u64) {
        let profile = Profile { patience: 10_000, ..profile() };
        let mut state = seed | 1;
        let keep = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as f64 / (1u64 << 31) as f64 >= loss
        };
        let (counts, answered, open) = run(profile, 300, keep);
        prop_assert_eq!(counts.opened, counts.completed + counts.lost + u64::from(open));
        prop_assert!(answered.received <= counts.sent && counts.received <= answered.sent);
        prop_assert!(counts.accepted <= counts.opened && counts.completed <= counts.accepted);
        prop_assert!(open <= 7);
    }
}
