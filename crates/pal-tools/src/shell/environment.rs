//! Changes to the environment of a command.
//!
//! A repository's own configuration can name programs that read-only git commands run. Those that run
//! unnoticed are disabled for every command, by settings that override all files: the file system monitor
//! (`status`, `diff`, `ls-files`) and signature checks (`log`, `show`). Optional locks are not taken, so that
//! `status` writes no index, and its hook does not run. Programs of a commit, a checkout or a fetch stay
//! enabled: those commands ask. Not covered are `diff.external`, which accepts no empty value; filters and
//! text conversions, which have names of their own; and the hook of a written index under `diff`, whose
//! results would change without it. All of these come with an unpacked folder, never with a clone.

use std::ffi::{OsStr, OsString};

use super::EnvironmentChange;

/// Variables set for every command: no pager, no prompt, no editor, no optional locks.
const SET: [(&str, &str); 8] = [
    ("PAL", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("TERM", "dumb"),
];

/// Variables unset for every command: they would change the meaning of a checked command line.
const UNSET: [&str; 4] = ["CDPATH", "BASH_ENV", "ENV", "POSIXLY_CORRECT"];

/// Variable with the number of git settings in the environment; their names and values are numbered.
const GIT_COUNT: &str = "GIT_CONFIG_COUNT";

/// Git settings that override all files.
const GIT: [(&str, &str); 2] = [("core.fsmonitor", "false"), ("log.showSignature", "false")];

/// Additional git settings for read-only commands.
const NEUTRAL: [(&str, &str); 6] = [
    ("gpg.program", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.excludesFile", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("safe.directory", "*"),
];

/// Hidden variable names: commands do not need them unless the user says so, and output goes to the provider.
/// `*` is a wildcard; case is ignored.
const HIDDEN: [&str; 21] = [
    "ANTHROPIC_*",
    "OPENAI_*",
    // Headers contain authorization.
    "OTEL_*_HEADERS",
    "*PASSWORD*",
    "*PASSWD*",
    "*PASSPHRASE*",
    "*CREDENTIAL*",
    "*ACCESS_KEY*",
    "*PRIVATE_KEY*",
    "*API_KEY*",
    "*APIKEY*",
    "*SERVICE_ACCOUNT*",
    // Both hold names, passwords and hosts in one value.
    "*CONNECTION_STRING*",
    "*CONN_STR*",
    "DOCKER_AUTH_CONFIG",
    "BW_SESSION",
    "OP_SESSION*",
    "AOC_SESSION",
    "PGPASSFILE",
    // URLs of services that may contain a name and a password. Those without are hidden, too: the variable
    // name decides, and the user can make an exception.
    "*DATABASE_UR*",
    "*REDIS_UR*",
];

/// Last components of secret names: `STRIPE_KEY`, `DB_PASS`, `SENTRY_DSN`.
const SECRET_PARTS: [&str; 27] = [
    "TOKEN",
    "SECRET",
    "SECRETS",
    "KEY",
    "KEYS",
    "PASS",
    "PWD",
    "PW",
    "PSK",
    "PIN",
    "PAT",
    "DSN",
    "CREDS",
    "COOKIE",
    "COOKIES",
    "AUTH",
    "AUTHORIZATION",
    "BEARER",
    "JWT",
    "SAS",
    "SALT",
    "PEPPER",
    "SK",
    "WEBHOOK",
    "NETRC",
    "MNEMONIC",
    "SIGNATURE",
];

/// Endings of a last component without a separator: `PGPASSWORD`, `NPM_CONFIG__AUTHTOKEN`.
const SECRET_ENDINGS: [&str; 6] = ["TOKEN", "SECRET", "SECRETKEY", "SSHKEY", "AUTHKEY", "CONNSTR"];

/// Services whose `URL` or `URI` may contain a name and a password.
const ADDRESSED: [&str; 13] = [
    "REDIS",
    "MONGO",
    "MONGODB",
    "POSTGRES",
    "POSTGRESQL",
    "PG",
    "MYSQL",
    "MARIADB",
    "AMQP",
    "CLOUDAMQP",
    "RABBITMQ",
    "JDBC",
    "WEBHOOK",
];

/// Qualifiers after the secret component: `STRIPE_KEY_LIVE`, `DB_PASS_FILE`, `JWT_KEY_2`.
const QUALIFIERS: [&str; 24] = [
    "ID",
    "PROD",
    "PRODUCTION",
    "DEV",
    "DEVELOPMENT",
    "STAGING",
    "STAGE",
    "TEST",
    "LIVE",
    "SANDBOX",
    "OLD",
    "NEW",
    "PREVIOUS",
    "PRIMARY",
    "SECONDARY",
    "BASE64",
    "B64",
    "HEX",
    "JSON",
    "PEM",
    "RAW",
    "VALUE",
    "FILE",
    "BASE",
];

/// Components after `TOKEN` that make a name harmless.
const TOKEN_FIGURES: [&str; 14] = [
    "LIMIT", "LIMITS", "COUNT", "COUNTS", "BUDGET", "MAX", "MIN", "TTL", "TYPE", "LENGTH", "SIZE", "URL",
    "ENDPOINT", "USAGE",
];

/// AWS variables without secrets. All others are hidden: most are keys, tokens or lead to them.
const OPEN_AWS: [&str; 14] = [
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_DEFAULT_OUTPUT",
    "AWS_PAGER",
    "AWS_RETRY_MODE",
    "AWS_MAX_ATTEMPTS",
    "AWS_CA_BUNDLE",
    "AWS_SDK_LOAD_CONFIG",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_ENDPOINT_URL",
    "AWS_CONFIG_FILE",
    "AWS_CLI_AUTO_PROMPT",
];

/// Names that end like a secret but are directories.
const OPEN: [&str; 2] = ["PWD", "OLDPWD"];

/// Changes to an environment with these variables. `hidden` holds names with `*` as a wildcard; a leading `!`
/// makes an exception that beats all else.
pub(super) fn changes(
    variables: impl Iterator<Item = (OsString, OsString)>,
    hidden: &[String],
) -> Vec<EnvironmentChange> {
    let (mut changes, mut git_count) = (Vec::new(), 0);
    for (name, value) in variables {
        if name == GIT_COUNT {
            git_count = value.to_str().and_then(|count| count.parse().ok()).unwrap_or(0);
        }
        if is_hidden(&name, &value, hidden) || UNSET.iter().any(|unset| name == *unset) {
            changes.push((name, None));
        }
    }
    // Set variables come last and win.
    changes.extend(SET.map(|(name, value)| (name.into(), Some(value.into()))));
    // After git settings that the user passed in the same way.
    for (number, (name, value)) in (git_count..).zip(GIT) {
        changes.push((format!("GIT_CONFIG_KEY_{number}").into(), Some(name.into())));
        changes.push((format!("GIT_CONFIG_VALUE_{number}").into(), Some(value.into())));
    }
    changes.push((GIT_COUNT.into(), Some((git_count + GIT.len()).to_string().into())));
    changes
}

/// Additional changes for a read-only command, which disable programs configured by the user or a repository.
/// The owner of a repository does not matter, since nothing can change.
pub(super) fn read_only_changes() -> Vec<EnvironmentChange> {
    let set = |name: &str, value: &str| (name.into(), Some(value.into()));
    let mut variables = vec![set("GIT_CONFIG_GLOBAL", "/dev/null"), set("GIT_ATTR_NOSYSTEM", "1")];
    let settings: Vec<_> = GIT.iter().chain(&NEUTRAL).collect();
    for (number, (name, value)) in settings.iter().enumerate() {
        variables.push(set(&format!("GIT_CONFIG_KEY_{number}"), name));
        variables.push(set(&format!("GIT_CONFIG_VALUE_{number}"), value));
    }
    variables.push(set(GIT_COUNT, &settings.len().to_string()));
    for name in
        ["RIPGREP_CONFIG_PATH", "GREP_OPTIONS", "LESSOPEN", "LD_PRELOAD", "GIT_EXTERNAL_DIFF", "GIT_DIR"]
    {
        variables.push((name.into(), None));
    }
    variables
}

/// Variables of our environment that programs may see: all without secrets. `hidden` is as for commands.
pub fn visible_variables(hidden: &[String]) -> Vec<(OsString, OsString)> {
    std::env::vars_os().filter(|(name, value)| !is_hidden(name, value, hidden)).collect()
}

/// Returns whether a variable is hidden: by its name, by a user setting, or because its value is a secret.
///
/// Visible on purpose: `SSH_AUTH_SOCK`, `GPG_AGENT_INFO`, `SSH_ASKPASS`, `KUBECONFIG`, which name a socket, a
/// program or a file and hold no secret themselves; `git push` and the like need them, and commands that use
/// them ask.
fn is_hidden(name: &OsStr, value: &OsStr, hidden: &[String]) -> bool {
    let bytes = name.as_encoded_bytes();
    let says = |pattern: &str| matches(bytes, pattern.as_bytes());
    if hidden.iter().filter_map(|pattern| pattern.strip_prefix('!')).any(says) {
        return false;
    }
    let large = String::from_utf8_lossy(bytes).to_ascii_uppercase();
    // Numbered names of git settings from the user.
    if OPEN.contains(&large.as_str()) || large.starts_with("GIT_CONFIG_KEY_") {
        return false;
    }
    HIDDEN.iter().any(|pattern| matches(large.as_bytes(), pattern.as_bytes()))
        || (large.starts_with("AWS_") && !OPEN_AWS.contains(&large.as_str()))
        || is_secret_name(&large)
        || hidden.iter().any(|pattern| says(pattern))
        || value.to_str().is_some_and(pal_secrets::has_secret)
}

/// Returns whether the components of a name mark a secret.
fn is_secret_name(large: &str) -> bool {
    let mut parts: Vec<&str> =
        large.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    // `SECRET_KEY_BASE`, `SECRET_VERSION_2`: anything may follow.
    if parts.iter().any(|part| matches!(*part, "SECRET" | "SECRETS")) {
        return true;
    }
    let is_qualifier = |part: &&str| {
        QUALIFIERS.contains(part) || part.bytes().all(|byte| byte.is_ascii_digit()) || is_version(part)
    };
    while parts.len() > 1 && parts.last().is_some_and(is_qualifier) {
        parts.pop();
    }
    let Some((last, before)) = parts.split_last() else { return false };
    let is_addressed =
        matches!(*last, "URL" | "URI" | "URLS") && before.iter().any(|part| ADDRESSED.contains(part));
    // `MAX_TOKENS` is a number.
    let are_tokens = *last == "TOKENS"
        && before
            .last()
            .is_some_and(|part| matches!(*part, "API" | "AUTH" | "ACCESS" | "REFRESH" | "SERVICE"));
    // `TF_TOKEN_app_terraform_io`, but not `TOKEN_LIMIT`.
    let is_token = parts.contains(&"TOKEN") && !TOKEN_FIGURES.contains(last);
    SECRET_PARTS.contains(last)
        || is_token
        || SECRET_ENDINGS.iter().any(|ending| last.ends_with(ending))
        || is_addressed
        || are_tokens
}

/// Returns whether a component is a version such as `V2`.
fn is_version(part: &str) -> bool {
    part.strip_prefix('V')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns whether a name matches a pattern with `*` as a wildcard.
fn matches(name: &[u8], pattern: &[u8]) -> bool {
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else { return name == pattern };
    let (beginning, rest) = (&pattern[..star], &pattern[star + 1..]);
    let Some(name) = name.strip_prefix(beginning) else { return false };
    (0..=name.len()).any(|skipped| matches(&name[skipped..], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(names: &[&str], hidden: &[&str]) -> Vec<String> {
        let hidden: Vec<String> = hidden.iter().map(|pattern| (*pattern).to_owned()).collect();
        let variables = names.iter().map(|name| (OsString::from(name), OsString::from("v")));
        let changes = changes(variables, &hidden).into_iter();
        let gone = changes.filter(|(_, value)| value.is_none());
        gone.filter_map(|(name, _)| name.into_string().ok()).collect()
    }

    #[test]
    fn key_variables_are_removed() {
        let secrets = [
            "ANTHROPIC_API_KEY",
            "OPENAI_BASE_URL",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "CLIENT_SECRET",
            "SSH_KEY",
            "PGPASSWORD",
            "db_password_file",
            "GOOGLE_APPLICATION_CREDENTIALS",
        ];
        assert_eq!(gone(&secrets, &[]), secrets);
        let open = ["HOME", "MY_KEYRING", "SSH_AUTH_SOCK", "KEYBOARD", "TOKENS", "SECRETARY", "PAL"];
        assert!(gone(&open, &[]).is_empty());
        assert_eq!(gone(&["MINE", "TEAM_A", "A_TEAM"], &["MINE", "TEAM_*"]), ["MINE", "TEAM_A"]);
    }

    #[test]
    fn secret_names_of_every_shape_are_hidden() {
        let names = include_str!("environment/secret_names.txt");
        let names: Vec<&str> =
            names.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        assert!(names.len() >= 100, "{}", names.len());
        let gone = gone(&names, &[]);
        let seen: Vec<&&str> = names.iter().filter(|name| !gone.iter().any(|gone| gone == *name)).collect();
        assert!(seen.is_empty(), "{} of {} reach commands: {seen:?}", seen.len(), names.len());
        println!("{} names hidden", names.len());
    }

    #[test]
    fn ordinary_names_stay_visible() {
        let open = [
            "PWD",
            "OLDPWD",
            "HOME",
            "PATH",
            "USER",
            "SHELL",
            "LANG",
            "LC_ALL",
            "EDITOR",
            "SSH_AUTH_SOCK",
            "SSH_ASKPASS",
            "GPG_AGENT_INFO",
            "GPG_TTY",
            "GIT_ASKPASS",
            "XAUTHORITY",
            "KUBECONFIG",
            "AWS_REGION",
            "AWS_PROFILE",
            "MAX_TOKENS",
            "PAL_MAX_TOKENS",
            "TOKENIZERS_PARALLELISM",
            "KEYBOARD_LAYOUT",
            "MONKEY",
            "COMPASS",
            "BYPASS",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "CARGO_HOME",
            "RUSTFLAGS",
            "NODE_ENV",
            "VIRTUAL_ENV",
            "XDG_SESSION_ID",
            "DESKTOP_SESSION",
            "INIT_CWD",
            "VAULT_ADDR",
            "API_URL",
            "BASE_URL",
            "PGHOST",
            "PGUSER",
            "PASSENGER_APP_ENV",
            "PINENTRY_USER_DATA",
            "LS_COLORS",
            "DBUS_SESSION_BUS_ADDRESS",
            "PATTERN",
            "SALTSTACK_HOME",
            "TOKEN_LIMIT",
            "PUBLIC_URL",
        ];
        assert_eq!(gone(&open, &[]), [""; 0]);
    }

    #[test]
    fn secret_values_are_hidden_under_any_name() {
        let values = [
            ("UPSTREAM", "https://ann:s3cr3t-Pa55@git.internal/a.git", true),
            ("HTTPS_PROXY", "http://ann:pr0xy-Pa55@proxy:3128", true),
            ("HTTP_PROXY", "http://proxy:3128", false),
            ("DEPLOYER", &format!("gh{}{}", "p_", "0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX"), true),
            (
                "HOOK",
                &format!(
                    "https://hooks.slack.com/services/{}",
                    "T0A1B2C3D/B0A1B2C3D/0aB1cD2eF3gH4iJ5kL6mN7oP"
                ),
                true,
            ),
            ("GREETING", "hello", false),
            ("BUILD", "3f2a9c1d7e5b8a063f2a9c1d7e5b8a063f2a9c1d", false),
        ];
        for (name, value, is_gone) in values {
            let variables = [(OsString::from(name), OsString::from(value))];
            let changed = changes(variables.into_iter(), &[]);
            assert_eq!(changed.iter().any(|(changed, _)| changed == name), is_gone, "{name}={value}");
            let let_through = format!("!{name}");
            let variables = [(OsString::from(name), OsString::from(value))];
            let changed = changes(variables.into_iter(), &[let_through]);
            assert!(!changed.iter().any(|(changed, _)| changed == name), "the user lets {name} through");
        }
    }

    #[test]
    fn exceptions_of_the_user_stay_visible() {
        let names = ["GITHUB_TOKEN", "NPM_TOKEN", "OPENAI_API_KEY", "MINE"];
        assert_eq!(gone(&names, &["!GITHUB_TOKEN", "MINE", "!M*"]), ["NPM_TOKEN", "OPENAI_API_KEY"]);
        assert_eq!(gone(&names, &["!OPENAI_*"]), ["GITHUB_TOKEN", "NPM_TOKEN"]);
    }

    #[test]
    fn git_settings_of_the_user_stay() {
        let variables = [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "a.b"), ("GIT_CONFIG_VALUE_0", "c")];
        let changes = changes(variables.map(|(name, value)| (name.into(), value.into())).into_iter(), &[]);
        let set = |name: &str| changes.iter().rfind(|(changed, _)| changed == name).cloned();
        assert_eq!(set("GIT_CONFIG_KEY_0"), None);
        assert_eq!(set("GIT_CONFIG_KEY_1"), Some(("GIT_CONFIG_KEY_1".into(), Some("core.fsmonitor".into()))));
        assert_eq!(set("GIT_CONFIG_COUNT"), Some(("GIT_CONFIG_COUNT".into(), Some("3".into()))));
    }
}
