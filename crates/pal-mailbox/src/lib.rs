//! Messages between agents: mailboxes on disk, sockets of running sessions, and their presence files.
//!
//! [`Mailbox`] and [`Inbox`] are the two ends of a directory that any process posts to and one process reads.
//! [`MessageSocket`] receives messages for a running session, and [`Presence`] is how others find it. Routing and the
//! handling of messages are up to the caller. Invariant: a message is delivered once, and the messages of one sender
//! arrive in the order in which they were sent.
//!
//! ```
//! use pal_mailbox::{AgentName, EnvelopeDraft, Inbox, Mailbox};
//! use pal_model::{IdSource, Timestamp};
//!
//! let directory = tempfile::tempdir().unwrap();
//! let (lead, scout): (AgentName, AgentName) = ("lead".parse().unwrap(), "scout".parse().unwrap());
//! let now = Timestamp::from_milliseconds(1_800_000_000_000);
//! let id = IdSource::seeded(1).next_id(now).into();
//! let message = EnvelopeDraft::text(lead, scout.clone(), "where to look", "Start in src/parser.").seal(id, now).unwrap();
//! Mailbox::open(directory.path(), &scout).unwrap().post(&message).unwrap();
//! let mut inbox = Inbox::open(directory.path(), &scout).unwrap();
//! assert_eq!(inbox.take().unwrap()[0].message, message);
//! inbox.confirm().unwrap();
//! ```

mod address;
mod envelope;
mod header_quoting;
mod known_ids;
mod mailbox;
mod presence;
mod private_dir;
mod socket;

pub use address::{Address, AgentName, AgentNameError};
pub use envelope::{Envelope, EnvelopeDraft, EnvelopeError, MESSAGE_BYTES_MAX, MessageId, MessageKind};
pub use header_quoting::quote_headers;
pub use mailbox::{Delivery, Inbox, InboxError, Mailbox, PostError, PostOutcome, sweep_mailboxes};
pub use presence::{Presence, PresenceFile, ProcessIdentity, list_presences};
pub use private_dir::PrivateDirError;
pub use socket::{DeliverError, ListenError, MessageSocket};
