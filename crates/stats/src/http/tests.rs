use super::*;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

/// Limit of a wait, however busy the processors are.
const LIMIT: Duration = Duration::from_secs(60);

const QUICK: Patience = Patience {
    request: Duration::from_secs(1),
    answer: Duration::from_secs(1),
    idle: Duration::from_secs(60),
};

fn server(body: usize) -> HttpServer {
    let page = move |request: Request<'_>| match request.path {
        "/metrics" => Answer::text(200, &format!("{}{}", request.accept, "x".repeat(body))),
        _ => Answer::text(404, "see /metrics"),
    };
    HttpServer::start("127.0.0.1:0", "test-http", QUICK, page).unwrap()
}

fn ask(server: &HttpServer, text: &str) -> String {
    let mut client = connect(server);
    client.write_all(text.as_bytes()).unwrap();
    // The server may have closed already.
    let _ = client.shutdown(Shutdown::Write);
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

fn connect(server: &HttpServer) -> TcpStream {
    let client = TcpStream::connect(server.address()).unwrap();
    client.set_read_timeout(Some(LIMIT)).unwrap();
    client
}

#[test]
fn one_page() {
    let server = server(3);
    let answer = ask(
        &server,
        "GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\nACCEPT: text/plain\r\nConnection: close\r\n\r\n",
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain"), "{head}");
    assert!(head.contains("Content-Length: 14"), "{head}");
    assert_eq!(body, "text/plainxxx\n");
    assert!(ask(&server, "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 404 Not Found"));
    let head = ask(&server, "HEAD /metrics HTTP/1.0\r\n\r\n");
    assert!(head.contains("Content-Length: 4") && head.ends_with("\r\n\r\n"), "{head}");
    let post = ask(&server, "POST /metrics HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi");
    assert!(post.contains(" 405 ") && post.contains("Allow: GET, HEAD"), "{post}");
    assert!(ask(&server, "rubbish\r\n\r\n").contains(" 400 "));
    let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(9000));
    assert!(ask(&server, &long).contains(" 431 "));
    assert_eq!(server.counts().requests.load(Relaxed), 6);
}

#[test]
fn many_requests_over_one_connection() {
    let server = server(1);
    let mut client = connect(&server);
    for _ in 0..3 {
        client.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
        client.write_all(b"Host: a\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\nx\n") {
            let mut space = [0; 512];
            let n = client.read(&mut space).unwrap();
            assert!(n > 0);
            answer.extend_from_slice(&space[..n]);
        }
    }
    // Several at once, the last one ends it.
    let two = "GET /metrics HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nConnection: close\r\n\r\n";
    client.write_all(two.as_bytes()).unwrap();
    let mut rest = String::new();
    client.read_to_string(&mut rest).unwrap();
    assert!(rest.contains(" 200 ") && rest.contains(" 404 "), "{rest}");
}

#[test]
fn the_slow_and_the_silent_lose_their_places() {
    let server = server(32 << 20);
    // Nothing, half a request, and a client that does not read the response.
    let mut silent = connect(&server);
    let mut half = connect(&server);
    half.write_all(b"GET /metrics HTT").unwrap();
    let mut deaf = connect(&server);
    deaf.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut space = [0; 1];
    assert_eq!(silent.read(&mut space).unwrap(), 0);
    assert_eq!(half.read(&mut space).unwrap(), 0);
    let end = Instant::now() + LIMIT;
    while server.counts().dropped.load(Relaxed) < 3 {
        let dropped = server.counts().dropped.load(Relaxed);
        assert!(Instant::now() < end, "{dropped} of 3 clients were dropped");
        std::thread::yield_now();
    }
    assert!(ask(&server, "GET / HTTP/1.0\r\n\r\n").contains(" 404 "));
}

#[test]
fn there_is_always_a_place_for_the_next() {
    let server = server(1);
    let mut all: Vec<_> = (0..MAX_CONNECTIONS).map(|_| connect(&server)).collect();
    for client in &mut all {
        // Clients with an earlier response may stay for long.
        client.write_all(b"HEAD / HTTP/1.1\r\n\r\n").unwrap();
        let n = client.read(&mut [0; 512]).unwrap();
        assert!(n > 0);
    }
    assert!(ask(&server, "GET / HTTP/1.0\r\n\r\n").contains(" 404 "));
    assert_eq!(all[0].read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(server.counts().dropped.load(Relaxed), 1);
}

#[test]
fn an_address_that_is_taken() {
    let server = server(1);
    let address = server.address().to_string();
    let again = HttpServer::start(&address, "b", QUICK, |_| Answer::text(200, ""));
    assert!(again.unwrap_err().to_string().starts_with("cannot listen at 127.0.0.1:"));
    let none = HttpServer::start("nowhere", "b", QUICK, |_| Answer::text(200, ""));
    assert!(none.is_err());
}

proptest! {
    #[test]
    fn no_request_panics(input in any::<Vec<u8>>()) {
        prop_assert!(super::fuzz_http(&input) <= input.len());
    }
}
