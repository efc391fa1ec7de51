//! WebFetch: fetches a page.
//!
//! A page may be named by whatever the model read, so fetching must not become a way into the user's own network. The
//! host is looked up here, every address that it has is checked, and the connection goes to the very addresses that were
//! checked: a name that is answered differently the second time has no second time. Redirects are followed by hand, within
//! the same host, and each is checked like the first.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pal_permissions::Need;
use pal_process::Cancel;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url};
use serde::Deserialize;
use tokio::runtime::Runtime;

use super::address::is_public;
use super::page::{Sort, decoded, readable, sort_of};
use crate::{Input, Output, Running, Tool, Workspace};

/// How long all of it may take.
const TIME_MAX: Duration = Duration::from_secs(30);

/// Most bytes of a page.
const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Most redirects.
const REDIRECTS_MAX: usize = 10;

/// Fetches a page and shows it as text.
#[derive(Clone, Copy, Debug)]
pub struct WebFetch;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    url: String,
    #[serde(default)]
    prompt: Option<String>,
}

impl Tool for WebFetch {
    fn name(&self) -> &'static str {
        "WebFetch"
    }

    fn only_looks(&self, _: &Input) -> bool {
        true
    }

    fn needs(&self, input: &Input, _: &Workspace) -> Result<Vec<Need>, String> {
        let fields: Fields = input.read()?;
        Ok(vec![Need::Fetch(checked_url(&fields.url)?.to_string())])
    }

    fn run(&self, input: &Input, running: &Running<'_>) -> Output {
        run(input, running).unwrap_or_else(|wrong| Output::error(&wrong))
    }
}

fn run(input: &Input, running: &Running<'_>) -> Result<Output, String> {
    let fields: Fields = input.read()?;
    let url = checked_url(&fields.url)?;
    if !running.granted.contains(&Need::Fetch(url.to_string())) {
        return Err(format!("{url} is not what permission was given for. Try again."));
    }
    // The first to come wins, and another part of the program may have come before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| format!("Fetching cannot start: {err}."))?;
    let allows_private = running.workspace.allows_private_addresses;
    let fetched = until_cancelled(&runtime, running.cancel, fetched(url, allows_private));
    // A lookup of a name cannot be stopped; nobody waits for it.
    runtime.shutdown_background();
    let fetched = fetched?;
    let is_error = matches!(fetched, Fetched::Page { status: 400.., .. });
    Ok(Output { is_error, ..Output::text(&told(fetched, fields.prompt.as_deref())) })
}

/// What an address is fetched for, and nothing else: another scheme, a name or a password in it are refused.
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

/// Waits for an answer, for the time to be over or for the call to be cancelled, whichever comes first.
fn until_cancelled<T>(
    runtime: &Runtime,
    cancel: &Cancel,
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

/// What was fetched.
enum Fetched {
    Page { url: Url, status: u16, text: String, is_cut: bool },
    Elsewhere { from: Url, to: Url },
}

async fn fetched(mut url: Url, allows_private: bool) -> Result<Fetched, String> {
    for _ in 0..=REDIRECTS_MAX {
        let response = answered(&url, allows_private).await?;
        let Some(next) = redirect(&response, &url)? else { return page(url, response).await };
        let is_safe = next.scheme() == url.scheme() || next.scheme() == "https";
        if next.host_str() != url.host_str() || !is_safe {
            return Ok(Fetched::Elsewhere { from: url, to: next });
        }
        url = next;
    }
    Err(format!("The page was redirected more than {REDIRECTS_MAX} times."))
}

/// The answer to a request for one address, not following anything.
async fn answered(url: &Url, allows_private: bool) -> Result<Response, String> {
    let addresses = looked_up(url, allows_private).await?;
    let host = url.host_str().unwrap_or_default();
    let mut builder = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .user_agent(concat!("palimpsest/", env!("CARGO_PKG_VERSION")))
        .resolve_to_addrs(host, &addresses);
    // A proxy would look the host up itself, and what was checked here would be worth nothing.
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

/// The addresses of a host, if all of them may be fetched from.
async fn looked_up(url: &Url, allows_private: bool) -> Result<Vec<SocketAddr>, String> {
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

/// Where an answer sends on to.
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

async fn page(url: Url, mut response: Response) -> Result<Fetched, String> {
    let status = response.status().as_u16();
    let content_type =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let content_type = content_type.to_owned();
    let sort = if content_type.is_empty() { Some(Sort::Plain) } else { sort_of(&content_type) };
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
    let (text, is_cut) = readable(decoded(&body, &content_type), sort).await;
    Ok(Fetched::Page { url, status, text, is_cut })
}

/// What the model reads of it.
fn told(fetched: Fetched, prompt: Option<&str>) -> String {
    match fetched {
        Fetched::Elsewhere { from, to } => {
            format!(
                "[{from} is redirected to {to}, which was not fetched. Fetch that address if it is the right one.]"
            )
        }
        Fetched::Page { url, status, text, is_cut } => {
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

/// An error with what is behind it: the outermost one only says that something failed.
fn causes(err: &dyn std::error::Error) -> String {
    let mut said = err.to_string();
    let mut source = err.source();
    while let Some(inner) = source {
        said = format!("{said}: {inner}");
        source = inner.source();
    }
    said
}
