//! Who keeps one server: connects, lists, watches, and brings it back when it is called after it died.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::Peer;
use tokio::sync::{Notify, watch};

use crate::config::ServerConfig;
use crate::connection::{Connection, Listener, Making};
use crate::known::{Known, Lists, State};
use crate::listing;
use crate::process::Surroundings;
use crate::settings::Settings;
use crate::words::{clean, one_line};

/// The pause before a dead server is started again.
const PAUSE: Duration = Duration::from_millis(500);
/// How long list changes are gathered, and the least time between two looks at a list.
const GATHERING: Duration = Duration::from_millis(200);
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Most lines of changes that are kept for whoever asks.
const CHANGES_MOST: usize = 100;
/// Most bytes of what a server says about the use of its tools.
const INSTRUCTIONS_MOST: usize = 4 * 1024;
/// Most bytes of a reason.
const WHY_MOST: usize = 2 * 1024;

/// What all servers share.
pub(crate) struct House {
    pub(crate) settings: Settings,
    pub(crate) changes: Mutex<Vec<String>>,
    /// Whether all shall end.
    pub(crate) stopping: watch::Sender<bool>,
}

impl House {
    fn tell(&self, line: String) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.len() < CHANGES_MOST {
            changes.push(line);
        }
    }

    async fn stopped(&self) {
        // It fails where the sender is gone, which is the end as well.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }
}

/// One server.
pub(crate) struct Server {
    pub(crate) config: ServerConfig,
    pub(crate) known: watch::Sender<Known>,
    /// Somebody wants it back.
    pub(crate) wanted: Notify,
    /// Whether it has answered a call since it came up.
    pub(crate) has_served: AtomicBool,
}

impl Server {
    pub(crate) fn new(config: ServerConfig) -> Server {
        Server {
            config,
            known: watch::Sender::new(Known::starting()),
            wanted: Notify::new(),
            has_served: AtomicBool::new(false),
        }
    }

    /// The line to it, once it is there; a dead one is asked to come back.
    pub(crate) async fn peer(&self) -> Result<Peer<RoleClient>, String> {
        let mut known = self.known.subscribe();
        loop {
            {
                let now = known.borrow_and_update();
                match (&now.state, &now.peer) {
                    (State::Ready { .. }, Some(peer)) => return Ok(peer.clone()),
                    (State::Gone(_), _) if now.comes_back => self.wanted.notify_one(),
                    (State::Failed(why) | State::Gone(why), _) => {
                        return Err(format!("the server {} is not there: {why}", self.config.name));
                    }
                    _ => {}
                }
            }
            if known.changed().await.is_err() {
                return Err(format!("the server {} is not there any more", self.config.name));
            }
        }
    }

    /// Why it is gone, if it is within a moment.
    pub(crate) async fn why_gone(&self, within: Duration) -> Option<String> {
        let mut known = self.known.subscribe();
        let gone = known.wait_for(|known| matches!(known.state, State::Gone(_)));
        match &tokio::time::timeout(within, gone).await.ok()?.ok()?.state {
            State::Gone(why) => Some(why.clone()),
            _ => None,
        }
    }
}

/// Keeps a server until all shall end or it does not come back.
pub(crate) async fn keep(server: Arc<Server>, house: Arc<House>) {
    let mut is_second = false;
    loop {
        let changed = Arc::new(Notify::new());
        let (connection, lists) = match begin(&server, &house, &changed).await {
            Some(Ok(begun)) => begun,
            Some(Err(why)) => return give_up(&server, &house, &why, is_second),
            None => return,
        };
        let peer = connection.peer.clone();
        server.known.send_modify(|known| {
            known.state = state_of(&lists);
            known.lists = Arc::new(lists);
            known.instructions = connection.instructions().map(|words| clean(&words, INSTRUCTIONS_MOST));
            known.peer = Some(peer.clone());
            known.comes_back = false;
        });
        let why = tokio::select! {
            why = connection.watch(house.stopped()) => why,
            () = follow(&server, &house, &peer, &changed) => None,
        };
        let Some(why) = why else { return };
        // One that dies whenever it is called is not started for ever.
        let comes_back = server.has_served.swap(false, Ordering::Relaxed) || !is_second;
        died(&server, &house, &why, comes_back);
        if !comes_back {
            return;
        }
        tokio::select! {
            () = server.wanted.notified() => {}
            () = house.stopped() => return,
        }
        server.known.send_modify(|known| known.state = State::Starting);
        tokio::time::sleep(PAUSE).await;
        is_second = true;
    }
}

