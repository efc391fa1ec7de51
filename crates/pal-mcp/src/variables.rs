//! Variables in server configurations: `${NAME}` and `${NAME:-default}`.

/// Looks up an environment variable; none if it is not set.
pub(crate) type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Expands variables; the error is the first name without a value. Text that only resembles a variable stays.
pub(crate) fn expand_variables(text: &str, environment: VariableLookup<'_>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, inside) = (&rest[..at], &rest[at + 2..]);
        expanded.push_str(before);
        let Some(end) = inside.find('}') else {
            expanded.push_str("${");
            rest = inside;
            continue;
        };
        let (name, otherwise) = match inside[..end].split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (&inside[..end], None),
        };
        if !is_name(name) {
            expanded.push_str("${");
            rest = inside;
            continue;
        }
        // As in a shell, an empty variable counts as unset if there is a default.
        let value = environment(name).filter(|value| otherwise.is_none() || !value.is_empty());
        match value.or_else(|| otherwise.map(str::to_owned)) {
            Some(value) => expanded.push_str(&value),
            None => return Err(name.to_owned()),
        }
        rest = &inside[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    begins && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_and_missing_ones_named() {
        let environment = |name: &str| match name {
            "HOME" => Some(String::from("/home/ada")),
            "EMPTY" => Some(String::new()),
            "TRICKY" => Some(String::from("${HOME}")),
            _ => None,
        };
        for (text, expected) in [
            ("plain $HOME", Ok("plain $HOME")),
            ("${HOME}/x", Ok("/home/ada/x")),
            ("${HOME}${HOME}", Ok("/home/ada/home/ada")),
            ("${NONE:-/srv}", Ok("/srv")),
            ("${NONE:-}", Ok("")),
            ("${EMPTY:-full}", Ok("full")),
            ("<${EMPTY}>", Ok("<>")),
            ("${TRICKY}", Ok("${HOME}")),
            ("${no name} ${1X} ${", Ok("${no name} ${1X} ${")),
            ("${${HOME}", Ok("${/home/ada")),
            ("a ${NONE}", Err("NONE")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(expand_variables(text, &environment), expected, "{text}");
        }
    }
}
