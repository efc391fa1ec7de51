//! Which provider a command talks to, and with which key. The only place that joins settings and `pal-provider`.

use pal_model::{Caching, Card};
use pal_provider::{ANTHROPIC_ADDRESS, Endpoint, EndpointError, Key, OPENAI_ADDRESS, Policy, Timeouts};
use pal_settings::Secrets;
use pal_sim::{Extractive, LedgerTotals, Settings as SimSettings, Signatures, Simulator};
use pal_sim_server::{Options, Speed, serve};
use pal_wire::Dialect;
use tokio::net::TcpListener;

use crate::arguments::ProviderName;
use crate::failure::Failure;
use crate::settings::Settings;

/// The provider that a model is asked of, unless the user names one.
pub(crate) fn usual_provider(card: &Card) -> ProviderName {
    match card.caching {
        Caching::Marks => ProviderName::Anthropic,
        Caching::Automatic | Caching::Breakpoints => ProviderName::Openai,
    }
}

/// The dialect in which a model is asked, unless the user names a provider.
pub(crate) fn usual_dialect(card: &Card) -> Dialect {
    match usual_provider(card) {
        ProviderName::Openai => Dialect::Responses,
        _ => Dialect::Messages,
    }
}

/// Whether there is a key or an address for a provider.
pub(crate) fn has_access(name: ProviderName, settings: &Settings) -> bool {
    let (endpoints, secrets) = (&settings.endpoints, &settings.secrets);
    match name {
        ProviderName::Sim => true,
        ProviderName::Anthropic => anthropic_key(secrets).is_some() || endpoints.anthropic.is_some(),
        ProviderName::Openai | ProviderName::Chat => {
            secrets.openai_api_key.is_some() || endpoints.openai.is_some()
        }
    }
}

/// The endpoint of a provider on the net.
pub(crate) fn endpoint(name: ProviderName, settings: &Settings) -> Result<Endpoint, Failure> {
    let (endpoints, secrets) = (&settings.endpoints, &settings.secrets);
    let (dialect, address, standard, key, variables) = match name {
        ProviderName::Anthropic | ProviderName::Sim => (
            Dialect::Messages,
            &endpoints.anthropic,
            ANTHROPIC_ADDRESS,
            anthropic_key(secrets),
            ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        ),
        ProviderName::Openai | ProviderName::Chat => (
            if name == ProviderName::Chat { Dialect::Chat } else { Dialect::Responses },
            &endpoints.openai,
            OPENAI_ADDRESS,
            secrets.openai_api_key.clone().map(Key::Api),
            ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
        ),
    };
    if key.is_none() && address.is_none() {
        return Err(Failure::with_hint(
            format!("there is no key: {} is not set", variables.0),
            format!("set it, or point {} at a server of your own, or try --provider sim", variables.1),
        ));
    }
    let address = address.as_deref().unwrap_or(standard);
    let made = if endpoints.allows_plain_http {
        Endpoint::over_plain_http(dialect, address, key)
    } else {
        Endpoint::new(dialect, address, key)
    };
    made.map_err(|error| bad_endpoint(&error, variables.1))
}

/// Limits on what an endpoint may take, as they are set.
pub(crate) fn provider_policy(endpoint: &Endpoint, settings: &Settings) -> Policy {
    let (limits, mut policy) = (&settings.answer_limits, Policy::suited_to(endpoint));
    policy.timeouts = Timeouts {
        connect: limits.connect,
        send: limits.send,
        first_byte: limits.headers.unwrap_or(policy.timeouts.first_byte),
        first_event: limits.first_event,
        idle: settings.silence_limit,
        content_gap: limits.content_gap,
        answer: limits.answer,
    };
    policy.answer_bytes_max = limits.bytes_max;
    policy
}

/// The key for Claude, or the token in its place.
fn anthropic_key(secrets: &Secrets) -> Option<Key> {
    let token = || secrets.anthropic_auth_token.clone().map(Key::Bearer);
    secrets.anthropic_api_key.clone().map(Key::Api).or_else(token)
}

pub(crate) fn bad_endpoint(error: &EndpointError, variable: &str) -> Failure {
    match error {
        EndpointError::PlainHttp { host } => Failure::with_hint(
            format!("{host} would be spoken to over plain http: whoever is on the way could read the key"),
            "use https, or set PAL_ALLOW_PLAIN_HTTP=1 for a server in your own network",
        ),
        _ => Failure::with_hint(error.to_string(), format!("correct {variable}")),
    }
}

/// What carries calls out, on this thread.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(format!("no runtime: {error}")))
}

/// A simulator of our own, on a free port of this machine.
pub(crate) async fn simulator(
    settings: &Settings,
    dialect: Dialect,
) -> Result<(Endpoint, tokio::task::JoinHandle<std::io::Result<LedgerTotals>>), Failure> {
    let failure = |error: std::io::Error| Failure::new(format!("the simulator: {error}"));
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.map_err(failure)?;
    let address = format!("http://{}", listener.local_addr().map_err(failure)?);
    // A stored session holds thinking that its own provider signed.
    let settings =
        SimSettings { cards: settings.cards.clone(), signatures: Signatures::Learn, ..SimSettings::plain() };
    let simulator = Simulator::new(settings, Box::new(Extractive));
    let options = Options { speed: Speed::Virtual, record: None, notice: Box::new(|_| {}) };
    let server = tokio::spawn(serve(listener, simulator, options, std::future::pending()));
    let endpoint = Endpoint::new(dialect, &address, Some(Key::api("simulated")))
        .map_err(|error| bad_endpoint(&error, "the simulator's address"))?;
    Ok((endpoint, server))
}
