//! The keyring of the system, through its command line program: `secret-tool` (Secret Service), `security` (macOS).
//!
//! A key goes through a pipe and never appears in arguments, which other users can see.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret, SecretString};

/// Time that the program has, including a question to unlock the keyring.
const PATIENCE: Duration = Duration::from_secs(60);

/// Name of this program in the keyring.
const SERVICE: &str = "palimpsest";

/// The keyring of the system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SystemKeyring {
    path: PathBuf,
    program: KeyringProgram,
}

/// A program that reaches the keyring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum KeyringProgram {
    SecretTool,
    Security,
}

impl KeyringProgram {
    fn name(self) -> &'static str {
        match self {
            KeyringProgram::SecretTool => "secret-tool",
            KeyringProgram::Security => "security",
        }
    }
}

impl SystemKeyring {
    /// Finds the program of this system in `PATH`.
    pub(crate) fn find() -> Result<SystemKeyring, String> {
        let program = match cfg!(target_os = "macos") {
            true => KeyringProgram::Security,
            false => KeyringProgram::SecretTool,
        };
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let mut files = std::env::split_paths(&paths).map(|directory| directory.join(program.name()));
        match files.find(|file| is_executable(file)) {
            Some(path) => Ok(SystemKeyring { path, program }),
            None => Err(format!("the program {} is not in PATH", program.name())),
        }
    }

    /// Name of the program.
    pub(crate) fn program(&self) -> &'static str {
        self.program.name()
    }

    /// Stores a key, and reads it back: a locked keyring may accept a key and lose it.
    pub(crate) fn store(&self, provider: &str, key: &SecretString) -> Result<(), String> {
        let key_text = key.expose_secret();
        match self.program {
            KeyringProgram::SecretTool => {
                let label = format!("--label=Palimpsest: API key for {provider}");
                let arguments = ["store", &label, "service", SERVICE, "account", provider];
                self.run(&arguments, key_text)?;
            }
            KeyringProgram::Security => {
                // The interactive mode takes commands from standard input.
                let hex: String = key_text.bytes().map(|byte| format!("{byte:02x}")).collect();
                let command = format!("add-generic-password -U -a {provider} -s {SERVICE} -X {hex}\n");
                self.run(&["-i"], &command)?;
            }
        }
        match self.look_up(provider) {
            Ok(stored) if stored.expose_secret() == key_text => Ok(()),
            Ok(_) => Err(String::from("it returns another key than the one stored")),
            Err(why) => Err(why),
        }
    }

    /// Reads a key.
    pub(crate) fn look_up(&self, provider: &str) -> Result<SecretString, String> {
        let printed = match self.program {
            KeyringProgram::SecretTool => {
                self.run(&["lookup", "service", SERVICE, "account", provider], "")?
            }
            KeyringProgram::Security => {
                self.run(&["find-generic-password", "-a", provider, "-s", SERVICE, "-w"], "")?
            }
        };
        match printed.trim() {
            "" => Err(String::from("it has no such key")),
            key => Ok(SecretString::from(key)),
        }
    }

    /// Removes a key; returns false if there was none.
    ///
    /// Fails if the keyring cannot be reached, or still has the key afterwards, which happens if it is locked.
    pub(crate) fn remove(&self, provider: &str) -> Result<bool, String> {
        if !self.has_key(provider)? {
            return Ok(false);
        }
        let arguments = match self.program {
            KeyringProgram::SecretTool => ["clear", "service", SERVICE, "account", provider],
            KeyringProgram::Security => ["delete-generic-password", "-a", provider, "-s", SERVICE],
        };
        let cleared = self.output(&arguments, "")?;
        match self.has_key(provider)? {
            false => Ok(true),
            true => Err(match cleared.errors.lines().next() {
                Some(line) => pal_report::sanitize(line),
                None => String::from("it keeps the key, so it may be locked"),
            }),
        }
    }

    /// Searches for a key without unlocking the keyring.
    fn has_key(&self, provider: &str) -> Result<bool, String> {
        let arguments: &[&str] = match self.program {
            KeyringProgram::SecretTool => &["search", "--all", "service", SERVICE, "account", provider],
            KeyringProgram::Security => &["find-generic-password", "-a", provider, "-s", SERVICE],
        };
        let output = self.output(arguments, "")?;
        // Without a match, secret-tool prints nothing, and security says so; both also print errors of a keyring that has
        // the key but is locked.
        let is_missing = |line: &str| line.contains("could not be found") || line.contains("No matching");
        match output.errors.lines().next() {
            _ if !output.printed.trim().is_empty() => Ok(true),
            Some(line) if !output.is_success && !is_missing(line) => Err(pal_report::sanitize(line)),
            _ => Ok(false),
        }
    }

    /// Runs the program and returns what it prints.
    fn run(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let output = self.output(arguments, input)?;
        match (output.is_success, output.errors.lines().next()) {
            (true, _) => Ok(output.printed),
            (false, Some(line)) => Err(pal_report::sanitize(line)),
            (false, None) => Err(format!("{} failed without a message", self.program())),
        }
    }

    /// Runs the program to its end.
    fn output(&self, arguments: &[&str], input: &str) -> Result<ProgramOutput, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.path.display());
        let mut child = Command::new(&self.path)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that ends without reading says why itself.
            let _ = stdin.write_all(input.as_bytes());
        }
        let end = Instant::now() + PATIENCE;
        let status = loop {
            match child.try_wait().map_err(failed)? {
                Some(status) => break status,
                None if Instant::now() >= end => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("{} did not end within {} s", self.program(), PATIENCE.as_secs()));
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let (mut printed, mut errors) = (String::new(), String::new());
        if let (Some(mut stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) {
            stdout.read_to_string(&mut printed).map_err(failed)?;
            stderr.read_to_string(&mut errors).map_err(failed)?;
        }
        Ok(ProgramOutput { is_success: status.success(), printed, errors })
    }
}

