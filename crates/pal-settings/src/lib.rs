//! Settings from all their places, resolved once to one value; each knows where it came from.
//!
//! [`KEYS`] is the one table of settings: files, variables and flags are read by it, `pal config` prints it and
//! `docs/settings.md` repeats it. [`Settings::read`] takes everything as [`Sources`] and looks at nothing else, so there is
//! no global configuration. A file that came with a repository cannot widen what the program may do unless the user
//! trusts the repository. [`Switches`] are the kill switches: settings, variables, and a file that is looked at again.
//!
//! ```
//! use pal_settings::{Place, Settings, Sources};
//! let given = Some("git = false\n[permissions]\ndeny = [\"Read(.env)\"]".to_owned());
//! let settings = Settings::read(Sources { given, ..Sources::default() }).unwrap();
//! assert!(!settings.git.is_on);
//! assert_eq!(settings.permissions.deny[0].value, "Read(.env)");
//! assert_eq!(settings.permissions.deny[0].origin.place, Place::Given);
//! ```

mod allowed;
mod document;
mod error;
mod file;
mod key;
mod kind;
mod place;
mod resolve;
mod rule;
mod servers;
mod settings;
mod switches;
mod telling;
mod trust;
mod values;

pub use allowed::{allow, allow_and_tell};
pub use error::SettingsError;
pub use key::{KEYS, Key};
pub use kind::Kind;
pub use place::{Flag, Origin, Place, Resolved, Sources};
pub use resolve::Entry;
pub use servers::{Project, Servers};
pub use settings::{
    AnswerLimits, Endpoints, EstimatorName, Git, Instructions, NoteSettings, NotesBy, OutputLimits,
    Permissions, PolicyName, Remembering, Sandbox, SandboxWhen, Secrets, Settings, Spending,
};
pub use switches::{Switch, Switches};
pub use telling::{Logging, Telemetry};
pub use trust::{ProjectTrust, TRUSTED_FILES, Trust, record_trust};
