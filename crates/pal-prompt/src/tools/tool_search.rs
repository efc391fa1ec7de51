//! Search for deferred tools, and the text of its result.

use pal_model::{Content, ContentBlock, ModelCard, SharedText, escape_into};

use super::{CatalogTool, ToolCatalog};

/// Most tools that one search finds by words.
const FOUND_MAX: usize = 5;

/// Prefix of a query that names tools.
const SELECT: &str = "select:";

impl ToolCatalog {
    /// The tools that a query is about: those that it names (`select:Name,Other`), or the deferred ones that its words
    /// fit best, at most five.
    pub fn search(&self, query: &str) -> Vec<&CatalogTool> {
        match query.trim().strip_prefix(SELECT) {
            Some(names) => self.select_by_name(names),
            None => self.rank_by_words(query),
        }
    }

    /// Result of a search: references where the provider expands them, else the definitions.
    pub fn render_search_result(&self, card: &ModelCard, tools: &[&CatalogTool]) -> Content {
        if tools.is_empty() {
            let text = "No tool fits. Try other words, fewer of them, or a server's name.";
            return std::iter::once(ContentBlock::text(text)).collect();
        }
        // A reference names a tool of the list, which late ones never are.
        let is_late =
            |tool: &&CatalogTool| self.late_tools().iter().any(|late| late.wire_name == tool.wire_name);
        if card.can.tool_search && !tools.iter().any(is_late) {
            return tools.iter().map(|tool| reference(tool)).collect();
        }
        let definitions: Vec<String> = tools.iter().map(|tool| tool.definition()).collect();
        let text = format!(
            "Call these with CallTool: give the name, and an input that fits the schema. A tool without a place in your list of \
             tools cannot be called in any other way.\n\n{}",
            definitions.join("\n")
        );
        std::iter::once(ContentBlock::text(&text)).collect()
    }

    fn select_by_name(&self, names: &str) -> Vec<&CatalogTool> {
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        let is_named = |tool: &&CatalogTool| {
            names.iter().any(|name| {
                tool.wire_name.eq_ignore_ascii_case(name) || tool.spec.name.eq_ignore_ascii_case(name)
            })
        };
        self.all_tools().filter(is_named).collect()
    }

    fn rank_by_words(&self, query: &str) -> Vec<&CatalogTool> {
        let wanted = split_words(query);
        let mut scored: Vec<(usize, &CatalogTool)> = self
            .hidden_tools()
            .map(|tool| (score(tool, &wanted), tool))
            .filter(|(score, _)| *score > 0)
            .collect();
        scored.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.wire_name.cmp(&other.1.wire_name)));
        // Beside a tool that fits, one that only shares a word of everyday is noise.
        let least = scored.first().map_or(0, |(best, _)| best.div_ceil(3));
        scored.retain(|(score, _)| *score >= least);
        scored.into_iter().take(FOUND_MAX).map(|(_, tool)| tool).collect()
    }
}

/// Match score: a word of the name counts most, then a part of one, then the server, then the description.
fn score(tool: &CatalogTool, wanted: &[String]) -> usize {
    let name = split_words(&tool.spec.name);
    let server = split_words(tool.spec.origin.server().unwrap_or_default());
    let description = split_words(&tool.description);
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
fn split_words(text: &str) -> Vec<String> {
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

fn reference(tool: &CatalogTool) -> ContentBlock {
    let mut json = String::from(r#"{"type":"tool_reference","tool_name":"#);
    escape_into(&mut json, &tool.wire_name);
    json.push('}');
    ContentBlock::parse(SharedText::from(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_into_words() {
        assert_eq!(
            split_words("createIssues get_HTTPPage x-2"),
            ["create", "issue", "get", "httppage", "x", "2"]
        );
        assert!(split_words(" -_").is_empty());
    }
}
