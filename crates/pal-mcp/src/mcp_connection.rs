//! One connection to a server.

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

use crate::clean_text::clean;
use crate::mcp_host::{McpHost, open_host_pipe};
use crate::server_config::ServerTransport;
use crate::server_process::{ProcessEnvironment, ServerProcess};

/// Maximum redirects within one host.
const REDIRECTS_MAX: usize = 5;
/// Maximum time to close a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum bytes of a server's error text.
const REASON_BYTES_MAX: usize = 1_000;

/// Reason why a server of the type `sdk` cannot start.
const NO_HOST: &str =
    "servers of the type `sdk` run inside a program that drives pal through an Agent SDK, and none does";

/// Receives list changes and declines all requests of the server.
#[derive(Clone, Debug)]
pub(crate) struct ListChangeListener {
    pub(crate) changed: Arc<Notify>,
    pub(crate) version: String,
}

impl ClientHandler for ListChangeListener {
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

/// Parameters of a connection.
pub(crate) struct ConnectionSetup<'a> {
    pub(crate) server_transport: &'a ServerTransport,
    pub(crate) environment: ProcessEnvironment<'a>,
    pub(crate) allows_plain_http: bool,
    pub(crate) listener: ListChangeListener,
    /// Name of the server.
    pub(crate) name: &'a str,
    pub(crate) host: Option<&'a Arc<dyn McpHost>>,
}

/// A server that answers.
pub(crate) struct McpConnection {
    pub(crate) peer: Peer<RoleClient>,
    service: RunningService<RoleClient, ListChangeListener>,
    stopping: RunningServiceCancellationToken,
    process: Option<ServerProcess>,
}

impl ConnectionSetup<'_> {
    /// Connects. Servers of the newest revision have no handshake and say so when offered one.
    pub(crate) async fn connect(self, limit: Duration) -> Result<McpConnection, String> {
        let until = tokio::time::Instant::now() + limit;
        match self.attempt(ClientLifecycleMode::Initialize, until).await {
            Err(ConnectError::NoHandshake(why)) => {
                let discover =
                    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
                let second = self.attempt(discover, until).await;
                second.map_err(|refused| format!("{why}; {}", refused.why()))
            }
            other => other.map_err(ConnectError::why),
        }
    }

    async fn attempt(
        &self,
        lifecycle: ClientLifecycleMode,
        until: tokio::time::Instant,
    ) -> Result<McpConnection, ConnectError> {
        match self.server_transport {
            ServerTransport::Stdio { .. } => {
                let (mut process, pipes) = ServerProcess::start(self.server_transport, self.environment)
                    .map_err(ConnectError::ForGood)?;
                let transport = AsyncRwTransport::new_client(pipes.output, pipes.input);
                let serving = serve_client_with_lifecycle(self.listener.clone(), transport, lifecycle);
                match tokio::time::timeout_at(until, serving).await {
                    Ok(Ok(service)) => Ok(McpConnection::new(service, Some(process))),
                    Ok(Err(error)) => {
                        let ending = process.ending().await;
                        Err(ConnectError::new(&error, ending.as_deref(), &process.stderr()))
                    }
                    Err(_) => Err(ConnectError::ForGood(with_stderr(
                        "it did not answer in time",
                        &process.stderr(),
                    ))),
                }
            }
            ServerTransport::Http { .. } => {
                let transport = self.transport().map_err(ConnectError::ForGood)?;
                let serving = serve_client_with_lifecycle(self.listener.clone(), transport, lifecycle);
                match tokio::time::timeout_at(until, serving).await {
                    Ok(Ok(service)) => Ok(McpConnection::new(service, None)),
                    Ok(Err(error)) => Err(ConnectError::new(&error, self.hint(), "")),
                    Err(_) => Err(ConnectError::ForGood(String::from("it did not answer in time"))),
                }
            }
            ServerTransport::Host => {
                let host = self.host.ok_or_else(|| ConnectError::ForGood(String::from(NO_HOST)))?;
                let (output, input) = tokio::io::split(open_host_pipe(host, self.name));
                let transport = AsyncRwTransport::new_client(output, input);
                let serving = serve_client_with_lifecycle(self.listener.clone(), transport, lifecycle);
                match tokio::time::timeout_at(until, serving).await {
                    Ok(Ok(service)) => Ok(McpConnection::new(service, None)),
                    Ok(Err(error)) => Err(ConnectError::new(&error, None, "")),
                    Err(_) => Err(ConnectError::ForGood(String::from("it did not answer in time"))),
                }
            }
        }
    }

    /// Possible cause of a failure.
    fn hint(&self) -> Option<&'static str> {
        match self.server_transport {
            ServerTransport::Http { is_event_stream: true, .. } => {
                Some("the older `sse` protocol is not supported; use the server's `http` address")
            }
            _ => None,
        }
    }

    fn transport(&self) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
        let ServerTransport::Http { url, headers, .. } = self.server_transport else {
            return Err(String::from("it has no address"));
        };
        check_encryption(url, self.allows_plain_http)?;
        let mut custom = HashMap::new();
        for (name, value) in headers {
            let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value).ok());
            let Some((header, mut value)) = parsed else {
                return Err(format!("the header {name} is invalid"));
            };
            value.set_sensitive(true);
            custom.insert(header, value);
        }
        let config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(custom);
        Ok(StreamableHttpClientTransport::with_client(client()?, config))
    }
}

