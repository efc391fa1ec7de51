//! Secrets that have a form of their own.

use std::sync::LazyLock;

use regex::Regex;

use super::Secret;
use super::guess::is_placeholder;

/// What a secret is called, and what it looks like. Where there is a group, that is the secret.
const FORMS: &[(&str, &str)] = &[
    (
        "private key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----",
    ),
    (
        "private key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\n|>|[A-Za-z0-9-]+: [^\n]*\n)*(?:[A-Za-z0-9+/=]{16,}(?:\s|\\n|>)*)+",
    ),
    ("private key", r"Private-Lines: \d+\r?\n(?:[A-Za-z0-9+/=]{16,}\r?\n?)+"),
    ("age key", r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    ("anthropic key", r"\bsk-ant-[a-z0-9]{2,12}-[A-Za-z0-9_-]{20,}"),
    ("openrouter key", r"\bsk-or-(?:v1-)?[A-Za-z0-9_-]{20,}"),
    ("langfuse key", r"\bsk-lf-[0-9a-f-]{30,}"),
    ("openai key", r"\bsk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}"),
    ("openai key", r"\bsk-[A-Za-z0-9]{32,}\b"),
    ("google key", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("google token", r"\bya29\.[0-9A-Za-z_-]{20,}"),
    ("google secret", r"\bGOCSPX-[A-Za-z0-9_-]{24,}"),
    ("aws key id", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
    (
        "aws secret",
        r#"(?i)\baws[a-z_ .-]{0,20}(?:secret|key)[a-z_ .-]{0,20}["']?\s*(?:=>|[:=])\s*["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"#,
    ),
    ("azure key", r"(?i)\b(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}={0,2})"),
    ("azure signature", r"(?i)[?&]sig=([A-Za-z0-9%+/]{40,}(?:%3D|=))"),
    ("azure secret", r"\b[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    ("stripe key", r"\b(?:sk|rk)_(?:live|test)_[0-9A-Za-z]{16,}"),
    ("webhook secret", r"\bwhsec_[A-Za-z0-9+/=]{24,}"),
    ("slack token", r"\bxox[abceoprs]-[0-9A-Za-z-]{10,}"),
    ("slack token", r"\bxapp-\d-[A-Z0-9]{6,}-\d+-[0-9a-f]{32,}"),
    ("slack webhook", r"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_-]{20,})"),
    ("github token", r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    ("github token", r"\bgithub_pat_[A-Za-z0-9_]{40,}"),
    ("gitlab token", r"\bgl(?:pat|dt|cbt|rt|ptt|ft|soat|agent|imt|oas|ffct)-[A-Za-z0-9_.-]{20,}"),
    ("npm token", r"\bnpm_[A-Za-z0-9]{30,}"),
    ("pypi token", r"\bpypi-Ag[A-Za-z0-9_-]{40,}"),
    ("crates.io token", r"\bcio[A-Za-z0-9]{32}\b"),
    ("rubygems key", r"\brubygems_[0-9a-f]{40,}"),
    ("docker token", r"\bdckr_[a-z]{3}_[A-Za-z0-9_-]{20,}"),
    ("hugging face token", r"\b(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    ("replicate key", r"\br8_[A-Za-z0-9]{30,}"),
    ("groq key", r"\bgsk_[A-Za-z0-9]{40,}"),
    ("xai key", r"\bxai-[A-Za-z0-9]{40,}"),
    ("perplexity key", r"\bpplx-[A-Za-z0-9]{40,}"),
    ("twilio key", r"\bSK[0-9a-f]{32}\b"),
    ("sendgrid key", r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,}"),
    ("mailgun key", r"\bkey-[0-9a-f]{32}\b"),
    ("mailchimp key", r"\b[0-9a-f]{32}-us\d{1,2}\b"),
    ("digitalocean token", r"\bdo[opr]_v1_[0-9a-f]{64}"),
    ("heroku key", r"\bHRKU-[A-Za-z0-9_-]{30,}"),
    ("databricks token", r"\bdapi[0-9a-f]{32}"),
    ("doppler token", r"\bdp\.[a-z]{2,5}\.[A-Za-z0-9._-]{40,}"),
    ("vault token", r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}"),
    ("terraform token", r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),
    ("linear key", r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    ("notion token", r"\bntn_[A-Za-z0-9]{40,}"),
    ("figma token", r"\bfig[dou]_?[a-z]?_[A-Za-z0-9_-]{36,}"),
    ("postman key", r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("shopify token", r"\bshp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}"),
    ("square token", r"\bsq0[a-z]{3}-[A-Za-z0-9_-]{22,}"),
    ("telegram token", r"\b\d{8,10}:AA[A-Za-z0-9_-]{32,}"),
    ("discord token", r"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"),
    ("discord webhook", r"discord(?:app)?\.com/api/webhooks/(\d+/[A-Za-z0-9_-]{40,})"),
    ("grafana token", r"\bgl(?:sa|c)_[A-Za-z0-9+/=_]{32,}"),
    ("sentry token", r"\bsntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    ("new relic key", r"\bNRAK-[A-Z0-9]{27}"),
    ("supabase key", r"\b(?:sbp|sb_secret)_[A-Za-z0-9_-]{30,}"),
    ("planetscale token", r"\bpscale_[a-z]+_[A-Za-z0-9_.-]{30,}"),
    ("atlassian token", r"\bATATT3[A-Za-z0-9_=-]{40,}"),
    ("json web token", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{10,}"),
    ("password in an address", r#"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>]*:([^\s/@"'<>]{3,})@"#),
    (
        "authorization",
        r#"(?i)\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token|digest|apikey|api-key)\s+([A-Za-z0-9._~+/=-]{8,})"#,
    ),
    (
        "api key",
        r#"(?i)\bx-(?:api|auth|goog-api)-?(?:key|token)["']?\s*[:=]\s*["']?([A-Za-z0-9._~+/=-]{12,})"#,
    ),
    ("bearer token", r"(?i)\bbearer\s+([A-Za-z0-9_~+/-][A-Za-z0-9._~+/-]{19,}=*)"),
    ("password", r#"\bcurl\b[^\n]{0,200}?\s(?:-u|--user)\s*["']?[^\s:"']+:([^\s"']{4,})"#),
];

static COMPILED: LazyLock<Vec<(&'static str, Regex)>> = LazyLock::new(|| {
    // A boundary is one of ASCII: text without spaces may stand right before a key.
    let compiled = |form: &str| Regex::new(&form.replace(r"\b", r"(?-u:\b)")).ok();
    FORMS.iter().filter_map(|(what, form)| Some((*what, compiled(form)?))).collect()
});

/// Forms whose secret is told by what stands around it, so that it may be a placeholder or plain words.
const TOLD: [&str; 5] = ["password in an address", "authorization", "api key", "bearer token", "password"];

/// All secrets that have a form of their own.
pub(super) fn secrets(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    for (what, form) in COMPILED.iter() {
        for captures in form.captures_iter(text) {
            let Some(secret) = captures.get(1).or_else(|| captures.get(0)) else { continue };
            if TOLD.contains(what) && is_placeholder(secret.as_str()) {
                continue;
            }
            if *what == "bearer token" && !secret.as_str().contains(|c: char| c.is_ascii_digit()) {
                continue;
            }
            found.push(Secret { what, place: secret.range() });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_compiles() {
        assert_eq!(COMPILED.len(), FORMS.len());
    }
}
