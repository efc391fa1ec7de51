//! Hooks: commands of the user that run at events of a session, and what they say.