/// Output of the program of the keyring.
struct ProgramOutput {
    is_success: bool,
    printed: String,
    errors: String,
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program that keeps its last key in a file beside it, and writes down its arguments.
    const SECRET_TOOL: &str = r#"#!/bin/sh
echo "$@" >> "$0.calls"
case "$1" in
store) cat > "$0.key" ;;
lookup) cat "$0.key" ;;
search) [ -e "$0.key" ] && echo "[/1]"; exit 0 ;;
clear) [ -e "$0.key" ] || exit 1; [ -e "$0.locked" ] && exit 1; rm "$0.key" ;;
esac
"#;

    const SECURITY: &str = r#"#!/bin/sh
echo "$@" >> "$0.calls"
case "$1" in
-i) read -r verb u a account s service x hex; printf "$(printf %s "$hex" | sed 's/../\\x&/g')" > "$0.key" ;;
find-generic-password)
    [ -e "$0.key" ] || { echo "The specified item could not be found in the keychain." >&2; exit 44; }
    cat "$0.key" ;;
delete-generic-password) rm "$0.key" ;;
esac
"#;

    #[test]
    fn keys_go_through_pipes_and_come_back() {
        for (program, script) in
            [(KeyringProgram::SecretTool, SECRET_TOOL), (KeyringProgram::Security, SECURITY)]
        {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(program.name());
            std::fs::write(&path, script.replace("#!/bin/sh", "#!/bin/bash")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            let keyring = SystemKeyring { path: path.clone(), program };
            let key = SecretString::from("sk-ant-secret-1");
            keyring.store("anthropic", &key).unwrap();
            assert_eq!(
                keyring.look_up("anthropic").unwrap().expose_secret(),
                "sk-ant-secret-1",
                "{program:?}"
            );
            assert_eq!(keyring.remove("anthropic"), Ok(true));
            assert_eq!(keyring.remove("anthropic"), Ok(false), "{program:?}: no key is no error");
            assert!(keyring.look_up("anthropic").is_err());
            if program == KeyringProgram::SecretTool {
                keyring.store("anthropic", &key).unwrap();
                let locked = folder.path().join("secret-tool.locked");
                std::fs::write(&locked, "").unwrap();
                assert!(keyring.remove("anthropic").is_err(), "a key that stays is not removed");
                std::fs::remove_file(&locked).unwrap();
                assert_eq!(keyring.remove("anthropic"), Ok(true));
            }
            let calls =
                std::fs::read_to_string(folder.path().join(format!("{}.calls", program.name()))).unwrap();
            assert!(calls.contains("anthropic") && !calls.contains("secret-1"), "{calls}");
            std::fs::write(&path, "#!/bin/bash\necho 'Cannot autolaunch D-Bus' >&2\nexit 1\n").unwrap();
            assert_eq!(keyring.store("anthropic", &key), Err(String::from("Cannot autolaunch D-Bus")));
            assert_eq!(keyring.remove("anthropic"), Err(String::from("Cannot autolaunch D-Bus")));
        }
    }
}
