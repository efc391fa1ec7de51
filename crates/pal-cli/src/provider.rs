//! Provider endpoints from settings: dialect, address, API key and limits.

use std::collections::BTreeMap;

use clap::ValueEnum;
use pal_model::{CacheMode, ModelCard};
use pal_provider::{
    ANTHROPIC_ADDRESS, ApiKey, AttemptTimeouts, AwsCredentials, ClientPolicy, CloudPlatform, EndpointError,
    GoogleCredentials, OPENAI_ADDRESS, ProviderEndpoint,
};
use pal_settings::{ProviderSecrets, StoredKey};
use pal_sim::{ExtractiveModel, LedgerTotals, SignaturePolicy, SimSettings, SimulatedProvider};
use pal_sim_server::{ClockSpeed, SimServerOptions, serve};
use pal_wire::Dialect;
use secrecy::SecretString;
use tokio::net::TcpListener;

use crate::arguments::ProviderArg;
use crate::failure::Failure;
use crate::key_helper::key_of_helper;
use crate::settings::Settings;
use crate::system_keyring::SystemKeyring;

/// Default provider of a model.
pub(crate) fn usual_provider(card: &ModelCard) -> ProviderArg {
    match card.caching {
        CacheMode::Explicit => ProviderArg::Anthropic,
        CacheMode::Automatic | CacheMode::Hybrid => ProviderArg::Openai,
    }
}

/// The provider of the command line, else of the settings, else the model's own.
pub(crate) fn chosen_provider(
    given: Option<ProviderArg>,
    card: &ModelCard,
    settings: &Settings,
) -> ProviderArg {
    let of_settings = || settings.provider.as_ref().and_then(|name| ProviderArg::from_str(name, true).ok());
    given.or_else(of_settings).unwrap_or_else(|| usual_provider(card))
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
        ProviderArg::Anthropic => has_anthropic_key(secrets) || endpoints.anthropic.is_some(),
        ProviderArg::Bedrock => bedrock(settings).is_ok(),
        ProviderArg::Vertex => vertex(settings).is_ok(),
        ProviderArg::Openai | ProviderArg::Chat => {
            let has_key = secrets.openai_api_key.is_some() || secrets.stored_openai_key.is_some();
            has_key || endpoints.openai.is_some()
        }
    }
}

