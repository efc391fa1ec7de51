//! The user's command that prints an API key (`api_key_helper`).

use std::process::{Command, Stdio};

use secrecy::SecretString;

use crate::failure::Failure;

/// Runs the command in a shell and returns what it prints. Its standard error goes to the user.
pub(crate) fn key_of_helper(command: &str) -> Result<SecretString, Failure> {
    let hint = "run the command yourself, correct `api_key_helper`, or set ANTHROPIC_API_KEY";
    let failed = |why: String| Failure::with_hint(format!("api_key_helper `{command}` failed: {why}"), hint);
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = shell.output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let text = String::from_utf8(output.stdout).map_err(|_| failed(String::from("it printed no text")))?;
    match text.trim() {
        "" => Err(failed(String::from("it printed nothing"))),
        key => Ok(SecretString::from(key)),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn the_key_is_what_the_command_prints() {
        assert_eq!(key_of_helper("printf 'sk-1\\n'").unwrap().expose_secret(), "sk-1");
        for (command, expected) in [("exit 3", "exit status: 3"), ("true", "printed nothing")] {
            let error = key_of_helper(command).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("hint"), "{error}");
        }
    }
}