/// Connects and reads the lists; none if all shall end.
async fn begin(
    server: &Server,
    house: &House,
    changed: &Arc<Notify>,
) -> Option<Result<(Connection, Lists), String>> {
    let settings = &house.settings;
    let limit = server.config.start_limit.unwrap_or(settings.start_limit);
    let making = Making {
        reach: &server.config.reach,
        around: Surroundings { variables: &settings.variables, directory: &settings.directory },
        allows_plain_http: settings.allows_plain_http,
        listener: Listener { changed: Arc::clone(changed), version: settings.version.clone() },
    };
    let connecting = async {
        let connection = making.connect(limit).await?;
        match listing::read(&server.config.name, &connection.peer, limit).await {
            Ok(lists) => Ok((connection, lists)),
            Err(why) => {
                // What it died of says more than that it did not answer.
                let died = connection.watch(std::future::ready(())).await;
                Err(died.unwrap_or(why))
            }
        }
    };
    tokio::select! {
        begun = connecting => Some(begun),
        () = house.stopped() => None,
    }
}

/// Reads the lists again whenever the server says that they have changed. What cannot be read leaves them as they were.
async fn follow(server: &Server, house: &House, peer: &Peer<RoleClient>, changed: &Notify) {
    loop {
        changed.notified().await;
        tokio::time::sleep(GATHERING).await;
        let limit = server.config.start_limit.unwrap_or(house.settings.start_limit);
        if let Ok(lists) = listing::read(&server.config.name, peer, limit).await {
            let before = Arc::clone(&server.known.borrow().lists);
            if let Some(line) = told(&server.config.name, &before, &lists) {
                house.tell(line);
            }
            server.known.send_modify(|known| {
                known.state = state_of(&lists);
                known.lists = Arc::new(lists);
            });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// What changed in a list of tools.
fn told(server: &str, before: &Lists, after: &Lists) -> Option<String> {
    let has = |lists: &Lists, name: &str| lists.tools.iter().any(|tool| tool.name == name);
    let came = after.tools.iter().filter(|tool| !has(before, &tool.name)).count();
    let went = before.tools.iter().filter(|tool| !has(after, &tool.name)).count();
    (came + went > 0).then(|| format!("the MCP server {server} changed its tools: {came} came, {went} went"))
}

fn state_of(lists: &Lists) -> State {
    State::Ready { tools: lists.tools.len(), resources: lists.resources.len(), prompts: lists.prompts.len() }
}

fn give_up(server: &Server, house: &House, why: &str, is_second: bool) {
    let name = &server.config.name;
    let why = clean(why, WHY_MOST);
    house.tell(match is_second {
        true => format!("the MCP server {name} did not come back: {}", one_line(&why, WHY_MOST)),
        false => format!("the MCP server {name} did not come up: {}", one_line(&why, WHY_MOST)),
    });
    server.known.send_modify(|known| {
        known.state = if is_second { State::Gone(why) } else { State::Failed(why) };
        known.peer = None;
        known.comes_back = false;
    });
}

fn died(server: &Server, house: &House, why: &str, comes_back: bool) {
    let why = clean(why, WHY_MOST);
    let next = if comes_back { "it is started again when it is called" } else { "it is not started again" };
    let name = &server.config.name;
    house.tell(format!("the MCP server {name} is gone: {}; {next}", one_line(&why, WHY_MOST)));
    server.known.send_modify(|known| {
        known.state = State::Gone(why);
        known.peer = None;
        known.comes_back = comes_back;
    });
}
