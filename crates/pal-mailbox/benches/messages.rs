//! Cost of one message: through a mailbox on disk, and through a socket.

#![allow(missing_docs, clippy::unwrap_used)]

use std::time::{Duration, SystemTime};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use pal_mailbox::{AgentName, Envelope, EnvelopeDraft, Inbox, Mailbox, MessageSocket};
use pal_model::{IdSource, Timestamp};

fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Timestamp::from_milliseconds(now.as_millis() as i64)
}

fn name(text: &str) -> AgentName {
    text.parse().unwrap()
}

/// A message of about 400 bytes, typical of agents.
fn message(ids: &mut IdSource, to: &str) -> Envelope {
    let text = "The parser reads the header twice; look at src/parser/header.rs, line 120 ff. ".repeat(3);
    let draft = EnvelopeDraft::text(name("lead"), name(to), "where the header is read", &text);
    draft.seal(ids.next_id(now()).into(), now()).unwrap()
}

fn on_disk(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let mut mailbox = Mailbox::open(dir.path(), &name("scout")).unwrap();
    let mut inbox = Inbox::open(dir.path(), &name("scout")).unwrap();
    let mut ids = IdSource::seeded(2);
    let mut group = criterion.benchmark_group("mailbox");
    group.throughput(Throughput::Elements(1)).sample_size(20).measurement_time(Duration::from_secs(5));
    group.bench_function("one message posted, taken and confirmed", |bencher| {
        bencher.iter_batched(
            || message(&mut ids, "scout"),
            |message| {
                mailbox.post(&message).unwrap();
                assert_eq!(inbox.take().unwrap().len(), 1);
                inbox.confirm().unwrap();
            },
            BatchSize::PerIteration,
        )
    });
    group.finish();
}

fn through_a_socket(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run/s.sock");
    let _socket = MessageSocket::listen(&path, |_| Ok(())).unwrap();
    let mut ids = IdSource::seeded(3);
    let mut group = criterion.benchmark_group("socket");
    group.throughput(Throughput::Elements(1)).sample_size(20).measurement_time(Duration::from_secs(3));
    group.bench_function("one message posted and acknowledged", |bencher| {
        bencher.iter_batched(
            || message(&mut ids, "scout"),
            |message| MessageSocket::post(&path, &message, Duration::from_secs(5)).unwrap(),
            BatchSize::PerIteration,
        )
    });
    group.finish();
}

criterion_group!(benches, on_disk, through_a_socket);
criterion_main!(benches);
