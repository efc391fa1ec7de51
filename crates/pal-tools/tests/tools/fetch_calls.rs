//! WebFetch calls.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::common::{CallResult, Place};

/// Starts a local server that answers by path until the program ends.
fn serve(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            answer(first.split(' ').nth(1).unwrap_or("/"), &mut stream);
        }
    });
    port
}

fn reply(stream: &mut TcpStream, head: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

fn open() -> Place {
    let mut place = Place::new();
    place.workspace.allows_private_addresses = true;
    place
}

fn fetch(place: &Place, url: &str) -> CallResult {
    place.call("WebFetch", &json!({"url": url, "prompt": "what it says"}))
}

#[test]
fn pages_become_text() {
    let port = serve(|path, stream| {
        match path {
        "/page" => reply(
            stream,
            "200 OK\r\ncontent-type: text/html; charset=utf-8",
            "<html><head><title>T</title><style>x{}</style></head><body><h1>Grüße</h1><script>evil()</script>\
             <p>One <b>two</b> <a href=\"/x\">three</a></p><ul><li>a</li></ul></body></html>"
                .as_bytes(),
        ),
        "/json" => reply(stream, "200 OK\r\ncontent-type: application/json", b"{\"a\": 1}"),
        "/latin" => reply(stream, "200 OK\r\ncontent-type: text/plain; charset=iso-8859-1", b"caf\xe9"),
        "/image" => reply(stream, "200 OK\r\ncontent-type: image/png", b"\x89PNG"),
        "/empty" => reply(stream, "200 OK\r\ncontent-type: text/plain", b""),
        "/long" => reply(stream, "200 OK\r\ncontent-type: text/plain", "ä".repeat(150_000).as_bytes()),
        "/huge" => reply(stream, "200 OK\r\ncontent-type: text/plain", &vec![b'x'; 11 << 20]),
        "/scripts" => {
            let page = format!("<SCRIPT>{}</Script ><p>below</p>", "var x = '<div>';\n".repeat(400_000));
            reply(stream, "200 OK\r\ncontent-type: text/html", page.as_bytes());
        }
        "/deep" => {
            let page = "<div></x>".repeat(200_000) + "bottom";
            reply(stream, "200 OK\r\ncontent-type: text/html", page.as_bytes());
        }
        _ => reply(stream, "404 Not Found\r\ncontent-type: text/plain", b"no such page"),
    }
    });
    let place = open();
    let at = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let page = fetch(&place, &at("/page")).good();
    assert!(
        page.starts_with(&format!("[{}, status 200; fetched for: what it says]\n\n", at("/page"))),
        "{page}"
    );
    assert!(page.contains("# Grüße") && page.contains("One **two** [three](/x)"), "{page}");
    assert!(!page.contains("evil") && !page.contains("x{}"), "{page}");
    assert!(fetch(&place, &at("/json")).good().ends_with("]\n\n{\"a\": 1}"));
    assert!(fetch(&place, &at("/latin")).good().ends_with("café"));
    assert!(fetch(&place, &at("/empty")).good().contains("the page has no text"));
    let long = fetch(&place, &at("/long")).good();
    assert!(long.ends_with("[The rest of the page is not shown.]") && long.chars().count() < 100_200);
    assert!(fetch(&place, &at("/deep")).good().ends_with("bottom"), "a page cannot exhaust the stack");
    assert!(fetch(&place, &at("/scripts")).good().ends_with("]\n\nbelow"), "scripts take no room");
    assert!(fetch(&place, &at("/image")).wrong().contains("image/png, which is no text"));
    assert!(fetch(&place, &at("/huge")).wrong().contains("more than 10 MB"));
    let absent = fetch(&place, &at("/absent")).wrong();
    assert!(absent.contains("status 404") && absent.contains("no such page"));
}

#[test]
fn redirects_stay_on_their_host() {
    let port = serve(|path, stream| {
        let location = match path {
            "/here" => "/there",
            "/away" => "http://example.org/page",
            "/key" => "http://user:secret@127.0.0.1/",
            "/file" => "file:///etc/passwd",
            "/round" => "/round",
            _ => return reply(stream, "200 OK\r\ncontent-type: text/plain", b"arrived"),
        };
        reply(stream, &format!("302 Found\r\nlocation: {location}"), b"");
    });
    let place = open();
    let at = |path: &str| format!("http://127.0.0.1:{port}{path}");
    assert!(fetch(&place, &at("/here")).good().ends_with("arrived"));
    let away = fetch(&place, &at("/away")).good();
    assert!(away.contains("redirected to http://example.org/page, which was not fetched"), "{away}");
    assert!(fetch(&place, &at("/key")).wrong().contains("user name or a password"));
    assert!(fetch(&place, &at("/file")).wrong().contains("Only http and https"));
    assert!(fetch(&place, &at("/round")).wrong().contains("more than 10 times"));
}

#[test]
fn private_addresses_are_refused() {
    let port = serve(|_, stream| reply(stream, "200 OK\r\ncontent-type: text/plain", b"secret"));
    let place = Place::new();
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0x7f.1:{port}/"),
        format!("http://0177.0.0.1:{port}/"),
        format!("http://127.1:{port}/"),
        format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://[::ffff:7f00:1]:{port}/"),
        format!("http://0.0.0.0:{port}/"),
        format!("http://１２７.0.0.1:{port}/"),
        String::from("http://169.254.169.254/latest/meta-data/"),
        String::from("http://10.0.0.1/"),
        String::from("http://[fd00:ec2::254]/"),
    ] {
        let said = fetch(&place, &url).wrong();
        assert!(said.contains("of this machine or of its own network"), "{url}: {said}");
    }
    for (url, expected) in [
        ("ftp://example.org/", "Only http and https"),
        ("file:///etc/passwd", "Only http and https"),
        ("http://user@example.org/", "user name or a password"),
        ("http://127.0.0.1@example.org/", "user name or a password"),
        ("example.org", "no address of a page"),
    ] {
        assert!(fetch(&place, url).wrong().contains(expected), "{url}");
    }
}

#[test]
fn a_fetch_that_hangs_can_be_cancelled() {
    let port = serve(|_, stream| {
        let held = stream.try_clone().unwrap();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(60));
            drop(held);
        });
    });
    let place = open();
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(200));
            place.cancel.cancel();
        });
        let said = fetch(&place, &format!("http://127.0.0.1:{port}/")).wrong();
        assert!(said.contains("cancelled"), "{said}");
    });
    assert!(began.elapsed() < Duration::from_secs(10));
}
