//! AWS Signature Version 4 for requests with a body.

use std::fmt;

use ring::{digest, hmac};
use secrecy::{ExposeSecret, SecretString};

/// Algorithm name in signatures.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// AWS credentials. Their debug form shows no secret.
#[derive(Clone)]
pub struct AwsCredentials {
    access_key_id: SecretString,
    secret_access_key: SecretString,
    session_token: Option<SecretString>,
}

impl AwsCredentials {
    /// Creates credentials; temporary ones have a session token.
    pub fn new(
        access_key_id: SecretString,
        secret_access_key: SecretString,
        session_token: Option<SecretString>,
    ) -> AwsCredentials {
        AwsCredentials { access_key_id, secret_access_key, session_token }
    }

    /// Reads the credentials of a profile from the text of an AWS credentials file.
    pub fn from_profile(text: &str, profile: &str) -> Option<AwsCredentials> {
        let heading = format!("[{profile}]");
        let lines = text.lines().map(str::trim).skip_while(|line| *line != heading).skip(1);
        let fields: Vec<(&str, &str)> = lines
            .take_while(|line| !line.starts_with('['))
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.trim(), value.trim()))
            .collect();
        let field = |name: &str| fields.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        Some(AwsCredentials::new(
            field("aws_access_key_id")?.into(),
            field("aws_secret_access_key")?.into(),
            field("aws_session_token").map(SecretString::from),
        ))
    }

    /// Secret to mask in messages.
    pub(crate) fn secret(&self) -> &SecretString {
        &self.secret_access_key
    }
}

impl fmt::Debug for AwsCredentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AwsCredentials(***)")
    }
}

/// Scope of a signature.
pub(super) struct SigningScope<'a> {
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    /// Time as `YYYYMMDDTHHMMSSZ`.
    pub(super) time: &'a str,
}

/// Returns the headers to add to a request without a query: time, session token and authorization. `headers` are those
/// that the request has already and that are signed, with lower-case names.
pub(super) fn sign(
    scope: &SigningScope<'_>,
    credentials: &AwsCredentials,
    method: &str,
    path: &str,
    headers: &[(&'static str, &str)],
    body: &[u8],
) -> Vec<(&'static str, String)> {
    let mut added = vec![("x-amz-date", scope.time.to_owned())];
    added.extend(
        credentials
            .session_token
            .iter()
            .map(|token| ("x-amz-security-token", token.expose_secret().to_owned())),
    );
    let mut signed: Vec<(&str, &str)> = headers.to_vec();
    signed.extend(added.iter().map(|(name, value)| (*name, value.as_str())));
    signed.sort_unstable();
    let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let lines: String = signed.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    // Services other than S3 sign the path encoded once more.
    let canonical = format!("{method}\n{}\n\n{lines}\n{names}\n{}", encode_path(path), hex_digest(body));
    let date = scope.time.get(..8).unwrap_or(scope.time);
    let place = format!("{date}/{}/{}/aws4_request", scope.region, scope.service);
    let text = format!("{ALGORITHM}\n{}\n{place}\n{}", scope.time, hex_digest(canonical.as_bytes()));
    let mut key = format!("AWS4{}", credentials.secret_access_key.expose_secret()).into_bytes();
    for part in [date, scope.region, scope.service, "aws4_request", &text] {
        key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
    }
    added.push((
        "authorization",
        format!(
            "{ALGORITHM} Credential={}/{place}, SignedHeaders={names}, Signature={}",
            credentials.access_key_id.expose_secret(),
            hex(&key)
        ),
    ));
    added
}

fn encode_path(path: &str) -> String {
    path.split('/').map(super::percent_encode).collect::<Vec<_>>().join("/")
}

fn hex_digest(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(
        method: &str,
        path: &str,
        service: &str,
        token: Option<&str>,
        headers: &[(&'static str, &str)],
    ) -> String {
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        let credentials =
            AwsCredentials::new("AKIDEXAMPLE".into(), secret.into(), token.map(SecretString::from));
        let scope = SigningScope { region: "us-east-1", service, time: "20150830T123600Z" };
        let added = sign(&scope, &credentials, method, path, headers, b"");
        added.last().unwrap().1.clone()
    }

    /// Vectors of the AWS Signature Version 4 test suite.
    #[test]
    fn published_vectors_are_met() {
        let host = [("host", "example.amazonaws.com")];
        assert_eq!(
            signature("GET", "/", "service", None, &host),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
        assert!(
            signature("POST", "/", "service", None, &host)
                .ends_with("Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b")
        );
    }

    #[test]
    fn the_session_token_is_signed_and_paths_are_encoded_twice() {
        let host = [("host", "h")];
        let plain = signature("POST", "/model/a%3A0/invoke", "bedrock", None, &host);
        let with_token = signature("POST", "/model/a%3A0/invoke", "bedrock", Some("token"), &host);
        assert!(with_token.contains("SignedHeaders=host;x-amz-date;x-amz-security-token,"), "{with_token}");
        assert_ne!(plain, with_token);
        assert_eq!(encode_path("/model/a%3A0/invoke"), "/model/a%253A0/invoke");
    }

    #[test]
    fn profiles_are_read_from_a_credentials_file() {
        let text = "[default]\naws_access_key_id = AKIA1\naws_secret_access_key = canary1\n\n[work]\n# mine\n\
                    aws_secret_access_key=canary2\naws_access_key_id=AKIA2\naws_session_token=t\n";
        let work = AwsCredentials::from_profile(text, "work").unwrap();
        assert_eq!((work.access_key_id.expose_secret(), work.secret().expose_secret()), ("AKIA2", "canary2"));
        assert_eq!(work.session_token.as_ref().map(|token| token.expose_secret()), Some("t"));
        assert!(AwsCredentials::from_profile(text, "default").unwrap().session_token.is_none());
        assert!(AwsCredentials::from_profile(text, "other").is_none());
        assert_eq!(format!("{work:?}"), "AwsCredentials(***)");
    }
}
