//! `WebFetch` tool: fetches a web page.
//!
//! The URL may come from untrusted text, so fetching must not reach the user's own network. The host is
//! resolved here, every address is checked, and the connection uses exactly the checked addresses, so that
//! DNS rebinding has no effect. Redirects are followed manually within the same host, and each is checked
//! like the first.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pal_permissions::ToolAccess;
use pal_process::CancelToken;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url};
use serde::Deserialize;
use tokio::runtime::Runtime;

use super::public_address::is_public;
use super::web_page::{PageFormat, decode_body, format_of, readable};
use crate::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

/// Time limit of a fetch.
const TIME_MAX: Duration = Duration::from_secs(30);

/// Maximum bytes of a page.
const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Maximum number of redirects.
const REDIRECTS_MAX: usize = 10;

/// Fetches a web page and shows it as text.
#[derive(Clone, Copy, Debug)]
pub struct WebFetchTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WebFetchInput {
    url: String,
    #[serde(default)]
    prompt: Option<String>,
}

impl ToolHandler for WebFetchTool {
    fn name(&self) -> &'static str {
        "WebFetch"
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn required_access(&self, input: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
        let fields: WebFetchInput = input.read()?;
        Ok(vec![ToolAccess::Fetch(checked_url(&fields.url)?.to_string())])
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>) -> ToolOutput {
        run(input, context).unwrap_or_else(|wrong| ToolOutput::error(&wrong))
    }
}

fn run(input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, String> {
    let fields: WebFetchInput = input.read()?;
    let url = checked_url(&fields.url)?;
    if !context.granted.contains(&ToolAccess::Fetch(url.to_string())) {
        return Err(format!("{url} is not what permission was given for. Try again."));
    }
    // The first installation wins; another part of the program may have done it before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| format!("Fetching cannot start: {err}."))?;
    let allows_private = context.workspace.allows_private_addresses;
    let fetched = until_cancelled(&runtime, context.cancel, fetch(url, allows_private));
    // A DNS lookup cannot be stopped, and is not waited for.
    runtime.shutdown_background();
    let fetched = fetched?;
    let is_error = matches!(fetched, FetchResult::Page { status: 400.., .. });
    Ok(ToolOutput { is_error, ..ToolOutput::text(&render_result(fetched, fields.prompt.as_deref())) })
}

/// Parses a URL; refuses other schemes than http and https, user names and passwords.
fn checked_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text.trim()).map_err(|err| {
        format!(
            "`url` is no address of a page ({err}). It has to be whole, such as https://example.org/page."
        )
    })?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("Only http and https pages are fetched, not {}:.", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(String::from("An address with a user name or a password in it is not fetched."));
    }
    Ok(url)
}

/// Waits for the result, the timeout or cancellation, whichever comes first.
fn until_cancelled<T>(
    runtime: &Runtime,
    cancel: &CancelToken,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let stop = std::sync::Arc::new(tokio::sync::Notify::new());
    let told = std::sync::Arc::clone(&stop);
    let _watch = cancel.watch(move || told.notify_one());
    runtime.block_on(async {
        tokio::select! {
            () = stop.notified() => Err(String::from("Fetching was cancelled.")),
            () = tokio::time::sleep(TIME_MAX) => {
                Err(format!("The page did not arrive within {} seconds.", TIME_MAX.as_secs()))
            }
            done = work => done,
        }
    })
}

/// Result of a fetch.
enum FetchResult {
    Page { url: Url, status: u16, text: String, is_cut: bool },
    Elsewhere { from: Url, to: Url },
}

async fn fetch(mut url: Url, allows_private: bool) -> Result<FetchResult, String> {
    for _ in 0..=REDIRECTS_MAX {
        let response = send_request(&url, allows_private).await?;
        let Some(next) = redirect(&response, &url)? else { return page(url, response).await };
        let is_safe = next.scheme() == url.scheme() || next.scheme() == "https";
        if next.host_str() != url.host_str() || !is_safe {
            return Ok(FetchResult::Elsewhere { from: url, to: next });
        }
        url = next;
    }
    Err(format!("The page was redirected more than {REDIRECTS_MAX} times."))
}

