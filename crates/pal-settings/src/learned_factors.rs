//! Correction factors of token estimates (§10.7), learned from reported usage, by endpoint and model.
//!
//! The next session with the same model at the same endpoint starts with what earlier ones found out. The file is kept in
//! the home directory; deleting it forgets everything.

use std::path::Path;

use pal_view::Calibration;

use crate::endpoint_table::EndpointTable;

/// Name of the file in the home directory.
const FILE: &str = "learned-factors.json";

/// The learned factors of a home directory.
#[derive(Clone, Debug)]
pub struct LearnedFactors(EndpointTable<Calibration>);

impl LearnedFactors {
    /// Uses the file of a home directory; it need not exist.
    pub fn in_home(home: &Path) -> LearnedFactors {
        LearnedFactors(EndpointTable::new(home.join(FILE)))
    }

    /// Observations for a model at an endpoint; none yet if there are none or the file is unreadable.
    pub fn find(&self, endpoint: &str, model: &str) -> Calibration {
        self.0.find(endpoint, model).unwrap_or_default()
    }

    /// Adds an observation: a raw estimate, and the tokens that the provider reported for the same content.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn observe(&self, endpoint: &str, model: &str, estimated: f64, reported: u64) -> std::io::Result<()> {
        self.0.change(endpoint, model, |known| known.observe(estimated, reported)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use pal_model::TokenGeneration;
    use pal_view::CorrectionFactor;

    use super::*;

    #[test]
    fn factors_are_kept_by_endpoint_and_model() {
        let home = tempfile::tempdir().unwrap();
        let factors = LearnedFactors::in_home(home.path());
        let factor = |endpoint: &str, model: &str| {
            u32::from(factors.find(endpoint, model).factor_for(TokenGeneration::Neutral))
        };
        assert_eq!(factor("http://a/v1", "m"), u32::from(CorrectionFactor::ONE));
        factors.observe("http://a/v1", "m", 1_000.0, 800).unwrap();
        factors.observe("http://a/v1", "other", 1_000.0, 1_200).unwrap();
        // Too little to learn from.
        factors.observe("http://a/v1", "m", 10.0, 40).unwrap();
        assert_eq!((factor("http://a/v1", "m"), factor("http://a/v1", "other")), (8_000, 12_000));
        assert_eq!(factor("http://b/v1", "m"), u32::from(CorrectionFactor::ONE));
        let mode = fs::metadata(home.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(home.path().join(FILE), "{").unwrap();
        assert_eq!(factor("http://a/v1", "m"), u32::from(CorrectionFactor::ONE));
    }
}
