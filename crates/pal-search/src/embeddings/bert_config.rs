//! Configuration of a model, and the check that it is supported.

use std::fmt;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::embeddings::error::EmbedError;

/// Dimensions of a model.
#[derive(Clone, Deserialize)]
pub(crate) struct BertConfig {
    model_type: String,
    hidden_act: String,
    #[serde(default)]
    position_embedding_type: Option<String>,
    /// Size of a token vector.
    #[serde(rename = "hidden_size")]
    pub(crate) width: usize,
    /// Size of the hidden layer in a transformer block.
    #[serde(rename = "intermediate_size")]
    pub(crate) inner_width: usize,
    #[serde(rename = "num_attention_heads")]
    pub(crate) n_heads: usize,
    #[serde(rename = "num_hidden_layers")]
    pub(crate) n_layers: usize,
    #[serde(rename = "max_position_embeddings")]
    pub(crate) n_positions: usize,
    #[serde(rename = "type_vocab_size")]
    pub(crate) n_types: usize,
    #[serde(rename = "layer_norm_eps")]
    pub(crate) epsilon: f32,
}

/// Part of a model's identity, which stored vectors depend on: names and order must not change.
impl fmt::Debug for BertConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Config")
            .field("model_type", &self.model_type)
            .field("hidden_act", &self.hidden_act)
            .field("position_embedding_type", &self.position_embedding_type)
            .field("width", &self.width)
            .field("inner_width", &self.inner_width)
            .field("n_heads", &self.n_heads)
            .field("n_layers", &self.n_layers)
            .field("n_positions", &self.n_positions)
            .field("n_types", &self.n_types)
            .field("epsilon", &self.epsilon)
            .finish()
    }
}

impl BertConfig {
    /// Reads `config.json` and checks the tokenizer and pooling files beside it.
    pub(crate) fn read(folder: &Path) -> Result<BertConfig, EmbedError> {
        let path = folder.join("config.json");
        let text = fs::read(&path).map_err(EmbedError::read(&path))?;
        let config: BertConfig =
            serde_json::from_slice(&text).map_err(|error| EmbedError::broken(&path, error.to_string()))?;
        config.check(&path)?;
        // A cased model, or one with other pooling, would run but give useless vectors.
        refuse_if_false(&folder.join("tokenizer_config.json"), "do_lower_case", "it tells capitals apart")?;
        refuse_if_false(
            &folder.join("1_Pooling/config.json"),
            "pooling_mode_mean_tokens",
            "its vector is not the mean over all tokens",
        )?;
        Ok(config)
    }

    fn check(&self, path: &Path) -> Result<(), EmbedError> {
        let positions = self.position_embedding_type.as_deref().unwrap_or("absolute");
        let what = match () {
            () if self.model_type != "bert" => format!("its type is {}, not bert", self.model_type),
            () if self.hidden_act != "gelu" => format!("its activation is {}, not gelu", self.hidden_act),
            () if positions != "absolute" => format!("its positions are {positions}, not absolute"),
            () if self.n_heads == 0 || self.width == 0 || !self.width.is_multiple_of(self.n_heads) => {
                format!("{} heads do not share {} numbers evenly", self.n_heads, self.width)
            }
            () if self.n_positions < 2 || self.n_types == 0 => String::from("it takes no tokens"),
            () => return Ok(()),
        };
        Err(EmbedError::foreign(path, what))
    }
}

/// Refuses a model if an optional file sets a flag to false.
fn refuse_if_false(path: &Path, key: &str, what: &str) -> Result<(), EmbedError> {
    let value: Option<Value> = fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    match value.and_then(|value| value.get(key)?.as_bool()) {
        Some(false) => Err(EmbedError::foreign(path, what)),
        _ => Ok(()),
    }
}
