//! Tables of secrets to be masked and text to be left alone. Samples are assembled at run time, so that no
//! scanner takes this file for a leak.

use std::collections::BTreeSet;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

/// Pseudo-random characters of an alphabet.
fn random(alphabet: &str, count: usize, seed: u64) -> String {
    let letters: Vec<char> = alphabet.chars().collect();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        letters[(state >> 33) as usize % letters.len()]
    };
    std::iter::repeat_with(next).take(count).collect()
}

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn alnum(count: usize, seed: u64) -> String {
    random(ALNUM, count, seed)
}

fn hex(count: usize, seed: u64) -> String {
    random(HEX, count, seed)
}

fn base64(count: usize, seed: u64) -> String {
    random(BASE64, count, seed)
}

fn pem(kind: &str, block: &str) -> String {
    let lines: Vec<String> = (0..6).map(|seed| base64(64, seed + 90)).collect();
    format!(
        "-----{} {kind}PRIVATE KEY{block}-----\n{}\n-----{} {kind}PRIVATE KEY{block}-----",
        "BEGIN",
        lines.join("\n"),
        "END"
    )
}

/// Samples: kind, text, and the secret that must be gone.
fn samples() -> Vec<(&'static str, String, String)> {
    let mut samples: Vec<(&'static str, String, String)> = Vec::new();
    let mut known = |what, parts: &[&str]| {
        samples.push((what, format!("note: {} (see wiki)", parts.concat()), parts.concat()))
    };
    known("anthropic key", &["sk-", "ant-", "api03-", &alnum(90, 1), "-AA"]);
    known("anthropic key", &["sk-", "ant-", "oat01-", &alnum(60, 2)]);
    known("openai key", &["sk-", &alnum(48, 3)]);
    known("openai key", &["sk-", "proj-", &alnum(80, 4)]);
    known("openai key", &["sk-", "svcacct-", &alnum(60, 5)]);
    known("openrouter key", &["sk-", "or-v1-", &hex(64, 6)]);
    known("google key", &["AI", "za", &alnum(35, 7)]);
    known("google token", &["ya", "29.", &alnum(80, 8)]);
    known("google secret", &["GOC", "SPX-", &alnum(28, 9)]);
    known("aws key id", &["AK", "IA", &random(BASE32, 16, 10)]);
    known("aws key id", &["AS", "IA", &random(BASE32, 16, 11)]);
    known("stripe key", &["sk_", "live_", &alnum(24, 12)]);
    known("stripe key", &["rk_", "test_", &alnum(24, 13)]);
    known("webhook secret", &["wh", "sec_", &alnum(32, 14)]);
    known("slack token", &["xo", "xb-", "123456789012-", "1234567890123-", &alnum(24, 15)]);
    known("slack token", &["xo", "xp-", "123456789012-", &hex(32, 16)]);
    known("slack token", &["xa", "pp-1-", "A012BCDEF34-", "1234567890123-", &hex(64, 17)]);
    known("github token", &["gh", "p_", &alnum(36, 18)]);
    known("github token", &["gh", "s_", &alnum(36, 19)]);
    known("github token", &["github", "_pat_", &alnum(22, 20), "_", &alnum(59, 21)]);
    known("gitlab token", &["gl", "pat-", &alnum(20, 22)]);
    known("gitlab token", &["gl", "rt-", &alnum(24, 23)]);
    known("npm token", &["np", "m_", &alnum(36, 24)]);
    known("pypi token", &["py", "pi-", "AgEIcHlwaS5vcmc", &alnum(80, 25)]);
    known("crates.io token", &["ci", "o", &alnum(32, 26)]);
    known("rubygems key", &["ruby", "gems_", &hex(48, 27)]);
    known("docker token", &["dckr", "_pat_", &alnum(27, 28)]);
    known("hugging face token", &["h", "f_", &alnum(34, 29)]);
    known("replicate key", &["r", "8_", &alnum(37, 30)]);
    known("groq key", &["gs", "k_", &alnum(52, 31)]);
    known("xai key", &["xa", "i-", &alnum(80, 32)]);
    known("perplexity key", &["pp", "lx-", &alnum(48, 33)]);
    known("twilio key", &["S", "K", &hex(32, 34)]);
    known("sendgrid key", &["S", "G.", &alnum(22, 35), ".", &alnum(43, 36)]);
    known("mailgun key", &["ke", "y-", &hex(32, 37)]);
    known("mailchimp key", &[&hex(32, 38), "-us", "21"]);
    known("digitalocean token", &["do", "p_v1_", &hex(64, 39)]);
    known("databricks token", &["da", "pi", &hex(32, 40)]);
    known("vault token", &["hv", "s.", &alnum(90, 41)]);
    known("terraform token", &[&alnum(14, 42), ".atlas", "v1.", &alnum(67, 43)]);
    known("linear key", &["lin", "_api_", &alnum(40, 44)]);
    known("notion token", &["nt", "n_", &alnum(46, 45)]);
    known("shopify token", &["shp", "at_", &hex(32, 46)]);
    known("telegram token", &["1234567890", ":AA", &alnum(33, 47)]);
    known("discord token", &["M", "T", &alnum(24, 48), ".", &alnum(6, 49), ".", &alnum(38, 50)]);
    known("grafana token", &["gl", "sa_", &alnum(32, 51), "_", &hex(8, 52)]);
    known("new relic key", &["NR", "AK-", &random("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 27, 53)]);
    known("supabase key", &["sb", "p_", &hex(40, 54)]);
    known("planetscale token", &["pscale", "_tkn_", &alnum(43, 55)]);
    known("atlassian token", &["ATA", "TT3", "xFfGF0", &alnum(170, 56)]);
    known("postman key", &["PM", "AK-", &hex(24, 57), "-", &hex(34, 58)]);
    known("azure secret", &[&alnum(3, 59), "8Q", "~", &alnum(34, 60)]);
    known("age key", &["AGE-", "SECRET-", "KEY-1", &random("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58, 61)]);
    known("json web token", &["ey", "J", &alnum(33, 62), ".ey", "J", &alnum(80, 63), ".", &alnum(43, 64)]);
    known("private key", &[&pem("", "")]);
    known("private key", &[&pem("RSA ", "")]);
    known("private key", &[&pem("OPENSSH ", "")]);
    known("private key", &[&pem("PGP ", " BLOCK")]);
    let mut told = |what, before: &str, secret: String, after: &str| {
        samples.push((what, format!("{before}{secret}{after}"), secret));
    };
    told("aws secret", "aws_secret_access_key = ", base64(40, 70), "\n");
    told(
        "azure key",
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=",
        base64(86, 71) + "==",
        ";End",
    );
    told("azure signature", "https://x.blob.core.windows.net/c?sv=2024&sig=", alnum(43, 72) + "%3D", "");
    told(
        "slack webhook",
        "https://hooks.slack.com/services/",
        format!("T{}/B{}/{}", "0A1B2C3D4", "0E5F6G7H8", alnum(24, 73)),
        "",
    );
    told(
        "discord webhook",
        "https://discord.com/api/webhooks/",
        format!("123456789012345678/{}", alnum(68, 74)),
        "",
    );
    told("password in an address", "postgres://app:", String::from("s3cr3t-Pa55"), "@db.internal:5432/app");
    told("password in an address", "https://user:", alnum(20, 75), "@git.example.org/x.git");
    told("authorization", "Authorization: Bearer ", alnum(40, 76), "");
    told("authorization", "curl -H 'authorization: Basic ", base64(28, 77), "'");
    told("bearer token", "send it as bearer ", alnum(32, 78), " please");
    told("api key", "X-Api-Key: ", hex(32, 79), "");
    told("password", "curl -u admin:", String::from("Tr0ub4dor"), " https://x.example.org");
    for (before, secret) in [
        ("password: ", "hunter2!"),
        ("The password is ", "Tr0ub4dor&3"),
        ("DB_PASSWORD=\"", "k9#mQ2xw"),
        ("Das Passwort lautet ", "Sommer2026!"),
        ("Kennwort: ", "Xy7-trewq9"),
        ("mot de passe : ", "Soleil75!"),
        ("contraseña: ", "Gato1234x"),
        ("senha = ", "Praia2025#"),
        ("пароль: ", "Zima2026x"),
        ("密码是", "Abc12345xyz"),
        ("パスワードは", "Sakura2026"),
        ("비밀번호: ", "hangul99!x"),
    ] {
        told("password", before, secret.to_owned(), "");
    }
    for (at, before) in [
        "api_key = \"",
        "API key: ",
        "client_secret: ",
        "the token is ",
        "auth_token=",
        "access-key: ",
        "signing_key := ",
        "SECRET_KEY='",
        "Twilio auth token: ",
        "密钥：",
        "ключ: ",
        "トークン: ",
        "our deploy token (rotate it) ",
    ]
    .into_iter()
    .enumerate()
    {
        told("key", before, alnum(32, 200 + at as u64), "\"");
    }
    told("key", "twilio_auth_token: ", hex(32, 300), "");
    samples
}

#[test]
fn real_shaped_secrets_are_masked() {
    let samples = samples();
    assert!(samples.len() >= 50, "{}", samples.len());
    let mut kinds = BTreeSet::new();
    for (what, text, secret) in &samples {
        let MaskedText { text: clean, secrets: found } = mask_secrets(text);
        assert!(!clean.contains(secret.as_str()), "{what}: {clean}");
        // Not even most of it.
        let some: String = secret.chars().skip(4).take(secret.chars().count() * 2 / 3).collect();
        assert!(!clean.contains(&some), "{what}: {clean}");
        assert_eq!(found[0].kind, *what, "{clean}");
        assert!(clean.contains(&format!("[secret: {what}]")), "{clean}");
        assert_eq!(mask_secrets(&clean).text, clean, "once is enough");
        kinds.insert(*what);
        // In the middle of text without spaces.
        let spaceless = format!("メモ：{text}。");
        let clean = mask_secrets(&spaceless).text;
        assert!(!clean.contains(secret.as_str()), "{what}: {clean}");
    }
    println!("{} samples of {} kinds masked", samples.len(), kinds.len());
}

/// Fills `{A20}` and the like in a template.
fn filled(template: &str, seed: &mut u64) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('{') {
        text.push_str(before);
        let class = behind.chars().next().unwrap();
        let is_slot = "ALUHDSBWI".contains(class)
            && behind[1..]
                .split_once('}')
                .is_some_and(|(count, _)| count.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_slot {
            text.push('{');
            rest = behind;
            continue;
        }
        let (count, behind) = behind[1..].split_once('}').unwrap();
        *seed += 1;
        let random = |alphabet: &str| random(alphabet, count.parse().unwrap(), *seed);
        text.push_str(&match class {
            'A' => random(ALNUM),
            'L' => random("abcdefghijklmnopqrstuvwxyz0123456789"),
            'U' => random("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"),
            'H' => random(HEX),
            'D' => random("0123456789"),
            'S' => random(BASE32),
            'B' => random(BASE64),
            'W' => random(&format!("{ALNUM}_-")),
            _ => uuid(*seed),
        });
        rest = behind;
    }
    text.push_str(rest);
    text.replace('·', "").replace("\\n", "\n")
}

fn rows(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

#[test]
fn published_token_formats_are_masked() {
    let (mut seed, mut missed, mut kinds, mut count) = (1000, Vec::new(), BTreeSet::new(), 0);
    for row in rows(include_str!("tests/formats.txt")) {
        let (kind, template) = row.split_once('|').unwrap();
        for _ in 0..8 {
            let token = filled(template, &mut seed);
            let text = format!("note: {token} (see wiki)");
            let masked = mask_secrets(&text);
            // All of it is gone, and nothing around it.
            if masked.text != format!("note: [secret: {kind}] (see wiki)") {
                missed.push(format!("{kind}: {token} -> {}", masked.text));
            }
        }
        count += 1;
        kinds.insert(kind);
    }
    println!("{count} formats of {} kinds masked", kinds.len());
    // Of eight random tokens of a format one may look like words by chance, in the formats whose prefix says little.
    assert!(missed.len() * 100 <= count * 8, "{} of {}: {missed:#?}", missed.len(), count * 8);
    assert!(count >= 160, "{count}");
}

#[test]
fn values_in_telling_contexts_are_masked() {
    let (mut seed, mut missed, mut count) = (5000, Vec::new(), 0);
    for row in rows(include_str!("tests/contexts.txt")) {
        let row = row.replace("\\|", "\u{1}");
        let cells: Vec<String> =
            row.split('|').map(|cell| filled(cell, &mut seed).replace('\u{1}', "|")).collect();
        let [kind, before, secret, behind] = cells.as_slice() else { panic!("{row}") };
        let text = format!("{before}{secret}{behind}");
        let masked = mask_secrets(&text);
        if masked.text != format!("{before}[secret: {kind}]{behind}") {
            missed.push(format!("{kind}: {text} -> {}", masked.text));
        }
        assert_eq!(mask_secrets(&masked.text).text, masked.text, "once is enough");
        count += 1;
    }
    println!("{count} contexts masked");
    assert!(missed.is_empty(), "{} of {count}: {missed:#?}", missed.len());
}

#[test]
fn a_secret_name_masks_its_value() {
    let kind =
        |name: &str, value: &str| mask_named_value(name, value).secrets.first().map(|secret| secret.kind);
    assert_eq!(kind("password", "hunter2!x"), Some("password"));
    assert_eq!(kind("pass", "hunter2!x"), Some("password"));
    assert_eq!(kind("apiKey", &alnum(32, 7)), Some("key"));
    assert_eq!(kind("title", "hunter2!x"), None);
    assert_eq!(kind("password", "${PASSWORD}"), None);
    assert_eq!(kind("command", "export DB_PASSWORD=Winter2026!"), Some("password"));
}

fn uuid(seed: u64) -> String {
    let digits = hex(32, seed);
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// Text that looks random or mentions secrets but contains none.
fn ordinary() -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for seed in 0..15 {
        lines.push(format!("fixed in {}", hex(40, seed + 1)));
        lines.push(format!("commit {} (HEAD -> main)", hex(8, seed + 20)));
        lines.push(format!("session {} was long", uuid(seed + 40)));
        lines.push(format!("sha256:{}", hex(64, seed + 60)));
        lines.push(format!("\"integrity\": \"sha512-{}==\",", base64(86, seed + 80)));
        lines.push(format!("![x](data:image/png;base64,iVBORw0KGgo{})", base64(400, seed + 100)));
        lines.push(format!("checksum = \"{}\"", hex(64, seed + 120)));
        lines.push(format!("the build id is {}", alnum(22, seed + 140)));
        lines.push(format!("https://example.org/a/{}?page=2", alnum(24, seed + 160)));
        lines.push(format!("blake3 {} of the file", hex(64, seed + 180)));
    }
    let prose = include_str!("ordinary.txt");
    lines.extend(prose.lines().filter(|line| !line.is_empty()).map(str::to_owned));
    lines
}

#[test]
fn ordinary_strings_are_left_alone() {
    let lines = ordinary();
    assert!(lines.len() >= 200, "{}", lines.len());
    let taken: Vec<&String> = lines.iter().filter(|line| !find_secrets(line).is_empty()).collect();
    assert_eq!(taken, [""; 0]);
    println!("{} ordinary strings left alone", lines.len());
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn lock_files_and_documents_of_this_repository_are_left_alone() {
    let mut lines = 0;
    for file in [
        "Cargo.lock",
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "docs/permissions.md",
        "docs/settings.md",
    ] {
        let text = std::fs::read_to_string(repository().join(file)).unwrap();
        lines += text.lines().count();
        assert_eq!(taken(&text), [""; 0], "{file}");
    }
    println!("{lines} lines of this repository left alone");
}

fn taken(text: &str) -> Vec<&str> {
    find_secrets(text).into_iter().map(|secret| &text[secret.range]).collect()
}

/// Code and prose in many languages: at most one false positive in ten thousand lines.
#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_files_are_left_alone() {
    let Some(data) = pal_testkit::data_dir() else { return };
    let (mut lines, mut found) = (0, Vec::new());
    for entry in std::fs::read_dir(data.join("corpus")).into_iter().flatten().flatten() {
        let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
        lines += text.lines().count();
        found.extend(taken(&text).into_iter().map(|secret| format!("{:?}: {secret}", entry.file_name())));
    }
    println!("{lines} lines of real files, taken for secrets: {found:#?}");
    assert!(found.len() * 10_000 <= lines, "{found:#?}");
}

/// Prints the matches in all recorded sessions, to review false positives and speed.
#[test]
#[ignore = "reads 80 MB"]
fn print_secrets() {
    let Some(data) = pal_testkit::data_dir() else { return };
    let (mut bytes, mut took, mut found) = (0, std::time::Duration::ZERO, Vec::new());
    let mut folders = vec![data.join("sessions")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let start = std::time::Instant::now();
            let secrets = find_secrets(&text);
            took += start.elapsed();
            bytes += text.len();
            found.extend(secrets.into_iter().map(|secret| {
                let from = text.floor_char_boundary(secret.range.start.saturating_sub(40));
                format!("{}: {} <<{}>>", secret.kind, &text[from..secret.range.start], &text[secret.range])
            }));
        }
    }
    found.sort();
    found.iter().for_each(|line| println!("{}", line.chars().take(220).collect::<String>()));
    println!("{} in {bytes} bytes, {took:?}", found.len());
}

proptest! {
    #[test]
    fn masking_is_idempotent(text in "(password|token|secret|api_key)?[:= ]{0,2}[ -~é漢]{0,60}") {
        let MaskedText { text: clean, secrets } = mask_secrets(&text);
        prop_assert_eq!(secrets.is_empty(), clean == text);
        prop_assert_eq!(&mask_secrets(&clean).text, &clean);
    }
}
