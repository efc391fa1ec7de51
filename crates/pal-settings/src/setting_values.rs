//! Entries as the types that the program works with. What is here was checked by its kind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pal_view::CompactionThreshold;
use serde_json::Value;
use smol_str::SmolStr;

use crate::resolve::SettingEntry;
use crate::sources::{ResolvedSetting, SettingOrigin, absolute};

/// Looks values up by the names of their settings.
pub(crate) struct SettingValues<'a> {
    pub(crate) entries: &'a [SettingEntry],
    /// The user's home, for paths that begin with `~/`.
    pub(crate) home: Option<&'a Path>,
}

impl SettingValues<'_> {
    fn entry(&self, name: &str) -> Option<&SettingEntry> {
        let entry = self.entries.iter().find(|entry| entry.key.name == name);
        debug_assert!(entry.is_some(), "there is no setting {name}");
        entry
    }

    pub(crate) fn value(&self, name: &str) -> Value {
        self.entry(name).map_or(Value::Null, SettingEntry::value)
    }

    /// Where a setting comes from that does not add up.
    pub(crate) fn origin(&self, name: &str) -> Option<&SettingOrigin> {
        self.entry(name)?.parts.last().map(|part| &part.origin)
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.value(name).as_bool().unwrap_or(false)
    }

    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        self.value(name).as_u64()
    }

    /// Integers of a table, by name.
    pub(crate) fn counts(&self, name: &str) -> BTreeMap<SmolStr, u64> {
        let value = self.value(name);
        let named = value.as_object().into_iter().flatten();
        named.filter_map(|(name, value)| Some((SmolStr::new(name), value.as_u64()?))).collect()
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.value(name).as_f64()
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.value(name).as_str().map(str::to_owned)
    }

    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let value = self.value(name);
        let items = value.as_array().into_iter().flatten();
        items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }

    /// Texts of a table, by name.
    pub(crate) fn texts_by_name(&self, name: &str) -> BTreeMap<String, String> {
        let value = self.value(name);
        let named = value.as_object().into_iter().flatten();
        named.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    }

    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        absolute(&self.text(name)?, self.home)
    }

    pub(crate) fn paths(&self, name: &str) -> Vec<PathBuf> {
        self.texts(name).iter().filter_map(|path| absolute(path, self.home)).collect()
    }

    /// The items of a list that adds up, each with its origin.
    pub(crate) fn items(&self, name: &str) -> Vec<ResolvedSetting<String>> {
        let parts = self.entry(name).map(|entry| entry.parts.as_slice()).unwrap_or_default();
        let items = parts.iter().flat_map(|part| {
            let items = part.value.as_array().into_iter().flatten().filter_map(Value::as_str);
            items.map(|item| ResolvedSetting { value: item.to_owned(), origin: part.origin.clone() })
        });
        items.collect()
    }

    /// Values of each source for a setting that accumulates.
    pub(crate) fn parts(&self, name: &str) -> &[ResolvedSetting<Value>] {
        self.entry(name).map(|entry| entry.parts.as_slice()).unwrap_or_default()
    }
}

/// Where to compact.
pub(crate) fn threshold(value: &Value) -> Option<CompactionThreshold> {
    let (name, value) = value.as_object()?.iter().next()?;
    match name.as_str() {
        "used" => value.as_u64().map(CompactionThreshold::Used),
        "left" => value.as_u64().map(CompactionThreshold::Left),
        _ => value.as_f64().map(CompactionThreshold::Percent),
    }
}
