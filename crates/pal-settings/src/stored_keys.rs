//! API keys that `pal login` stored, in a file that only the user can read.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};

use crate::error::SettingsError;
use crate::resolve::SettingEntry;
use crate::sources::{ResolvedSetting, SettingOrigin, SettingsSource};
use crate::text_file::{replace_text, text_of};

/// Name of the file in the home directory.
pub const KEYS_FILE: &str = "keys.json";

/// Stored keys.
#[derive(Clone, Default, Debug)]
pub(crate) struct StoredKeys {
    pub(crate) anthropic: Option<SecretString>,
    pub(crate) openai: Option<SecretString>,
}

impl StoredKeys {
    pub(crate) fn read(home: &Path) -> Result<StoredKeys, SettingsError> {
        let path = home.join(KEYS_FILE);
        let mut keys = read_keys(&path).map_err(|error| SettingsError::Unreadable { path, error })?;
        let mut key = |provider: &str| keys.remove(provider).map(SecretString::from);
        Ok(StoredKeys { anthropic: key("anthropic"), openai: key("openai") })
    }

    /// Marks the settings of stored keys as set, where no variable sets them.
    pub(crate) fn show_in(&self, entries: &mut [SettingEntry], home: Option<&Path>) {
        let Some(home) = home else { return };
        let stored = [("anthropic.api_key", &self.anthropic), ("openai.api_key", &self.openai)];
        for (name, _) in stored.into_iter().filter(|(_, key)| key.is_some()) {
            for entry in entries.iter_mut().filter(|entry| entry.key.name == name && !entry.is_set()) {
                let origin =
                    SettingOrigin::new(SettingsSource::User, home.join(KEYS_FILE).display().to_string());
                entry.parts = vec![ResolvedSetting { value: "set".into(), origin }];
            }
        }
    }
}

/// Stores the key of a provider, or removes it; returns the file.
pub fn store_key(home: &Path, provider: &str, key: Option<&SecretString>) -> std::io::Result<PathBuf> {
    let path = home.join(KEYS_FILE);
    let mut keys = read_keys(&path)?;
    match key {
        Some(key) => drop(keys.insert(provider.to_owned(), key.expose_secret().to_owned())),
        None => drop(keys.remove(provider)),
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(home)?;
    replace_text(&path, &serde_json::to_string_pretty(&keys)?)?;
    Ok(path)
}

fn read_keys(path: &Path) -> std::io::Result<BTreeMap<String, String>> {
    match text_of(path) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|error| std::io::Error::other(format!("not valid JSON: {error}"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn keys_are_private_and_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let path = store_key(&home, "anthropic", Some(&SecretString::from("sk-one"))).unwrap();
        store_key(&home, "openai", Some(&SecretString::from("sk-two"))).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&home)), (0o600, 0o700));
        let keys = StoredKeys::read(&home).unwrap();
        assert_eq!(keys.anthropic.unwrap().expose_secret(), "sk-one");
        store_key(&home, "anthropic", None).unwrap();
        let keys = StoredKeys::read(&home).unwrap();
        assert!(keys.anthropic.is_none() && keys.openai.is_some());
        std::fs::write(&path, "{").unwrap();
        assert!(StoredKeys::read(&home).is_err(), "a damaged file is not an empty one");
    }
}
