//! `pal login` and `pal logout`: a stored API key.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::process::ExitCode;

use pal_settings::{StoredKey, find_stored_key, store_key};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use secrecy::{ExposeSecret, SecretString};

use crate::arguments::{KeyProviderArg, LoginArgs, LogoutArgs};
use crate::failure::Failure;
use crate::notices::print_notice;
use crate::settings::{Settings, variable};
use crate::system_keyring::SystemKeyring;

/// Maximum bytes of a key.
const KEY_BYTES_MAX: u64 = 4096;

pub(crate) fn login(
    arguments: &LoginArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let home = home_of(settings)?;
    let provider = arguments.provider;
    let key = SecretString::from(read_key(provider)?.trim());
    check_key(key.expose_secret(), provider)?;
    let name = provider.name();
    let failed = |error: std::io::Error| Failure::of_file(&home, &error);
    let had_file_key = matches!(find_stored_key(&home, name).map_err(failed)?, Some(StoredKey::File(_)));
    let keyring = SystemKeyring::find();
    let kept = match (arguments.file, &keyring) {
        (false, Ok(keyring)) => Some(keyring.store(name, &key)),
        _ => None,
    };
    if let (Some(Ok(())), Ok(keyring)) = (&kept, &keyring) {
        // A key that an earlier login left in the file must not stay there.
        let path = store_key(&home, name, Some(&StoredKey::Keyring)).map_err(failed)?;
        writeln!(out, "Stored the key for {name} in the system keyring, with {}.", keyring.program())?;
        if had_file_key {
            writeln!(out, "Removed the earlier key from {}.", path.display())?;
        }
    } else {
        if let Some(Err(why)) = &kept {
            print_notice(format_args!("the system keyring did not take the key: {why}"));
        }
        let path = store_key(&home, name, Some(&StoredKey::File(key))).map_err(failed)?;
        writeln!(out, "Stored the key for {name} in {}; only you can read it.", path.display())?;
        // Nor may a key stay in the keyring, where nothing would use it.
        match keyring.map(|keyring| keyring.remove(name)) {
            Ok(Ok(true)) => writeln!(out, "Removed the earlier key from the system keyring.")?,
            Ok(Err(why)) => print_notice(format_args!(
                "the system keyring cannot be searched for an earlier key: {why}; if it has one, the key stays there"
            )),
            Ok(Ok(false)) | Err(_) => {}
        }
    }
    if variable(provider.variable()).is_some_and(|value| !value.trim().is_empty()) {
        writeln!(out, "{} is set and goes before it.", provider.variable())?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn logout(
    arguments: &LogoutArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let (home, name) = (home_of(settings)?, arguments.provider.name());
    let failed = |error: std::io::Error| Failure::of_file(&home, &error);
    let stored = find_stored_key(&home, name).map_err(failed)?;
    let removed = SystemKeyring::find().and_then(|keyring| keyring.remove(name));
    if let (Err(why), Some(StoredKey::Keyring)) = (&removed, &stored) {
        return Err(Failure::with_hint(
            format!("the key for {name} cannot be removed from the system keyring: {why}"),
            "unlock the keyring and try again",
        ));
    }
    let path = store_key(&home, name, None).map_err(failed)?;
    match (removed, stored) {
        (Ok(true), Some(StoredKey::File(_))) => {
            writeln!(
                out,
                "Removed the keys for {name} from the system keyring and from {}.",
                path.display()
            )?;
        }
        (Ok(true), _) => writeln!(out, "Removed the key for {name} from the system keyring.")?,
        (Ok(false), Some(StoredKey::File(_))) => {
            writeln!(
                out,
                "Removed the key for {name} from {}; the system keyring has none.",
                path.display()
            )?;
        }
        (Ok(false), _) => {
            writeln!(out, "No key for {name} is stored in the system keyring or in {}.", path.display())?;
        }
        (Err(why), stored) => {
            match stored {
                Some(_) => writeln!(out, "Removed the key for {name} from {}.", path.display())?,
                None => writeln!(out, "No key for {name} is stored in {}.", path.display())?,
            }
            print_notice(format_args!(
                "the system keyring cannot be searched for an earlier key: {why}; if it has one, the key stays there"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn home_of(settings: &Settings) -> Result<std::path::PathBuf, Failure> {
    settings.home.clone().ok_or_else(|| {
        Failure::with_hint(
            "no home directory is known",
            "set HOME, or set PAL_HOME to the directory for pal's files",
        )
    })
}

/// Reads the key from the terminal without showing it, or from standard input.
fn read_key(provider: KeyProviderArg) -> Result<String, Failure> {
    let input = std::io::stdin();
    let failed = |error: std::io::Error| Failure::new(format!("standard input: {error}"));
    let mut text = String::new();
    if !input.is_terminal() {
        input.lock().take(KEY_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
        return Ok(text);
    }
    eprint!("API key for {} (not shown): ", provider.name());
    let modes = tcgetattr(&input).map_err(|error| failed(error.into()))?;
    let mut hidden = modes.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&input, OptionalActions::Flush, &hidden).map_err(|error| failed(error.into()))?;
    let read = input.lock().take(KEY_BYTES_MAX).read_line(&mut text);
    tcsetattr(&input, OptionalActions::Flush, &modes).map_err(|error| failed(error.into()))?;
    eprintln!();
    read.map_err(failed)?;
    Ok(text)
}

/// Rejects what cannot be a key, before it is stored.
fn check_key(key: &str, provider: KeyProviderArg) -> Result<(), Failure> {
    let wrong = |what: &str, hint: &str| Err(Failure::usage_error(what.to_owned(), hint.to_owned()));
    let other = if provider == KeyProviderArg::Openai { "pal login" } else { "pal login openai" };
    if key.is_empty() {
        return wrong("no key was given", "paste the key, or pipe it in: `pass show anthropic | pal login`");
    }
    if !key.chars().all(|letter| letter.is_ascii_graphic()) {
        return wrong("this is not an API key: it has spaces or special characters", "copy the key alone");
    }
    let is_claude = key.starts_with("sk-ant-");
    if key.starts_with("sk-ant-oat") {
        return wrong(
            "this is a subscription token, not an API key",
            "create an API key in the provider's console; subscriptions work only in the provider's own programs",
        );
    }
    match (provider, is_claude) {
        (KeyProviderArg::Openai, true) => wrong("this key is for Claude", &format!("run `{other}`")),
        (KeyProviderArg::Anthropic, false) if key.starts_with("sk-proj-") => {
            wrong("this key is for OpenAI", &format!("run `{other}`"))
        }
        _ => Ok(()),
    }
}
