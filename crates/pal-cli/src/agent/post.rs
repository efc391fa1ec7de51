//! A running session can be found and written to: `pal agents` lists it, `pal send` reaches it.

use std::path::{Path, PathBuf};

use pal_agent::{Agent, Handle};
use pal_messages::{Announcement, Message, Name, Presence, Process, Socket};
use pal_model::Content;

use crate::stored::now;

/// Where running sessions are listed, in our home.
pub(crate) fn directory(home: &Path) -> PathBuf {
    home.join("run")
}

/// A session that others can find, until this is dropped.
pub(crate) struct Post {
    _announcement: Announcement,
    _socket: Socket,
}

impl Post {
    /// Lets others find a session. One that cannot be found works as well: what fails here is only logged.
    pub(crate) fn open(home: &Path, agent: &Agent<'_>, project: &Path) -> Option<Post> {
        let opened = open(home, agent.id(), agent.handle(), project);
        opened.inspect_err(|why| tracing::warn!(why, "nobody can write to this session")).ok()
    }
}

fn open(home: &Path, session: &str, handle: Handle, project: &Path) -> Result<Post, String> {
    let directory = directory(home);
    let name = name(session, project)?;
    // Editors have several sessions in one process.
    let end = session.get(session.len().saturating_sub(12)..).unwrap_or_default();
    let socket = directory.join(format!("{}-{end}.sock", std::process::id()));
    let receive = move |message: Message| {
        handle.steer(Content::of_text(&told(&message)));
        Ok(())
    };
    let listening = Socket::listen(&socket, receive).map_err(|error| error.to_string())?;
    let presence = Presence {
        name,
        session: session.parse().map_err(|error: pal_messages::NameError| error.to_string())?,
        process: Process::current(),
        socket: Some(socket),
        started: now(),
        doing: project.display().to_string(),
    };
    let announcement = presence.announce(&directory).map_err(|error| error.to_string())?;
    Ok(Post { _announcement: announcement, _socket: listening })
}

/// What a session is called: after the folder that it works in, and the end of its id.
fn name(session: &str, project: &Path) -> Result<Name, String> {
    let folder = project.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let letters = folder.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' });
    let folder: String = letters.take(30).collect();
    let end = session.get(session.len().saturating_sub(4)..).unwrap_or_default();
    format!("{}-{end}", folder.trim_matches('-'))
        .trim_start_matches('-')
        .parse()
        .map_err(|error: pal_messages::NameError| error.to_string())
}

/// What the model reads of a message: it is told who speaks, because it is not its user.
fn told(message: &Message) -> String {
    format!(
        "[A message from `{}`, who is not the user of this session but runs on the same machine.]\n{}",
        message.from, message.text
    )
}
