//! Codex's `config.toml`: the model, its provider and MCP servers.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::TakenSettings;
use crate::settings_file::parse_toml;
use crate::sources::{SettingOrigin, SettingsSource};
use crate::text_file::text_of;

/// Reads Codex's configuration. Its model counts only if the user has access to OpenAI or its provider, and none to
/// Claude: then it is the model that works. `variables` is the environment; a provider's key is taken from there.
pub(crate) fn read_codex_config(path: &Path, variables: &BTreeMap<String, String>) -> TakenSettings {
    let mut taken = TakenSettings::default();
    let Ok(text) = text_of(path) else { return taken };
    let origin = SettingOrigin::new(SettingsSource::User, path.display().to_string());
    let tree = match parse_toml(&text) {
        Ok(tree) => tree,
        Err(error) => {
            taken.unused.push(format!("the whole file ({})", error.lines().next().unwrap_or_default()));
            return taken;
        }
    };
    let config = &tree.values;
    let at = |name: &str| SettingOrigin { line: tree.lines.get(name).copied(), ..origin.clone() };
    if let Some(servers) = config.get("mcp_servers").and_then(Value::as_object) {
        let servers: Map<String, Value> =
            servers.iter().map(|(name, server)| (name.clone(), server_of(server))).collect();
        taken.push("mcp_servers", Value::Object(servers), &at("mcp_servers"), "mcp_servers");
    }
    let is_set = |name: &str| variables.get(name).is_some_and(|value| !value.trim().is_empty());
    let has_claude =
        ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"].iter().any(|name| is_set(name));
    let provider_name = config.get("model_provider").and_then(Value::as_str).unwrap_or("openai");
    let provider = config.get("model_providers").and_then(|all| all.get(provider_name));
    let text = |field: &str| provider.and_then(|provider| provider.get(field)).and_then(Value::as_str);
    let key = text("env_key").unwrap_or("OPENAI_API_KEY");
    let has_access =
        is_set(key) || (provider.is_some() && text("env_key").is_none()) || is_set("OPENAI_BASE_URL");
    if has_claude || !has_access {
        let reason = if has_claude { "you have a key for Claude" } else { "there is no key for it" };
        taken.unused.extend(config.get("model").map(|_| format!("model ({reason})")));
    } else {
        if let Some(model) = config.get("model") {
            taken.push("model", model.clone(), &at("model"), "model");
        }
        let base = text("base_url").or_else(|| config.get("openai_base_url").and_then(Value::as_str));
        if let Some(base) = base.filter(|_| !is_set("OPENAI_BASE_URL")) {
            taken.push("openai.base_url", json!(base), &at("base_url"), "base_url");
        }
        if key != "OPENAI_API_KEY" {
            taken.push("openai.key_variable", json!(key), &at("env_key"), "env_key");
        }
        if provider.is_some() {
            let dialect = if text("wire_api") == Some("responses") { "openai" } else { "chat" };
            taken.push("provider", json!(dialect), &at("model_provider"), "model_provider");
        }
    }
    for name in ["approval_policy", "sandbox_mode", "notify", "profile"] {
        taken.unused.extend(config.get(name).map(|_| name.to_owned()));
    }
    taken
}

/// A server of Codex in the format of `.mcp.json`.
fn server_of(server: &Value) -> Value {
    let mut fields = Map::new();
    let seconds = |value: &Value| value.as_f64().map(|seconds| json!((seconds * 1_000.0) as u64));
    for (name, value) in server.as_object().into_iter().flatten() {
        match name.as_str() {
            "command" | "args" | "env" | "cwd" | "url" => drop(fields.insert(name.clone(), value.clone())),
            "http_headers" => drop(fields.insert(String::from("headers"), value.clone())),
            "enabled" => drop(fields.insert(String::from("disabled"), json!(value == &Value::Bool(false)))),
            "startup_timeout_sec" => {
                fields.extend(seconds(value).map(|limit| (String::from("startup_timeout"), limit)));
            }
            "tool_timeout_sec" => fields.extend(seconds(value).map(|limit| (String::from("timeout"), limit))),
            "bearer_token_env_var" => {
                let token =
                    value.as_str().map(|name| json!({"Authorization": format!("Bearer ${{{name}}}")}));
                fields.extend(token.map(|headers| (String::from("headers"), headers)));
            }
            "env_vars" => {
                let names = value.as_array().into_iter().flatten().filter_map(Value::as_str);
                let listed: Map<String, Value> =
                    names.map(|name| (name.to_owned(), json!(format!("${{{name}:-}}")))).collect();
                fields.entry("env").or_insert(Value::Object(listed));
            }
            _ => {}
        }
    }
    if fields.contains_key("url") {
        fields.insert(String::from("type"), json!("http"));
    }
    Value::Object(fields)
}
