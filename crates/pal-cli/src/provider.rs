//! Provider endpoints from settings: dialect, address, API key and limits.

use pal_model::{CacheMode, ModelCard};
use pal_provider::{
    ANTHROPIC_ADDRESS, ApiKey, AttemptTimeouts, ClientPolicy, EndpointError, OPENAI_ADDRESS, ProviderEndpoint,
};
use pal_settings::ProviderSecrets;
use pal_sim::{ExtractiveModel, LedgerTotals, SignaturePolicy, SimSettings, SimulatedProvider};
use pal_sim_server::{ClockSpeed, SimServerOptions, serve};
use pal_wire::Dialect;
use tokio::net::TcpListener;

use crate::arguments::ProviderArg;
use crate::failure::Failure;
use crate::settings::Settings;

/// Default provider of a model.
pub(crate) fn usual_provider(card: &ModelCard) -> ProviderArg {
    match card.caching {
        CacheMode::Explicit => ProviderArg::Anthropic,
        CacheMode::Automatic | CacheMode::Hybrid => ProviderArg::Openai,
    }
}

/// Default dialect of a model.
pub(crate) fn usual_dialect(card: &ModelCard) -> Dialect {
    match usual_provider(card) {
        ProviderArg::Openai => Dialect::Responses,
        _ => Dialect::Messages,
    }
}

/// Whether an API key or a base URL is set for a provider.
pub(crate) fn has_access(name: ProviderArg, settings: &Settings) -> bool {
    let (endpoints, secrets) = (&settings.endpoints, &settings.secrets);
    match name {
        ProviderArg::Sim => true,
        ProviderArg::Anthropic => anthropic_key(secrets).is_some() || endpoints.anthropic.is_some(),
        ProviderArg::Openai | ProviderArg::Chat => {
            secrets.openai_api_key.is_some() || endpoints.openai.is_some()
        }
    }
}

/// Endpoint of a provider.
pub(crate) fn endpoint(name: ProviderArg, settings: &Settings) -> Result<ProviderEndpoint, Failure> {
    let (endpoints, secrets) = (&settings.endpoints, &settings.secrets);
    let (dialect, address, standard, key, variables) = match name {
        ProviderArg::Anthropic | ProviderArg::Sim => (
            Dialect::Messages,
            &endpoints.anthropic,
            ANTHROPIC_ADDRESS,
            anthropic_key(secrets),
            ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        ),
        ProviderArg::Openai | ProviderArg::Chat => (
            if name == ProviderArg::Chat { Dialect::Chat } else { Dialect::Responses },
            &endpoints.openai,
            OPENAI_ADDRESS,
            secrets.openai_api_key.clone().map(ApiKey::Api),
            ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
        ),
    };
    if key.is_none() && address.is_none() {
        return Err(Failure::with_hint(
            format!("no API key: {} is not set", variables.0),
            format!("set it, or set {} to your own server, or try --provider sim", variables.1),
        ));
    }
    let address = address.as_deref().unwrap_or(standard);
    let made = if endpoints.allows_plain_http {
        ProviderEndpoint::over_plain_http(dialect, address, key)
    } else {
        ProviderEndpoint::new(dialect, address, key)
    };
    made.map_err(|error| bad_endpoint(&error, variables.1))
}

/// Timeouts and size limits of an endpoint, from the settings.
pub(crate) fn provider_policy(endpoint: &ProviderEndpoint, settings: &Settings) -> ClientPolicy {
    let (limits, mut policy) = (&settings.response_limits, ClientPolicy::for_endpoint(endpoint));
    policy.timeouts = AttemptTimeouts {
        connect: limits.connect,
        send: limits.send,
        first_byte: limits.headers.unwrap_or(policy.timeouts.first_byte),
        first_event: limits.first_event,
        idle: settings.idle_timeout,
        content_gap: limits.content_gap,
        answer: limits.answer,
    };
    policy.answer_bytes_max = limits.bytes_max;
    policy
}

/// API key for Claude, or the bearer token in its place.
fn anthropic_key(secrets: &ProviderSecrets) -> Option<ApiKey> {
    let token = || secrets.anthropic_auth_token.clone().map(ApiKey::Bearer);
    secrets.anthropic_api_key.clone().map(ApiKey::Api).or_else(token)
}

pub(crate) fn bad_endpoint(error: &EndpointError, variable: &str) -> Failure {
    match error {
        EndpointError::PlainHttp { host } => Failure::with_hint(
            format!(
                "refusing to send the API key to {host} over plain http: others on the network could read it"
            ),
            "use https, or set PAL_ALLOW_PLAIN_HTTP=1 for a server in your own network",
        ),
        _ => Failure::with_hint(error.to_string(), format!("correct {variable}")),
    }
}

/// Runtime for provider calls, on this thread.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(format!("cannot start the async runtime: {error}")))
}

/// Starts a simulator on a free loopback port.
pub(crate) async fn simulator(
    settings: &Settings,
    dialect: Dialect,
) -> Result<(ProviderEndpoint, tokio::task::JoinHandle<std::io::Result<LedgerTotals>>), Failure> {
    let failure = |error: std::io::Error| Failure::new(format!("the simulator: {error}"));
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.map_err(failure)?;
    let address = format!("http://{}", listener.local_addr().map_err(failure)?);
    // A saved session contains thinking blocks that its own provider signed.
    let settings = SimSettings {
        cards: settings.cards.clone(),
        signatures: SignaturePolicy::Learn,
        ..SimSettings::plain()
    };
    let simulator = SimulatedProvider::new(settings, Box::new(ExtractiveModel));
    let options = SimServerOptions { speed: ClockSpeed::Virtual, record: None, notice: Box::new(|_| {}) };
    let server = tokio::spawn(serve(listener, simulator, options, std::future::pending()));
    let endpoint = ProviderEndpoint::new(dialect, &address, Some(ApiKey::api("simulated")))
        .map_err(|error| bad_endpoint(&error, "the simulator's address"))?;
    Ok((endpoint, server))
}
