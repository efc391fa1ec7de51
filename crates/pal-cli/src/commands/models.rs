//! `pal models`: all model cards, refreshed from the provider if asked for.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use pal_model::text::{count_noun, group_digits};
use pal_model::{ModelCard, ModelCatalog};
use pal_report::TextTable;
use pal_settings::RefreshedCards;
use serde_json::{Value, json};

use crate::arguments::{ModelsArgs, ProviderArg};
use crate::failure::Failure;
use crate::model_refresh::refresh_models;
use crate::settings::{Settings, TypedSettings, settings_at};
use crate::terminal_style::style_for;

/// Maximum time to wait for the model list.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn models(
    arguments: &ModelsArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let mut cards = settings.cards.clone();
    if arguments.refresh {
        if arguments.provider == ProviderArg::Sim {
            return Err(Failure::usage_error(
                String::from("the simulator has the cards of this program"),
                "name another --provider",
            ));
        }
        let listed = refresh_models(arguments.provider, settings, LIMIT)?;
        let described = listed.iter().filter(|model| model.window.is_some()).count();
        eprintln!("pal: the provider lists {}, {described} with a window", count_noun(listed.len(), "model"));
        cards = settings_at(std::env::current_dir().ok(), TypedSettings::default())?.cards;
    }
    if arguments.json {
        let all: Vec<Value> = cards.names().map(|name| card_json(&cards.find(name).card)).collect();
        writeln!(out, "{}", Value::from(all))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = TextTable::new(&["model", "window", "output", "$/M in", "$/M out"], &[0]);
    for name in cards.names() {
        table.push_row(row(&cards, name));
    }
    table.write(style_for(arguments.color), out)?;
    let files = settings.home.as_deref().map(|home| RefreshedCards::of_endpoints(home, &settings.endpoints));
    let ages = files.into_iter().flatten().filter_map(|(provider, cards)| Some((provider, cards.age()?)));
    let ago = |(provider, age): (&str, Duration)| {
        format!("{provider} {} ago", count_noun((age.as_secs() / 3600) as usize, "hour"))
    };
    let refreshed: Vec<String> = ages.map(ago).collect();
    if !refreshed.is_empty() {
        writeln!(out, "\nrefreshed: {}", refreshed.join(", "))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(cards: &ModelCatalog, name: &str) -> Vec<String> {
    let card = cards.find(name).card;
    let price = |dollars: Option<f64>| dollars.map_or(String::from("–"), |dollars| dollars.to_string());
    vec![
        name.to_owned(),
        group_digits(card.window),
        group_digits(card.max_output),
        price(card.prices.map(|prices| prices.input)),
        price(card.prices.map(|prices| prices.output)),
    ]
}

fn card_json(card: &ModelCard) -> Value {
    json!({
        "name": card.model, "window": card.window, "max_output": card.max_output,
        "generation": card.generation.name(),
        "prices": card.prices.map(|prices| json!({"input": prices.input, "output": prices.output,
            "write_5m": prices.write_5m, "write_1h": prices.write_1h, "read": prices.read})),
        "images": card.can.images, "documents": card.can.documents,
        "context_management": card.can.context_management, "provider_compaction": card.can.provider_compaction,
    })
}