/// Endpoint of a provider.
pub(crate) fn endpoint(name: ProviderArg, settings: &Settings) -> Result<ProviderEndpoint, Failure> {
    let (endpoints, secrets) = (&settings.endpoints, &settings.secrets);
    if name == ProviderArg::Bedrock {
        let made = ProviderEndpoint::on_platform(bedrock(settings)?, endpoints.bedrock.base_url.as_deref());
        return made.map_err(|error| bad_endpoint(&error, "bedrock.base_url"));
    }
    if name == ProviderArg::Vertex {
        let made = ProviderEndpoint::on_platform(vertex(settings)?, endpoints.vertex.base_url.as_deref());
        return made.map_err(|error| bad_endpoint(&error, "vertex.base_url"));
    }
    let (dialect, address, standard, key, variables) = match name {
        ProviderArg::Anthropic | ProviderArg::Bedrock | ProviderArg::Vertex | ProviderArg::Sim => (
            Dialect::Messages,
            &endpoints.anthropic,
            ANTHROPIC_ADDRESS,
            anthropic_key(secrets)?,
            ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        ),
        ProviderArg::Openai | ProviderArg::Chat => (
            if name == ProviderArg::Chat { Dialect::Chat } else { Dialect::Responses },
            &endpoints.openai,
            OPENAI_ADDRESS,
            openai_key(secrets)?,
            ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
        ),
    };
    if key.is_none() && address.is_none() {
        return Err(Failure::with_hint(
            format!("no API key: {} is not set", variables.0),
            format!(
                "set it, or run `pal login`, or set {} to your own server, or try --provider sim",
                variables.1
            ),
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

/// Amazon Bedrock with the credentials of the environment, else of a profile in `~/.aws/credentials`.
fn bedrock(settings: &Settings) -> Result<CloudPlatform, Failure> {
    let (bedrock, secrets) = (&settings.endpoints.bedrock, &settings.secrets);
    let region = bedrock.region.clone().ok_or_else(|| {
        Failure::with_hint(
            "Bedrock needs a region: AWS_REGION is not set",
            "set it, or bedrock.region in the settings",
        )
    })?;
    let given = secrets.aws_access_key_id.clone().zip(secrets.aws_secret_access_key.clone());
    let credentials = match given {
        Some((id, key)) => Some(AwsCredentials::new(id, key, secrets.aws_session_token.clone())),
        None => settings.user_home.as_ref().and_then(|home| {
            let file = std::fs::read_to_string(home.join(".aws/credentials")).ok()?;
            AwsCredentials::from_profile(&file, &bedrock.profile)
        }),
    };
    let credentials = credentials.ok_or_else(|| {
        Failure::with_hint(
            format!("no AWS credentials: AWS_ACCESS_KEY_ID is not set, and ~/.aws/credentials has no profile `{}`", bedrock.profile),
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for example with `aws configure export-credentials --format env`",
        )
    })?;
    Ok(CloudPlatform::Bedrock { region, credentials, models: model_ids("bedrock.models", &bedrock.models)? })
}

/// Google Vertex AI with the given access token, else with a credentials file.
fn vertex(settings: &Settings) -> Result<CloudPlatform, Failure> {
    let (vertex, secrets) = (&settings.endpoints.vertex, &settings.secrets);
    let project = vertex.project.clone().ok_or_else(|| {
        Failure::with_hint(
            "Vertex AI needs a project: ANTHROPIC_VERTEX_PROJECT_ID is not set",
            "set it, or vertex.project in the settings",
        )
    })?;
    let usual =
        || Some(settings.user_home.as_ref()?.join(".config/gcloud/application_default_credentials.json"));
    let credentials = match (&secrets.google_access_token, vertex.credentials.clone().or_else(usual)) {
        (Some(token), _) => GoogleCredentials::token(token.clone()),
        (None, Some(path)) => {
            let text = std::fs::read_to_string(&path).map_err(|error| {
                Failure::with_hint(
                    format!("no Google credentials: {}: {error}", path.display()),
                    "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS or \
                     CLOUDSDK_AUTH_ACCESS_TOKEN",
                )
            })?;
            GoogleCredentials::from_file(&text)
                .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?
        }
        (None, None) => {
            return Err(Failure::with_hint("no Google credentials", "set GOOGLE_APPLICATION_CREDENTIALS"));
        }
    };
    let models = model_ids("vertex.models", &vertex.models)?;
    Ok(CloudPlatform::Vertex { project, region: vertex.region.clone(), credentials, models })
}

/// Ids of models from settings of the form `NAME=ID`.
fn model_ids(setting: &str, pairs: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |text: &String| {
        let (name, id) = text.split_once('=').ok_or_else(|| {
            Failure::with_hint(
                format!("{setting}: `{text}` is no NAME=ID"),
                "write it like claude-opus-5-5=ID",
            )
        })?;
        Ok((name.trim().to_owned(), id.trim().to_owned()))
    };
    pairs.iter().map(pair).collect()
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

/// API key for Claude, or the bearer token in its place: of the environment, of `pal login`, or of the helper command.
fn anthropic_key(secrets: &ProviderSecrets) -> Result<Option<ApiKey>, Failure> {
    let token = || secrets.anthropic_auth_token.clone().map(ApiKey::Bearer);
    let key = secrets.anthropic_api_key.clone().map(ApiKey::Api).or_else(token);
    match (key, &secrets.stored_anthropic_key, &secrets.api_key_helper) {
        (None, Some(stored), _) => key_of_login(stored, "anthropic").map(|key| Some(ApiKey::Api(key))),
        (None, None, Some(command)) => key_of_helper(command).map(|key| Some(ApiKey::Api(key))),
        (key, _, _) => Ok(key),
    }
}

/// API key for GPT: of the environment, or of `pal login`.
fn openai_key(secrets: &ProviderSecrets) -> Result<Option<ApiKey>, Failure> {
    match (&secrets.openai_api_key, &secrets.stored_openai_key) {
        (Some(key), _) => Ok(Some(ApiKey::Api(key.clone()))),
        (None, Some(stored)) => key_of_login(stored, "openai").map(|key| Some(ApiKey::Api(key))),
        (None, None) => Ok(None),
    }
}

/// The key that `pal login` stored.
fn key_of_login(stored: &StoredKey, provider: &str) -> Result<SecretString, Failure> {
    match stored {
        StoredKey::File(key) => Ok(key.clone()),
        StoredKey::Keyring => SystemKeyring::find().and_then(|keyring| keyring.look_up(provider)).map_err(|why| {
            Failure::with_hint(
                format!("the key for {provider} cannot be read from the system keyring: {why}"),
                "unlock the keyring, or run `pal login --file` to store the key in a file, or set its variable",
            )
        }),
    }
}

/// Returns whether there is a key for Claude, or a command that prints one.
fn has_anthropic_key(secrets: &ProviderSecrets) -> bool {
    secrets.anthropic_api_key.is_some()
        || secrets.anthropic_auth_token.is_some()
        || secrets.stored_anthropic_key.is_some()
        || secrets.api_key_helper.is_some()
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
    let options = SimServerOptions {
        speed: ClockSpeed::Virtual,
        record: None,
        announces: true,
        notice: Box::new(|_| {}),
    };
    let server = tokio::spawn(serve(listener, simulator, options, std::future::pending()));
    let endpoint = ProviderEndpoint::new(dialect, &address, Some(ApiKey::api("simulated")))
        .map_err(|error| bad_endpoint(&error, "the simulator's address"))?
        .simulated();
    Ok((endpoint, server))
}
