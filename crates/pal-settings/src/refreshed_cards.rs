//! Model cards from a provider's Models endpoint, kept between the built-in table and the user's `models.toml`.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use pal_model::ModelCatalog;

use crate::ProviderEndpoints;
use crate::text_file::{replace_text, text_of};

/// Start of the names of all these files.
pub const REFRESHED_CARDS_PREFIX: &str = "refreshed-models-";

/// Cards that one server reported, in a file of the home directory. Servers of the same name for a model may give it other windows.
#[derive(Clone, Debug)]
pub struct RefreshedCards {
    path: PathBuf,
}

impl RefreshedCards {
    /// Uses the file of a provider, or of a server of its dialect at another address, in a home directory; it need not
    /// exist.
    pub fn in_home(home: &Path, provider: &str, base_url: Option<&str>) -> RefreshedCards {
        let server = base_url.map_or(String::new(), |address| {
            let hash = blake3::hash(address.trim_end_matches('/').as_bytes());
            format!("-{}", &hash.to_hex()[..8])
        });
        RefreshedCards { path: home.join(format!("{REFRESHED_CARDS_PREFIX}{provider}{server}.toml")) }
    }

    /// The files of the servers that these endpoints name, by provider.
    pub fn of_endpoints(home: &Path, endpoints: &ProviderEndpoints) -> [(&'static str, RefreshedCards); 2] {
        [("anthropic", &endpoints.anthropic), ("openai", &endpoints.openai)].map(|(provider, base_url)| {
            (provider, RefreshedCards::in_home(home, provider, base_url.as_deref()))
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Time since the last refresh; none if there was none.
    pub fn age(&self) -> Option<Duration> {
        let written = std::fs::metadata(&self.path).and_then(|known| known.modified()).ok()?;
        Some(SystemTime::now().duration_since(written).unwrap_or_default())
    }

    /// Replaces the cards by a table in the format of `models.toml`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write(&self, table: &str) -> std::io::Result<()> {
        replace_text(
            &self.path,
            &format!("# Written by `pal models --refresh`; models.toml goes before it.\n{table}"),
        )
    }

    /// Returns a catalog with these cards; the same if there are none or the file is damaged.
    pub fn apply(&self, cards: ModelCatalog) -> ModelCatalog {
        let refreshed = text_of(&self.path).ok().and_then(|table| cards.with_overrides(&table).ok());
        refreshed.unwrap_or(cards)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn cards_are_kept_in_a_private_file() {
        let home = tempfile::tempdir().unwrap();
        let refreshed = RefreshedCards::in_home(home.path(), "anthropic", None);
        let window = || refreshed.apply(ModelCatalog::built_in()).find("claude-opus-5-5").card.window;
        assert_eq!((window(), refreshed.age()), (1_000_000, None));
        refreshed.write("[models.claude-opus-5-5]\nwindow = 500_000\n").unwrap();
        assert_eq!(window(), 500_000);
        assert!(refreshed.age().is_some());
        let other = RefreshedCards::in_home(home.path(), "anthropic", Some("http://127.0.0.1:8080/"));
        assert_eq!(other.apply(ModelCatalog::built_in()).find("claude-opus-5-5").card.window, 1_000_000);
        assert_eq!(other.age(), None, "each server is asked");
        let same = RefreshedCards::in_home(home.path(), "anthropic", Some("http://127.0.0.1:8080"));
        assert_eq!(same.path(), other.path());
        let mode = std::fs::metadata(refreshed.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(refreshed.path(), "[models").unwrap();
        assert_eq!(window(), 1_000_000);
    }
}
