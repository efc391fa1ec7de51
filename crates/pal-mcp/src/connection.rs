//! One connection to a server: made, and ended.

use std::collections::HashMap;
use std::sync::{Arc, Once};
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, Peer, QuitReason, RunningService,
    RunningServiceCancellationToken, serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::Notify;

use crate::config::Reach;
use crate::process::{Process, Surroundings};
use crate::words::clean;

/// How many hops within one host a request follows.
const HOPS_MOST: usize = 5;
/// How long a connection may take to be closed.
const CLOSING: Duration = Duration::from_secs(1);
/// Most bytes of what a server says about a failure.
const WHY_MOST: usize = 1_000;

/// Hears that lists have changed, and declines everything that a server asks of us.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    pub(crate) changed: Arc<Notify>,
    pub(crate) version: String,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("palimpsest", &*self.version))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// How the connection is made.
pub(crate) struct Making<'a> {
    pub(crate) reach: &'a Reach,
    pub(crate) around: Surroundings<'a>,
    pub(crate) allows_plain_http: bool,
    pub(crate) listener: Listener,
}

/// A server that answers.
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    service: RunningService<RoleClient, Listener>,
    stopping: RunningServiceCancellationToken,
    process: Option<Process>,
}

impl Making<'_> {
    /// Connects. Servers of the newest revision know no handshake, and say so when they are offered one.
    pub(crate) async fn connect(self, limit: Duration) -> Result<Connection, String> {
        let until = tokio::time::Instant::now() + limit;
        match self.attempt(ClientLifecycleMode::Initialize, until).await {
            Err(Refused::NoHandshake(why)) => {
                let discover =
                    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
                let second = self.attempt(discover, until).await;
                second.map_err(|refused| format!("{why}; {}", refused.why()))
            }
            other => other.map_err(Refused::why),
        }
    }

    async fn attempt(
        &self,
        lifecycle: ClientLifecycleMode,
        until: tokio::time::Instant,
    ) -> Result<Connection, Refused> {
        match self.reach {
            Reach::Program { .. } => {
                let (mut process, pipes) =
                    Process::start(self.reach, self.around).map_err(Refused::ForGood)?;
                let transport = AsyncRwTransport::new_client(pipes.output, pipes.input);
                let serving = serve_client_with_lifecycle(self.listener.clone(), transport, lifecycle);
                match tokio::time::timeout_at(until, serving).await {
                    Ok(Ok(service)) => Ok(Connection::new(service, Some(process))),
                    Ok(Err(error)) => {
                        let ending = process.ending().await;
                        Err(Refused::new(&error, ending.as_deref(), &process.heard()))
                    }
                    Err(_) => {
                        Err(Refused::ForGood(with_heard("it did not answer in time", &process.heard())))
                    }
                }
            }
            Reach::Address { .. } => {
                let transport = self.transport().map_err(Refused::ForGood)?;
                let serving = serve_client_with_lifecycle(self.listener.clone(), transport, lifecycle);
                match tokio::time::timeout_at(until, serving).await {
                    Ok(Ok(service)) => Ok(Connection::new(service, None)),
                    Ok(Err(error)) => Err(Refused::new(&error, self.hint(), "")),
                    Err(_) => Err(Refused::ForGood(String::from("it did not answer in time"))),
                }
            }
        }
    }

    /// What may be the cause of a failure.
    fn hint(&self) -> Option<&'static str> {
        match self.reach {
            Reach::Address { is_event_stream: true, .. } => Some(
                "the older way over an event stream (`sse`) is not spoken; use the server's `http` address",
            ),
            _ => None,
        }
    }

    fn transport(&self) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
        let Reach::Address { url, headers, .. } = self.reach else {
            return Err(String::from("it has no address"));
        };
        check_plain(url, self.allows_plain_http)?;
        let mut custom = HashMap::new();
        for (name, value) in headers {
            let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
            let Some((header, mut value)) = parsed else {
                return Err(format!("the header {name} is none that can be sent"));
            };
            value.set_sensitive(true);
            custom.insert(header, value);
        }
        let config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(custom);
        Ok(StreamableHttpClientTransport::with_client(client()?, config))
    }
}

impl Connection {
    fn new(service: RunningService<RoleClient, Listener>, process: Option<Process>) -> Connection {
        Connection { peer: service.peer().clone(), stopping: service.cancellation_token(), service, process }
    }

