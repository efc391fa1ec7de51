//! What a model says of itself, and whether it is one of those that can be run here.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::error::EmbedError;

/// The measures of a model.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Config {
    model_type: String,
    hidden_act: String,
    #[serde(default)]
    position_embedding_type: Option<String>,
    /// Numbers that a token is made of.
    #[serde(rename = "hidden_size")]
    pub(crate) width: usize,
    /// The same in the middle of a layer.
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

impl Config {
    /// Reads `config.json` and what stands beside it about words and pooling.
    pub(crate) fn read(folder: &Path) -> Result<Config, EmbedError> {
        let path = folder.join("config.json");
        let text = fs::read(&path).map_err(EmbedError::read(&path))?;
        let config: Config =
            serde_json::from_slice(&text).map_err(|error| EmbedError::broken(&path, error.to_string()))?;
        config.check(&path)?;
        // A model for text with capitals, or with another mean, would run and give vectors that are worth nothing.
        refuse(&folder.join("tokenizer_config.json"), "do_lower_case", "it tells capitals apart")?;
        refuse(
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

/// Refuses a model if a file of it, which may be missing, says no to something.
fn refuse(path: &Path, key: &str, what: &str) -> Result<(), EmbedError> {
    let value: Option<Value> = fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    match value.and_then(|value| value.get(key)?.as_bool()) {
        Some(false) => Err(EmbedError::foreign(path, what)),
        _ => Ok(()),
    }
}
