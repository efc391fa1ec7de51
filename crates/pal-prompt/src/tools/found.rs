//! Finding deferred tools, and what the search's result says.

use pal_model::{Block, Card, Content, Text, escape_into};

use super::{Catalogue, Tool};

/// Most tools that one search finds by words.
const FOUND_MOST: usize = 5;

/// What a query begins with that names tools.
const SELECT: &str = "select:";

impl Catalogue {
    /// The tools that a query is about: those that it names (`select:Name,Other`), or the deferred ones that its words
    /// fit best, at most five.
    pub fn search(&self, query: &str) -> Vec<&Tool> {
        match query.trim().strip_prefix(SELECT) {
            Some(names) => self.selected(names),
            None => self.fitting(query),
        }
    }

    /// What the result of a search says: references that the provider expands where it does, else the definitions.
    pub fn found(&self, card: &Card, tools: &[&Tool]) -> Content {
        if tools.is_empty() {
            let text = "No tool fits. Try other words, fewer of them, or a server's name.";
            return std::iter::once(Block::text(text)).collect();
        }
        // A reference names a tool of the list, which late ones never are.
        let is_late = |tool: &&Tool| self.late().iter().any(|late| late.wire_name == tool.wire_name);
        if card.can.tool_search && !tools.iter().any(is_late) {
            return tools.iter().map(|tool| reference(tool)).collect();
        }
        let definitions: Vec<String> = tools.iter().map(|tool| tool.definition()).collect();
        let text = format!(
            "Call these with CallTool: give the name, and an input that fits the schema. A tool without a place in your list of \
             tools cannot be called in any other way.\n\n{}",
            definitions.join("\n")
        );
        std::iter::once(Block::text(&text)).collect()
    }

    fn selected(&self, names: &str) -> Vec<&Tool> {
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        let is_named = |tool: &&Tool| {
            names.iter().any(|name| {
                tool.wire_name.eq_ignore_ascii_case(name) || tool.spec.name.eq_ignore_ascii_case(name)
            })
        };
        self.all().filter(is_named).collect()
    }

    fn fitting(&self, query: &str) -> Vec<&Tool> {
        let wanted = words(query);
        let mut scored: Vec<(usize, &Tool)> =
            self.hidden().map(|tool| (score(tool, &wanted), tool)).filter(|(score, _)| *score > 0).collect();
        scored.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.wire_name.cmp(&other.1.wire_name)));
        // Beside a tool that fits, one that only shares a word of everyday is noise.
        let least = scored.first().map_or(0, |(best, _)| best.div_ceil(3));
        scored.retain(|(score, _)| *score >= least);
        scored.into_iter().take(FOUND_MOST).map(|(_, tool)| tool).collect()
    }
}

/// How well a tool fits: a word of its name counts most, then a part of one, then its server, then its description.
fn score(tool: &Tool, wanted: &[String]) -> usize {
    let name = words(&tool.spec.name);
    let server = words(tool.spec.origin.server().unwrap_or_default());
    let description = words(&tool.description);
    let one = |word: &String| match () {
        () if name.contains(word) => 12,
        () if word.len() > 2 && name.iter().any(|part| part.contains(word.as_str())) => 6,
        () if server.contains(word) => 4,
        () if word.len() > 2 && description.contains(word) => 2,
        () if word.len() > 3 && description.iter().any(|part| part.starts_with(word.as_str())) => 1,
        () => 0,
    };
    wanted.iter().map(one).sum()
}

/// The words of a text in small letters, one and many alike; `createIssues` has two: `create` and `issue`.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in text.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && was_small) {
            words.push(String::new());
        }
        was_small = letter.is_lowercase();
        if let (true, Some(word)) = (letter.is_alphanumeric(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    for word in &mut words {
        if word.len() > 3 && word.ends_with('s') {
            word.pop();
        }
    }
    words
}

fn reference(tool: &Tool) -> Block {
    let mut json = String::from(r#"{"type":"tool_reference","tool_name":"#);
    escape_into(&mut json, &tool.wire_name);
    json.push('}');
    Block::parse(Text::from(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_into_words() {
        assert_eq!(words("createIssues get_HTTPPage x-2"), ["create", "issue", "get", "httppage", "x", "2"]);
        assert!(words(" -_").is_empty());
    }
}
