//! A file in the home directory with one value for each endpoint and model.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::text_file::{replace_text, text_of};

/// The file. An unreadable one counts as empty and is replaced by the next change.
#[derive(Clone, Debug)]
pub(crate) struct EndpointTable<T> {
    path: PathBuf,
    values: PhantomData<T>,
}

impl<T: Clone + Default + PartialEq + Serialize + DeserializeOwned> EndpointTable<T> {
    pub(crate) fn new(path: PathBuf) -> EndpointTable<T> {
        EndpointTable { path, values: PhantomData }
    }

    pub(crate) fn find(&self, endpoint: &str, model: &str) -> Option<T> {
        self.read().remove(endpoint)?.remove(model)
    }

    /// Changes a value, which starts with its default; returns true if that made a difference, which is on disk then.
    pub(crate) fn change(
        &self,
        endpoint: &str,
        model: &str,
        change: impl FnOnce(&mut T),
    ) -> std::io::Result<bool> {
        let mut table = self.read();
        let value = table.entry(endpoint.to_owned()).or_default().entry(model.to_owned()).or_default();
        let before = value.clone();
        change(value);
        if *value == before {
            return Ok(false);
        }
        replace_text(&self.path, &serde_json::to_string_pretty(&table)?)?;
        Ok(true)
    }

    fn read(&self) -> BTreeMap<String, BTreeMap<String, T>> {
        text_of(&self.path).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }
}
