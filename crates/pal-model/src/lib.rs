//! The vocabulary of Palimpsest: ids, messages, blocks, usage, entries, decisions, tokens and model cards.
//!
//! Everything may use this crate and it uses nothing of ours. It is pure: no files, no clock, no randomness.
//! Its invariant: whatever was read is kept as raw JSON text beside the typed form, and it is the raw form that
//! is written back, so unknown kinds, blocks and fields survive a round trip unchanged.
//!
//! ```
//! use pal_model::{Body, Entry, Text};
//! let line = r#"{"v":1,"id":"01890000-0000-7000-8000-000000000001","parent":null,"at":"2026-11-15T09:00:00.000Z","kind":"user","origin":"person","content":"fix the test"}"#;
//! let entry = Entry::parse(Text::from(line)).unwrap();
//! let Body::User(user) = &entry.body else { panic!("not a user entry") };
//! assert_eq!(user.content.blocks().len(), 1);
//! assert_eq!(entry.line.as_str(), line);
//! ```

mod block;
mod boundary;
mod cache_break;
mod card;
mod decision;
mod draft;
mod entry;
mod front_matter;
mod guard;
mod id;
mod json;
mod nearest;
mod parts;
mod pings;
mod repair;
mod rhythm;
mod said;
mod text;
mod time;
mod tool;
mod usage;

pub use block::{Block, BlockType, Content, raw_list};
pub use boundary::{
    Audit, Boundary, Carried, CarriedWords, Placement, Preserved, ReadFile, Reference, Snapshot, Totals,
};
pub use cache_break::{BreakCause, CacheBreak, Change};
pub use card::{
    Caching, Capabilities, Card, CardError, Cards, Cliff, Found, Prices, ThinkingKinds, TokenGeneration,
};
pub use decision::{Cost, Decision, DecisionKind};
pub use draft::Draft;
pub use entry::{Body, Entry, EntryError, FORMAT_VERSION, Kind};
pub use front_matter::front_matter;
pub use guard::{
    EARLIER_RESULT, GUARDED, REMINDER, defuse, defuse_json, is_unseen, one_line, reminded, reminder, restore,
    without_nested,
};
pub use id::{EntryId, IdError, IdSource, ResponseId, ToolUseId};
pub use json::{
    Field, JsonError, array_items, escape_into, fields, has_lone_surrogate, member, member_string,
    mend_surrogates, unescape,
};
pub use nearest::{meant, nearest};
pub use parts::{Part, Parts};
pub use pings::Pings;
pub use repair::{DamagedRange, Repair, RepairLink};
pub use rhythm::{PAUSES, Rhythm};
pub use said::{
    Aftermath, Assistant, Attachment, FileSeen, LayerReport, Origin, Prefix, PrefixNotes, RequestSent,
    ResponseGot, Role, SectionNote, Session, Source, SourceNote, SystemNote, User,
};
pub use text::Text;
pub use time::{TimeError, Timestamp};
pub use tool::ToolKind;
pub use usage::{CacheCreation, Iteration, Usage};
