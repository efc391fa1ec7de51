//! API keys that `pal login` stored: in a file that only the user can read, or in the keyring of the system.

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

/// Value in the file for a key that is in the keyring of the system.
const IN_KEYRING: &str = "keyring";

/// A stored key; its `Debug` form is masked.
#[derive(Clone, Debug)]
pub enum StoredKey {
    /// The key itself, from the file.
    File(SecretString),
    /// The keyring of the system has it.
    Keyring,
}

/// Stored keys.
#[derive(Clone, Default, Debug)]
pub(crate) struct StoredKeys {
    pub(crate) anthropic: Option<StoredKey>,
    pub(crate) openai: Option<StoredKey>,
}

impl StoredKeys {
    pub(crate) fn read(home: &Path) -> Result<StoredKeys, SettingsError> {
        let path = home.join(KEYS_FILE);
        let mut keys = read_keys(&path).map_err(|error| SettingsError::Unreadable { path, error })?;
        let mut key = |provider: &str| keys.remove(provider).map(StoredKey::from_text);
        Ok(StoredKeys { anthropic: key("anthropic"), openai: key("openai") })
    }

    /// Marks the settings of stored keys as set, where no variable sets them.
    pub(crate) fn show_in(&self, entries: &mut [SettingEntry], home: Option<&Path>) {
        let Some(home) = home else { return };
        let stored = [("anthropic.api_key", &self.anthropic), ("openai.api_key", &self.openai)];
        for (name, key) in stored {
            let place = match key {
                None => continue,
                Some(StoredKey::File(_)) => home.join(KEYS_FILE).display().to_string(),
                Some(StoredKey::Keyring) => String::from("the system keyring"),
            };
            for entry in entries.iter_mut().filter(|entry| entry.key.name == name && !entry.is_set()) {
                let origin = SettingOrigin::new(SettingsSource::User, place.clone());
                entry.parts = vec![ResolvedSetting { value: "set".into(), origin }];
            }
        }
    }
}

impl StoredKey {
    fn from_text(text: String) -> StoredKey {
        match text == IN_KEYRING {
            true => StoredKey::Keyring,
            false => StoredKey::File(SecretString::from(text)),
        }
    }

    fn text(&self) -> &str {
        match self {
            StoredKey::File(key) => key.expose_secret(),
            StoredKey::Keyring => IN_KEYRING,
        }
    }
}

/// Returns the stored key of a provider.
pub fn find_stored_key(home: &Path, provider: &str) -> std::io::Result<Option<StoredKey>> {
    Ok(read_keys(&home.join(KEYS_FILE))?.remove(provider).map(StoredKey::from_text))
}

/// Stores the key of a provider in the file, or notes there that the keyring has it, or removes it; returns the file.
pub fn store_key(home: &Path, provider: &str, key: Option<&StoredKey>) -> std::io::Result<PathBuf> {
    let path = home.join(KEYS_FILE);
    let mut keys = read_keys(&path)?;
    match key {
        Some(key) => drop(keys.insert(provider.to_owned(), key.text().to_owned())),
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
        let file = |key: &str| StoredKey::File(SecretString::from(key));
        let path = store_key(&home, "anthropic", Some(&file("sk-one"))).unwrap();
        store_key(&home, "openai", Some(&file("sk-two"))).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&home)), (0o600, 0o700));
        let keys = StoredKeys::read(&home).unwrap();
        assert!(matches!(keys.anthropic, Some(StoredKey::File(key)) if key.expose_secret() == "sk-one"));
        store_key(&home, "anthropic", Some(&StoredKey::Keyring)).unwrap();
        assert!(!std::fs::read_to_string(&path).unwrap().contains("sk-one"));
        assert!(matches!(find_stored_key(&home, "anthropic").unwrap(), Some(StoredKey::Keyring)));
        store_key(&home, "anthropic", None).unwrap();
        let keys = StoredKeys::read(&home).unwrap();
        assert!(keys.anthropic.is_none() && keys.openai.is_some());
        std::fs::write(&path, "{").unwrap();
        assert!(StoredKeys::read(&home).is_err(), "a damaged file is not an empty one");
    }
}
