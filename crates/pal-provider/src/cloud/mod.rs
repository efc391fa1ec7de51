//! Claude on Amazon Bedrock and Google Vertex AI: the Messages dialect at other addresses, with other keys.
//!
//! A call is encoded once for the Messages API. Here its model moves from the body to the path, the version and the beta
//! headers move into the body, and the request is signed (Bedrock) or gets an access token (Vertex). Answers of Bedrock come
//! in binary frames, which become the events of the Messages API again.

mod aws_signature;
mod event_frames;
mod google_token;

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pal_model::{escape_into, member_string, object_fields};
use pal_wire::{FailureKind, ProviderFailure};
use reqwest::Url;

use crate::api_key::ApiKey;

pub use aws_signature::AwsCredentials;
pub(crate) use event_frames::EventFrameDecoder;
pub use google_token::{GoogleCredentials, GoogleCredentialsError};

/// Version of the Messages API in requests to Bedrock.
const BEDROCK_VERSION: &str = "bedrock-2023-05-31";

/// Version of the Messages API in requests to Vertex.
const VERTEX_VERSION: &str = "vertex-2023-10-16";

/// Members of a Messages request that these platforms take elsewhere or do not know.
const MOVED_MEMBERS: [&str; 3] = ["model", "stream", "diagnostics"];

/// Platform that offers the Messages dialect at its own addresses. Its debug form shows no secret.
#[derive(Clone, Debug)]
pub enum CloudPlatform {
    /// Amazon Bedrock, InvokeModel.
    Bedrock {
        /// AWS region.
        region: String,
        /// Credentials that sign requests.
        credentials: AwsCredentials,
        /// Ids of models on the platform, by name; a name without one is the id.
        models: BTreeMap<String, String>,
    },
    /// Google Vertex AI, rawPredict.
    Vertex {
        /// Google Cloud project.
        project: String,
        /// Region, or `global`.
        region: String,
        /// Credentials that access tokens come from.
        credentials: GoogleCredentials,
        /// Ids of models on the platform, by name; a name without one is the id.
        models: BTreeMap<String, String>,
    },
}

/// A request as a platform takes it, without its authorization.
#[derive(Debug, PartialEq)]
pub(crate) struct PlatformRequest {
    /// Path, percent-encoded.
    pub(crate) path: String,
    pub(crate) body: String,
    /// Value of the `accept` header.
    pub(crate) accept: &'static str,
}

impl CloudPlatform {
    /// Returns the base address of the platform in its region.
    pub fn address(&self) -> String {
        match self {
            CloudPlatform::Bedrock { region, .. } => {
                format!("https://bedrock-runtime.{region}.amazonaws.com")
            }
            CloudPlatform::Vertex { region, .. } if region == "global" => {
                String::from("https://aiplatform.googleapis.com")
            }
            CloudPlatform::Vertex { region, .. } => format!("https://{region}-aiplatform.googleapis.com"),
        }
    }

    /// Secret to mask in messages.
    pub(crate) fn masked_key(&self) -> Option<ApiKey> {
        match self {
            CloudPlatform::Bedrock { credentials, .. } => Some(ApiKey::Api(credentials.secret().clone())),
            CloudPlatform::Vertex { .. } => None,
        }
    }