/// Sends a request for one URL without following redirects.
async fn send_request(url: &Url, allows_private: bool) -> Result<Response, String> {
    let addresses = resolve_host(url, allows_private).await?;
    let host = url.host_str().unwrap_or_default();
    let mut builder = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .user_agent(concat!("palimpsest/", env!("CARGO_PKG_VERSION")))
        .resolve_to_addrs(host, &addresses);
    // A proxy would resolve the host itself, and the check here would be void.
    let is_here = addresses.iter().all(|address| address.ip().is_loopback());
    if !allows_private || is_here {
        builder = builder.no_proxy();
    }
    let client = builder.build().map_err(|err| format!("Fetching cannot start: {}.", causes(&err)))?;
    let accepted =
        "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/*;q=0.8, application/json;q=0.8";
    client
        .get(url.clone())
        .header(ACCEPT, accepted)
        .send()
        .await
        .map_err(|err| format!("{url} cannot be fetched: {}.", causes(&err)))
}

/// Addresses of a host, if all of them are permitted.
async fn resolve_host(url: &Url, allows_private: bool) -> Result<Vec<SocketAddr>, String> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(443);
    let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let addresses: Vec<SocketAddr> = match literal {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => tokio::net::lookup_host((host, port))
            .await
            .map_err(|err| format!("The host {host} is not found: {err}."))?
            .collect(),
    };
    if addresses.is_empty() {
        return Err(format!("The host {host} has no address."));
    }
    let private = addresses.iter().find(|address| !is_public(address.ip()));
    match private.filter(|_| !allows_private) {
        None => Ok(addresses),
        Some(private) => Err(format!(
            "{host} is {}, an address of this machine or of its own network, and such pages are not fetched unless the \
             user's settings allow it.",
            private.ip()
        )),
    }
}

/// Target of a redirect.
fn redirect(response: &Response, from: &Url) -> Result<Option<Url>, String> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(LOCATION).and_then(|location| location.to_str().ok()) else {
        return Err(format!("{from} is redirected, but does not say where to."));
    };
    let next = from.join(location).map_err(|err| format!("{from} is redirected to no address: {err}."))?;
    checked_url(next.as_str()).map(Some)
}

async fn page(url: Url, mut response: Response) -> Result<FetchResult, String> {
    let status = response.status().as_u16();
    let content_type =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let content_type = content_type.to_owned();
    let sort = if content_type.is_empty() { Some(PageFormat::Plain) } else { format_of(&content_type) };
    let Some(sort) = sort else {
        return Err(format!(
            "{url} is {content_type}, which is no text. Download it with a command if you need it."
        ));
    };
    let too_long = || format!("{url} has more than {} MB.", BODY_BYTES_MAX / (1024 * 1024));
    if response.content_length().is_some_and(|length| length > BODY_BYTES_MAX as u64) {
        return Err(too_long());
    }
    let mut body = Vec::new();
    while let Some(chunk) =
        response.chunk().await.map_err(|err| format!("{url} broke off: {}.", causes(&err)))?
    {
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(too_long());
        }
        body.extend_from_slice(&chunk);
    }
    if content_type.is_empty() && body.contains(&0) {
        return Err(format!("{url} is no text. Download it with a command if you need it."));
    }
    let (text, is_cut) = readable(decode_body(&body, &content_type), sort).await;
    Ok(FetchResult::Page { url, status, text, is_cut })
}

/// Text for the model.
fn render_result(fetched: FetchResult, prompt: Option<&str>) -> String {
    match fetched {
        FetchResult::Elsewhere { from, to } => {
            format!(
                "[{from} is redirected to {to}, which was not fetched. Fetch that address if it is the right one.]"
            )
        }
        FetchResult::Page { url, status, text, is_cut } => {
            let mut said = format!("[{url}, status {status}");
            if let Some(prompt) = prompt.map(str::trim).filter(|prompt| !prompt.is_empty()) {
                said.push_str(&format!("; fetched for: {prompt}"));
            }
            said.push_str(if text.trim().is_empty() { "; the page has no text]" } else { "]\n\n" });
            said.push_str(text.trim());
            if is_cut {
                said.push_str("\n\n[The rest of the page is not shown.]");
            }
            said
        }
    }
}

/// Error with its sources: the outermost one only says that something failed.
fn causes(err: &dyn std::error::Error) -> String {
    let mut said = err.to_string();
    let mut source = err.source();
    while let Some(inner) = source {
        said = format!("{said}: {inner}");
        source = inner.source();
    }
    said
}
