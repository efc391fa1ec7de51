//! Refreshes model cards from the provider's Models endpoint (§0.1).

use std::path::Path;
use std::time::Duration;

use pal_model::ModelCard;
use pal_provider::ProviderClient;
use pal_settings::RefreshedCards;
use pal_wire::{
    Dialect, ModelListing, model_list_headers, model_list_path, model_list_table, parse_model_list,
};

use crate::arguments::ProviderArg;
use crate::failure::Failure;
use crate::provider::{endpoint, has_access, provider_policy, runtime};
use crate::settings::Settings;

/// Maximum time that the start of a session waits for the model list.
const START_LIMIT: Duration = Duration::from_secs(2);
/// Minimum interval between two refreshes at the start of a session.
const START_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum pages of a model list.
const PAGES_MAX: usize = 20;

/// Asks a provider for its models and stores their cards; returns the listed models.
pub(crate) fn refresh_models(
    provider: ProviderArg,
    settings: &Settings,
    limit: Duration,
) -> Result<Vec<ModelListing>, Failure> {
    let home = settings.home.as_deref().ok_or_else(|| {
        Failure::with_hint("model cards cannot be saved: neither PAL_HOME nor HOME is set", "set one of them")
    })?;
    let refreshed = refreshed_cards(provider, home, settings).ok_or_else(|| {
        Failure::with_hint(
            "Bedrock and Vertex do not list windows and prices of models",
            "refresh from anthropic, or describe the model in models.toml in the home directory",
        )
    })?;
    let endpoint = endpoint(provider, settings)?;
    let (dialect, address) = (endpoint.dialect(), endpoint.address().to_owned());
    let policy = provider_policy(&endpoint, settings);
    let client = ProviderClient::new(endpoint, policy).map_err(|error| Failure::new(error.to_string()))?;
    let listed =
        runtime()?.block_on(async { tokio::time::timeout(limit, list_models(&client, dialect)).await });
    let listed = listed.unwrap_or_else(|_| Err(format!("no answer within {} s", limit.as_secs())));
    let listed = listed.map_err(|why| {
        Failure::with_hint(
            format!("{address} does not list its models: {why}"),
            "describe the model in models.toml in the home directory",
        )
    })?;
    // A dated name has the prices of its model.
    let like = |id: &str| settings.cards.table_name(id).filter(|name| *name != id).map(str::to_owned);
    let table = model_list_table(&listed, like);
    refreshed.write(&table).map_err(|error| Failure::of_file(refreshed.path(), &error))?;
    Ok(listed)
}

async fn list_models(client: &ProviderClient, dialect: Dialect) -> Result<Vec<ModelListing>, String> {
    let headers = model_list_headers(dialect);
    let mut models = Vec::new();
    let mut path = Some(model_list_path(dialect));
    for _ in 0..PAGES_MAX {
        let Some(next) = path else { break };
        let json = client.get(&next, &headers).await.map_err(|failure| failure.message)?;
        let page = parse_model_list(&json).ok_or("its answer is no list of models")?;
        models.extend(page.models);
        path = page.next;
    }
    Ok(models)
}

/// Card of a model that no table describes, from its provider; none if that does not know it either, or was asked before
/// today.
pub(crate) fn card_from_provider(
    model: &str,
    provider: ProviderArg,
    settings: &Settings,
) -> Option<ModelCard> {
    if !settings.refresh_models || provider == ProviderArg::Sim || !has_access(provider, settings) {
        return None;
    }
    let refreshed = refreshed_cards(provider, settings.home.as_deref()?, settings)?;
    if refreshed.age().is_some_and(|age| age < START_INTERVAL) {
        return None;
    }
    // The session starts with the cautious card then.
    refresh_models(provider, settings, START_LIMIT).ok()?;
    let found = refreshed.apply(settings.cards.clone()).find(model);
    found.notice.is_none().then_some(found.card)
}

/// File of a provider's server: both OpenAI dialects have one list. None for cloud platforms, whose lists say nothing of
/// windows and prices.
fn refreshed_cards(provider: ProviderArg, home: &Path, settings: &Settings) -> Option<RefreshedCards> {
    let [(_, anthropic), (_, openai)] = RefreshedCards::of_endpoints(home, &settings.endpoints);
    match provider {
        ProviderArg::Anthropic | ProviderArg::Sim => Some(anthropic),
        ProviderArg::Openai | ProviderArg::Chat => Some(openai),
        ProviderArg::Bedrock | ProviderArg::Vertex => None,
    }
}