    /// What the server says about the use of its tools.
    pub(crate) fn instructions(&self) -> Option<String> {
        self.peer.peer_info()?.instructions.clone().filter(|words| !words.trim().is_empty())
    }

    /// Waits until the server is gone, or until `stop` says so; why it is gone, if nobody wanted it.
    pub(crate) async fn watch(self, stop: impl Future<Output = ()>) -> Option<String> {
        let Connection { peer: _, service, stopping, mut process } = self;
        let mut waiting = Box::pin(service.waiting());
        let gone = tokio::select! {
            quit = &mut waiting => Some(quit),
            () = stop => None,
        };
        let why = match gone {
            None => {
                stopping.cancel();
                let _ = tokio::time::timeout(CLOSING, waiting).await;
                None
            }
            Some(quit) => {
                let ending = match &mut process {
                    Some(process) => process.ending().await,
                    None => None,
                };
                let broke = match quit {
                    Ok(QuitReason::JoinError(_)) | Err(_) => "the connection broke down",
                    Ok(_) => "it closed the connection",
                };
                let heard = process.as_ref().map(Process::heard).unwrap_or_default();
                Some(with_heard(ending.as_deref().unwrap_or(broke), &heard))
            }
        };
        if let Some(process) = process {
            process.end().await;
        }
        why
    }
}

/// Why there is no connection.
enum Refused {
    /// The server does not know the handshake.
    NoHandshake(String),
    /// Anything else.
    ForGood(String),
}

impl Refused {
    fn new(error: &ClientInitializeError, hint: Option<&str>, heard: &str) -> Refused {
        let mut why = match error {
            ClientInitializeError::JsonRpcError(error) => format!("it refused to begin: {}", error.message),
            // These hold whole messages.
            ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
                String::from("its first answer is none of the protocol")
            }
            ClientInitializeError::ConnectionClosed(_) => {
                String::from("it closed the connection before it began")
            }
            // Its own words name types of the program.
            ClientInitializeError::TransportError { error, .. } => {
                format!("it could not be spoken to ({})", error.error)
            }
            other => other.to_string(),
        };
        why = clean(&why, WHY_MOST);
        if let Some(hint) = hint {
            why = format!("{why}; {hint}");
        }
        let why = with_heard(&why, heard);
        match error {
            ClientInitializeError::JsonRpcError(_) => Refused::NoHandshake(why),
            _ => Refused::ForGood(why),
        }
    }

    fn why(self) -> String {
        match self {
            Refused::NoHandshake(why) | Refused::ForGood(why) => why,
        }
    }
}

fn with_heard(why: &str, heard: &str) -> String {
    match heard.trim() {
        "" => why.to_owned(),
        heard => format!("{why}; it said last: {heard}"),
    }
}

/// Other machines are spoken to in the clear only if that was allowed.
fn check_plain(url: &str, is_allowed: bool) -> Result<(), String> {
    let url = reqwest::Url::parse(url).map_err(|error| error.to_string())?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse().is_ok_and(|at: std::net::IpAddr| at.is_loopback());
    match url.scheme() == "https" || is_here || is_allowed {
        true => Ok(()),
        false => {
            Err(format!("{host} would be spoken to without encryption; use https, or set allow_plain_http"))
        }
    }
}

/// A client that takes nobody's headers to another host.
fn client() -> Result<reqwest::Client, String> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // It fails where one is there already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let same_host = Policy::custom(|attempt| {
        let first = attempt.previous().first().map(|url| (url.scheme(), url.host_str(), url.port()));
        let next = (attempt.url().scheme(), attempt.url().host_str(), attempt.url().port());
        let is_same = first == Some(next) && attempt.previous().len() <= HOPS_MOST;
        if is_same { attempt.follow() } else { attempt.stop() }
    });
    let client = reqwest::Client::builder().redirect(same_host).connect_timeout(Duration::from_secs(10));
    client.build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_not_spoken_to_in_the_clear() {
        for (url, is_fine) in [
            ("https://tools.example.com/mcp", true),
            ("http://localhost:8000/mcp", true),
            ("http://127.0.0.1/mcp", true),
            ("http://[::1]:9/mcp", true),
            ("http://tools.example.com/mcp", false),
            ("http://localhost.example.com/mcp", false),
        ] {
            assert_eq!(check_plain(url, false).is_ok(), is_fine, "{url}");
            assert!(check_plain(url, true).is_ok());
        }
    }
}
