//! Messages inside one process.

use std::time::{Duration, Instant};

use pal_messages::{Office, QUEUE_MESSAGES_MAX, SendError};

use super::{message, name, texts};

fn office(names: &[&str]) -> Office {
    let office = Office::new();
    names.iter().for_each(|each| office.register(&name(each)).unwrap());
    office
}

#[test]
fn what_is_sent_waits_in_order_and_is_taken_once() {
    let office = office(&["lead", "scout"]);
    for text in ["one", "two", "three"] {
        assert_eq!(office.send(&message("lead", "scout", text)).unwrap(), 1);
    }
    assert_eq!(office.waiting(&name("scout")), 3);
    assert_eq!(texts(&office.take(&name("scout"))), ["one", "two", "three"]);
    assert!(office.take(&name("scout")).is_empty());
    assert!(office.take(&name("lead")).is_empty());
}

#[test]
fn a_broadcast_reaches_all_but_the_sender_or_nobody() {
    let office = office(&["a", "b", "c"]);
    assert_eq!(office.send(&message("a", "*", "hello")).unwrap(), 2);
    assert_eq!(office.send(&message("user", "*", "from outside")).unwrap(), 3);
    assert_eq!(texts(&office.take(&name("a"))), ["from outside"]);
    assert_eq!(texts(&office.take(&name("b"))), ["hello", "from outside"]);
    office.take(&name("c"));
    for _ in 0..QUEUE_MESSAGES_MAX {
        office.send(&message("a", "c", "more")).unwrap();
    }
    let full = office.send(&message("a", "*", "too much")).unwrap_err();
    assert!(matches!(&full, SendError::Full { to, .. } if *to == name("c")), "{full}");
    assert_eq!(office.waiting(&name("b")), 0, "nobody got it");
    assert_eq!(office.leave(&name("c")).len(), QUEUE_MESSAGES_MAX, "what nobody took is given back");
    office.leave(&name("b"));
    assert!(matches!(office.send(&message("a", "*", "anyone?")), Err(SendError::Alone)));
}

#[test]
fn an_unknown_name_is_told_with_who_is_there() {
    let office = office(&["lead", "scout", "tester"]);
    let unknown = office.send(&message("lead", "scuot", "hi")).unwrap_err().to_string();
    assert_eq!(
        unknown, "there is no agent `scuot`; did you mean `scout`? (here are: scout, tester)",
        "the sender itself is not offered"
    );
    assert!(office.register(&name("scout")).unwrap_err().to_string().contains("choose another name"));
    let elsewhere = office.send(&message("lead", "uds:/run/x.sock", "hi")).unwrap_err();
    assert!(matches!(elsewhere, SendError::Elsewhere(_)));
}

#[test]
fn one_who_waits_is_woken_by_a_message_and_by_leaving() {
    let office = office(&["lead", "scout"]);
    let scout = name("scout");
    assert!(!office.wait(&scout, Duration::from_millis(20)), "nothing came");
    for end in ["message", "leaving"] {
        let begun = Instant::now();
        let woken = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| office.wait(&scout, Duration::from_secs(60)));
            match end {
                "message" => drop(office.send(&message("lead", "scout", "wake up")).unwrap()),
                _ => drop(office.leave(&scout)),
            }
            waiting.join().unwrap()
        });
        assert_eq!(woken, end == "message");
        assert!(begun.elapsed() < Duration::from_secs(30));
        office.take(&scout);
    }
}

#[test]
fn many_senders_at_once_lose_nothing_and_keep_their_order() {
    let office = office(&["reader"]);
    let reader = name("reader");
    let mut got: Vec<(String, u32)> = Vec::new();
    std::thread::scope(|scope| {
        for sender in ["a", "b", "c", "d"] {
            let office = office.clone();
            scope.spawn(move || {
                for number in 0..1000 {
                    office.send(&message(sender, "reader", &number.to_string())).unwrap();
                }
            });
        }
        while got.len() < 4000 {
            assert!(office.wait(&reader, Duration::from_secs(60)));
            got.extend(
                office.take(&reader).iter().map(|each| (each.from.to_string(), each.text.parse().unwrap())),
            );
        }
    });
    for sender in ["a", "b", "c", "d"] {
        let numbers = got.iter().filter(|(from, _)| from == sender).map(|(_, number)| *number);
        assert!(numbers.eq(0..1000), "of {sender}");
    }
}
