//! The post office of Palimpsest: messages between agents, in one process, between processes, between sessions.
//!
//! Three ways, one kind of message. [`Office`] has queues in memory for agents of one process. [`Mailbox`] and
//! [`Inbox`] are a directory to which any process posts and from which one reads. [`Socket`] is what a running session
//! listens at, and [`Presence`] is how it is found. Who writes to whom, and what an agent does with what it reads, is
//! for others to decide. Invariant: a message is delivered once, and what one sender sends arrives in that order.
//!
//! ```
//! use pal_messages::{Draft, Name, Office};
//! use pal_model::{IdSource, Timestamp};
//!
//! let (lead, scout): (Name, Name) = ("lead".parse().unwrap(), "scout".parse().unwrap());
//! let office = Office::new();
//! office.register(&scout).unwrap();
//! let now = Timestamp::from_milliseconds(1_800_000_000_000);
//! let id = IdSource::seeded(1).next_id(now).into();
//! let message = Draft::text(lead, scout.clone(), "where to look", "Start in src/parser.").seal(id, now).unwrap();
//! office.send(&message).unwrap();
//! assert_eq!(office.take(&scout), [message]);
//! ```

mod header;
mod known;
mod mailbox;
mod message;
mod name;
mod office;
mod presence;
mod private;
mod socket;

pub use header::quote_headers;
pub use mailbox::{Delivery, Inbox, InboxError, MAILBOX_BYTES_MAX, Mailbox, PostError, Posted, sweep};
pub use message::{Draft, Kind, MESSAGE_BYTES_MAX, Message, MessageError, MessageId};
pub use name::{Address, Name, NameError};
pub use office::{NameTaken, Office, QUEUE_BYTES_MAX, QUEUE_MESSAGES_MAX, SendError};
pub use presence::{Announcement, Presence, Process, list};
pub use private::FolderError;
pub use socket::{DeliverError, ListenError, Socket};