impl McpConnection {
    fn new(
        service: RunningService<RoleClient, ListChangeListener>,
        process: Option<ServerProcess>,
    ) -> McpConnection {
        McpConnection {
            peer: service.peer().clone(),
            stopping: service.cancellation_token(),
            service,
            process,
        }
    }

    /// Instructions of the server.
    pub(crate) fn instructions(&self) -> Option<String> {
        self.peer.peer_info()?.instructions.clone().filter(|words| !words.trim().is_empty())
    }

    /// Waits until the server is gone or `stop` completes; returns the reason if it was unexpected.
    pub(crate) async fn watch(self, stop: impl Future<Output = ()>) -> Option<String> {
        let McpConnection { peer: _, service, stopping, mut process } = self;
        let mut waiting = Box::pin(service.waiting());
        let gone = tokio::select! {
            quit = &mut waiting => Some(quit),
            () = stop => None,
        };
        let why = match gone {
            None => {
                stopping.cancel();
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, waiting).await;
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
                let stderr = process.as_ref().map(ServerProcess::stderr).unwrap_or_default();
                Some(with_stderr(ending.as_deref().unwrap_or(broke), &stderr))
            }
        };
        if let Some(process) = process {
            process.end().await;
        }
        why
    }
}

/// Reason why there is no connection.
enum ConnectError {
    /// The server does not know the handshake.
    NoHandshake(String),
    /// Any other failure.
    ForGood(String),
}

impl ConnectError {
    fn new(error: &ClientInitializeError, hint: Option<&str>, stderr: &str) -> ConnectError {
        let mut why = match error {
            ClientInitializeError::JsonRpcError(error) => format!("it refused to begin: {}", error.message),
            // Their texts contain whole messages.
            ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
                String::from("its first answer is not part of the protocol")
            }
            ClientInitializeError::ConnectionClosed(_) => {
                String::from("it closed the connection before it began")
            }
            // Its text names Rust types.
            ClientInitializeError::TransportError { error, .. } => {
                format!("communication failed ({})", error.error)
            }
            other => other.to_string(),
        };
        why = clean(&why, REASON_BYTES_MAX);
        if let Some(hint) = hint {
            why = format!("{why}; {hint}");
        }
        let why = with_stderr(&why, stderr);
        match error {
            ClientInitializeError::JsonRpcError(_) => ConnectError::NoHandshake(why),
            _ => ConnectError::ForGood(why),
        }
    }

    fn why(self) -> String {
        match self {
            ConnectError::NoHandshake(why) | ConnectError::ForGood(why) => why,
        }
    }
}

fn with_stderr(why: &str, stderr: &str) -> String {
    match stderr.trim() {
        "" => why.to_owned(),
        stderr => format!("{why}; it said last: {stderr}"),
    }
}

/// Allows unencrypted HTTP only to this machine, unless permitted.
fn check_encryption(url: &str, is_allowed: bool) -> Result<(), String> {
    let url = reqwest::Url::parse(url).map_err(|error| error.to_string())?;
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse().is_ok_and(|at: std::net::IpAddr| at.is_loopback());
    match url.scheme() == "https" || is_here || is_allowed {
        true => Ok(()),
        false => {
            Err(format!("{host} would be contacted without encryption; use https, or set allow_plain_http"))
        }
    }
}

/// HTTP client that never sends headers to another host.
fn client() -> Result<reqwest::Client, String> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Fails if a provider is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let same_host = Policy::custom(|attempt| {
        let first = attempt.previous().first().map(|url| (url.scheme(), url.host_str(), url.port()));
        let next = (attempt.url().scheme(), attempt.url().host_str(), attempt.url().port());
        let is_same = first == Some(next) && attempt.previous().len() <= REDIRECTS_MAX;
        if is_same { attempt.follow() } else { attempt.stop() }
    });
    let client = reqwest::Client::builder().redirect(same_host).connect_timeout(Duration::from_secs(10));
    client.build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_is_local_only() {
        for (url, is_fine) in [
            ("https://tools.example.com/mcp", true),
            ("http://localhost:8000/mcp", true),
            ("http://127.0.0.1/mcp", true),
            ("http://[::1]:9/mcp", true),
            ("http://tools.example.com/mcp", false),
            ("http://localhost.example.com/mcp", false),
        ] {
            assert_eq!(check_encryption(url, false).is_ok(), is_fine, "{url}");
            assert!(check_encryption(url, true).is_ok());
        }
    }
}