    /// Translates a Messages call; `betas` are those of its header.
    pub(crate) fn translate(
        &self,
        path: &str,
        body: &str,
        betas: &[&str],
        stream: bool,
    ) -> Result<PlatformRequest, Box<ProviderFailure>> {
        let refuse = |what: &str| Box::new(ProviderFailure::new(FailureKind::Invalid, what.to_owned()));
        let fields = object_fields(body).map_err(|_| refuse("the request is no JSON object"))?;
        let name = member_string(&fields, "model").ok_or_else(|| refuse("the request names no model"))?;
        let (models, version) = match self {
            CloudPlatform::Bedrock { models, .. } => (models, BEDROCK_VERSION),
            CloudPlatform::Vertex { models, .. } => (models, VERTEX_VERSION),
        };
        let id = models.get(name.as_ref()).map_or(name.as_ref(), String::as_str);
        let path = match (self, path.split('?').next().unwrap_or(path)) {
            (CloudPlatform::Bedrock { .. }, "/v1/messages") => {
                let verb = if stream { "invoke-with-response-stream" } else { "invoke" };
                format!("/model/{}/{verb}", percent_encode(id))
            }
            (CloudPlatform::Vertex { project, region, .. }, "/v1/messages") => {
                let verb = if stream { "streamRawPredict" } else { "rawPredict" };
                let (project, region) = (percent_encode(project), percent_encode(region));
                format!(
                    "/v1/projects/{project}/locations/{region}/publishers/anthropic/models/{}:{verb}",
                    percent_encode(id)
                )
            }
            (_, other) => return Err(refuse(&format!("this platform does not offer {other}"))),
        };
        let accept = match self {
            CloudPlatform::Bedrock { .. } if stream => "application/vnd.amazon.eventstream",
            CloudPlatform::Vertex { .. } if stream => "text/event-stream",
            _ => "application/json",
        };
        let is_kept = |name: &str| match self {
            // Vertex takes the stream flag in the body.
            CloudPlatform::Vertex { .. } if name == "stream" => true,
            _ => !MOVED_MEMBERS.contains(&name),
        };
        let mut text = format!(r#"{{"anthropic_version":"{version}""#);
        if !betas.is_empty() {
            text.push_str(r#","anthropic_beta":["#);
            for (at, beta) in betas.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                escape_into(&mut text, beta);
            }
            text.push(']');
        }
        for (name, value) in fields.iter().filter(|(name, _)| is_kept(name)) {
            text.push(',');
            escape_into(&mut text, name);
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        Ok(PlatformRequest { path, body: text, accept })
    }

    /// Returns the headers that sign a request to Bedrock at a time (`YYYYMMDDTHHMMSSZ`); none for Vertex, whose
    /// requests carry a token.
    pub(crate) fn signature(
        &self,
        url: &Url,
        request: &PlatformRequest,
        time: &str,
    ) -> Vec<(&'static str, String)> {
        let CloudPlatform::Bedrock { region, credentials, .. } = self else { return Vec::new() };
        let host = match (url.host_str().unwrap_or_default(), url.port()) {
            (host, Some(port)) => format!("{host}:{port}"),
            (host, None) => host.to_owned(),
        };
        let scope = aws_signature::SigningScope { region, service: "bedrock", time };
        let headers = [("content-type", "application/json"), ("host", host.as_str())];
        aws_signature::sign(&scope, credentials, "POST", url.path(), &headers, request.body.as_bytes())
    }
}

/// Encodes everything but unreserved characters, as AWS and Google do in path segments.
fn percent_encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte as char),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Decodes the payload of a chunk frame: `{"bytes":"BASE64"}` around one event of the Messages API.
fn chunk_event(payload: &str) -> Option<String> {
    let encoded = member_string(&object_fields(payload).ok()?, "bytes")?.into_owned();
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bedrock() -> CloudPlatform {
        CloudPlatform::Bedrock {
            region: String::from("us-west-2"),
            credentials: AwsCredentials::new("AKIDEXAMPLE".into(), "canary".into(), None),
            models: [("claude-opus-5-5".into(), "us.anthropic.claude-opus-5-5-v1:0".into())].into(),
        }
    }

    fn vertex(region: &str) -> CloudPlatform {
        CloudPlatform::Vertex {
            project: String::from("my-project"),
            region: String::from(region),
            credentials: GoogleCredentials::token("canary".into()),
            models: BTreeMap::new(),
        }
    }

    const BODY: &str = r#"{"model":"claude-opus-5-5","max_tokens":9,"stream":true,"diagnostics":{"previous_message_id":null},"messages":[{"role":"user","content":"a \"b\""}]}"#;

    #[test]
    fn a_call_becomes_that_of_its_platform() {
        let check = |platform: &CloudPlatform, stream, path: &str, body: &str, accept: &str| {
            let request =
                platform.translate("/v1/messages?beta=true", BODY, &["a-1", "b-2"], stream).unwrap();
            assert_eq!((request.path.as_str(), request.body.as_str(), request.accept), (path, body, accept));
        };
        let bedrock_body = r#"{"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["a-1","b-2"],"max_tokens":9,"messages":[{"role":"user","content":"a \"b\""}]}"#;
        check(
            &bedrock(),
            true,
            "/model/us.anthropic.claude-opus-5-5-v1%3A0/invoke-with-response-stream",
            bedrock_body,
            "application/vnd.amazon.eventstream",
        );
        check(
            &bedrock(),
            false,
            "/model/us.anthropic.claude-opus-5-5-v1%3A0/invoke",
            bedrock_body,
            "application/json",
        );
        check(
            &vertex("europe-west1"),
            true,
            "/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/claude-opus-5-5:streamRawPredict",
            r#"{"anthropic_version":"vertex-2023-10-16","anthropic_beta":["a-1","b-2"],"max_tokens":9,"stream":true,"messages":[{"role":"user","content":"a \"b\""}]}"#,
            "text/event-stream",
        );
        let plain = bedrock().translate("/v1/messages", r#"{"model":"m"}"#, &[], false).unwrap();
        assert_eq!(plain.body, r#"{"anthropic_version":"bedrock-2023-05-31"}"#);
        for (path, body) in
            [("/v1/messages", "[]"), ("/v1/messages", "{}"), ("/v1/models", r#"{"model":"m"}"#)]
        {
            assert!(bedrock().translate(path, body, &[], false).is_err(), "{path} {body}");
        }
    }

    #[test]
    fn addresses_depend_on_the_region_and_show_no_secret() {
        assert_eq!(bedrock().address(), "https://bedrock-runtime.us-west-2.amazonaws.com");
        assert_eq!(vertex("us-east5").address(), "https://us-east5-aiplatform.googleapis.com");
        assert_eq!(vertex("global").address(), "https://aiplatform.googleapis.com");
        assert!(!format!("{:?} {:?}", bedrock(), vertex("global")).contains("canary"));
    }
}
