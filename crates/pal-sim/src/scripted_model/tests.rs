//! Script answers and script errors.

use std::borrow::Cow;

use pal_model::Role;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::PromptMessage;

/// A conversation that grows as a client's does.
struct ScriptConversation {
    messages: Vec<(Role, Vec<String>)>,
    tools: Vec<String>,
}

impl ScriptConversation {
    fn new(words: &str) -> ScriptConversation {
        let mut talk = ScriptConversation { messages: Vec::new(), tools: vec![r#"{"name":"Read"}"#.into()] };
        talk.user(words);
        talk
    }

    fn user(&mut self, words: &str) {
        self.messages.push((Role::User, vec![json!({"type": "text", "text": words}).to_string()]));
    }

    fn ask(&self) -> ModelPrompt<'_> {
        let message = |(role, blocks): &(Role, Vec<String>)| PromptMessage {
            role: *role,
            blocks: blocks.iter().map(|raw| Cow::Owned(raw.clone())).collect(),
        };
        ModelPrompt {
            model: "claude-opus-5-5",
            system: vec![Cow::Borrowed(r#"{"type":"text","text":"You are careful."}"#)],
            tools: self.tools.iter().map(|raw| Cow::Borrowed(raw.as_str())).collect(),
            messages: self.messages.iter().map(message).collect(),
            max_tokens: 100,
            thinks: false,
            compaction: None,
        }
    }

    /// Sends a request, appends the answer and answers its calls.
    fn go(&mut self, script: &mut ScriptedModel, result: &str) -> ModelOutput {
        let answer = script.answer(&self.ask());
        let mut results = Vec::new();
        let mut said = Vec::new();
        for (at, block) in answer.blocks.iter().enumerate() {
            let id = format!("toolu_{}_{at}", self.messages.len());
            said.push(match block {
                OutputBlock::Text(text) => json!({"type": "text", "text": text}).to_string(),
                OutputBlock::Thinking(text) => {
                    json!({"type": "thinking", "thinking": text, "signature": ""}).to_string()
                }
                OutputBlock::ToolUse { name, input, .. } => {
                    results.push(
                        json!({"type": "tool_result", "tool_use_id": id, "content": result}).to_string(),
                    );
                    format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}"#)
                }
                OutputBlock::ServerTool(raw) => raw.to_string(),
            });
        }
        self.messages.push((Role::Assistant, said));
        if !results.is_empty() {
            self.messages.push((Role::User, results));
        }
        answer
    }
}

fn shown(answer: &ModelOutput) -> String {
    let block = |block: &OutputBlock| match block {
        OutputBlock::Text(text) => text.clone(),
        OutputBlock::Thinking(text) => format!("({text})"),
        OutputBlock::ToolUse { name, input, .. } => format!("{name}{input}"),
        OutputBlock::ServerTool(raw) => raw.to_string(),
    };
    let mut out = answer.blocks.iter().map(block).collect::<Vec<_>>().join(" | ");
    if let Some(stop) = answer.stop {
        out.push_str(&format!(" | {stop:?}"));
    }
    out
}

fn script(toml: &str) -> ScriptedModel {
    ScriptedModel::parse(toml).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn three_lines_drive_a_hundred_turns() {
    let mut script = script(
        "[[turn]]\nrepeat = 100\ntools = [{ name = \"Read\", input = { file_path = \"src/{{turn}}.rs\" } }]",
    );
    let mut talk = ScriptConversation::new("read them all");
    for turn in 1..=100 {
        assert_eq!(
            shown(&talk.go(&mut script, "fn f() {}")),
            format!("Read{{\"file_path\":\"src/{turn}.rs\"}}")
        );
    }
    assert_eq!(shown(&talk.go(&mut script, "")), "The script has no further turn for this request.");
}

#[test]
fn a_turn_thinks_speaks_and_calls_in_parallel() {
    let mut script = script(
        r#"
        [[turn]]
        thinking = "First I look."
        text = "You said: {{last_user:5}}"
        tools = [
            { name = "Read", input = { z = "{{last_user}}", a = [1, 2.5, true, { deep = "{{turn}}" }] }, id = "toolu_x" },
            { name = "List" },
        ]
        stop = "pause_turn"
        "#,
    );
    let answer = script.answer(&ScriptConversation::new("hello there").ask());
    assert_eq!(
        shown(&answer),
        r#"(First I look.) | You said: hello | Read{"z":"hello there","a":[1,2.5,true,{"deep":"1"}]} | List{} | PauseTurn"#
    );
    assert!(matches!(&answer.blocks[2], OutputBlock::ToolUse { id: Some(id), .. } if id == "toolu_x"));
}

#[test]
fn placeholders_are_filled_from_the_request() {
    let mut script = script(
        r#"
        [[turn]]
        repeat = 2
        tools = [{ name = "Read" }]
        [[turn]]
        text = "{{turn}} {{time}} {{count.messages}} {{count.tools}} {{count.answers}} {{model}} {{max_tokens}} {{last_user}} {{last_result}} {{tool_result.Read}} {{tool_result.Bash}}."
        "#,
    );
    let mut talk = ScriptConversation::new("hi");
    talk.go(&mut script, "one");
    talk.go(&mut script, "two");
    assert_eq!(shown(&talk.go(&mut script, "")), "3 1 5 1 2 claude-opus-5-5 100 hi two two .");
}

#[test]
fn conditions_choose_the_turn() {
    let toml = |condition: &str| {
        format!("[[turn]]\nwhen = {{ {condition} }}\ntext = \"yes\"\n[default]\ntext = \"no\"")
    };
    let mut talk = ScriptConversation::new("please fix the bug");
    talk.messages
        .push((Role::Assistant, vec![r#"{"type":"tool_use","id":"t1","name":"Bash","input":{}}"#.into()]));
    talk.messages.push((
        Role::User,
        vec![r#"{"type":"tool_result","tool_use_id":"t1","content":"2 tests failed"}"#.into()],
    ));
    let cases = [
        ("last_user_contains = \"fix\"", true),
        ("last_user_contains = \"break\"", false),
        ("result_contains = \"failed\"", true),
        ("result_contains = \"passed\"", false),
        ("system_contains = \"careful\"", true),
        ("has_tool = \"Read\"", true),
        ("has_tool = \"Bash\"", false),
        ("result_of = \"Bash\"", true),
        ("result_of = \"Read\"", false),
        ("last_is = \"tool_result\"", true),
        ("last_is = \"text\"", false),
        ("turn = 2", true),
        ("turn = 1", false),
        ("turn = \"2-5\"", true),
        ("turn = \"3-\"", false),
        ("messages = 3", true),
        ("model_contains = \"opus\"", true),
        ("compaction = true", false),
        ("not = { turn = 1 }", true),
        ("turn = 2, has_tool = \"Bash\"", false),
        ("any = [{ has_tool = \"Bash\" }, { turn = 2 }]", true),
        ("all = [{ has_tool = \"Bash\" }, { turn = 2 }]", false),
    ];
    for (condition, wanted) in cases {
        let answer = script(&toml(condition)).answer(&talk.ask());
        assert_eq!(shown(&answer) == "yes", wanted, "{condition}");
    }
}

#[test]
fn turn_order_is_first_match_or_sequence() {
    let turns = r#"
        [[turn]]
        when = { last_user_contains = "b" }
        text = "B"
        [[turn]]
        text = "A"
        [default]
        text = "D"
    "#;
    let said = |order: &str| {
        let mut script = script(&format!("order = \"{order}\"\n{turns}"));
        ["a", "ab", "abc"].map(|words| shown(&script.answer(&ScriptConversation::new(words).ask())))
    };
    assert_eq!(said("first-match"), ["A", "B", "D"]);
    assert_eq!(said("sequence"), ["D", "B", "A"]);
}

#[test]
fn repeated_request_gets_the_same_answer_by_default() {
    let turns = "[[turn]]\ntext = \"one\"\n[[turn]]\ntext = \"two\"";
    let twice = |toml: &str| {
        let mut script = script(toml);
        [1, 2].map(|_| shown(&script.answer(&ScriptConversation::new("hi").ask())))
    };
    assert_eq!(twice(turns), ["one", "one"]);
    assert_eq!(twice(&format!("again = \"next\"\n{turns}")), ["one", "two"]);
}

#[test]
fn repeat_always_never_uses_up_a_turn() {
    let mut script = script("[[turn]]\nrepeat = \"always\"\ntext = \"{{time}}\"");
    for time in 1..=200 {
        let answer = script.answer(&ScriptConversation::new(&format!("question {time}")).ask());
        assert_eq!(shown(&answer), time.to_string());
    }
}

#[test]
fn errors_give_position_and_syntax() {
    let cases = [
        ("[[turn]]\ntxet = \"x\"", 2, 1, &["`txet`", "did you mean `text`", "thinking"][..]),
        ("[[trun]]\ntext = \"x\"", 1, 3, &["did you mean `turn`"]),
        (
            "[[turn]]\ntext = \"x\"\n[[turn]]\nwhen = { has_tol = \"x\" }\ntext = \"y\"",
            4,
            10,
            &["did you mean `has_tool`"],
        ),
        ("[[turn]]\ntext = \"a {{last_usr}}\"", 2, 8, &["did you mean `last_user`"]),
        ("[[turn]]\ntext = \"a {{last_user\"", 2, 8, &["no `}}`"]),
        ("[[turn]]\ntext = \"{{last_user:many}}\"", 2, 8, &["number of characters"]),
        ("[[turn]]\ntext = 7", 2, 8, &["text in quotes"]),
        ("[[turn]]\nrepeat = 0\ntext = \"x\"", 2, 10, &["repeat = 100"]),
        ("[[turn]]\nrepeat = 3", 1, 1, &["says nothing"]),
        ("[[turn]]\ntools = [{ input = {} }]", 2, 10, &["no `name`"]),
        ("[[turn]]\ntools = [{ name = \"a\", inputs = {} }]", 2, 24, &["did you mean `input`"]),
        ("[[turn]]\nstop = \"max_token\"\ntext = \"x\"", 2, 8, &["did you mean `max_tokens`"]),
        ("order = \"random\"", 1, 9, &["first-match, sequence"]),
        ("[[turn]]\nwhen = { last_is = \"result\" }\ntext = \"x\"", 2, 20, &["text, tool_result, system"]),
        ("[[turn]]\nwhen = { turn = \"x\" }\ntext = \"x\"", 2, 17, &["\"3-5\""]),
        ("[default]\nwhen = { turn = 1 }\ntext = \"x\"", 1, 1, &["neither `when` nor `repeat`"]),
        ("[[turn]]\ntext = \"x", 2, 10, &["string"]),
        ("turn = 3", 1, 8, &["`[[turn]]`"]),
    ];
    for (toml, line, column, wanted) in cases {
        let error = ScriptedModel::parse(toml).unwrap_err();
        assert_eq!((error.line, error.column), (line, column), "{toml}\n{error}");
        for words in wanted {
            assert!(error.to_string().contains(words), "{toml}\n{error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(pal_testkit::cases(200)))]

    #[test]
    fn any_text_parses_or_fails_cleanly(toml in "(\\[\\[turn\\]\\]\n|text = \"|\"|\n|\\{\\{|\\}\\}|when = \\{|.){0,60}", words in ".{0,60}") {
        if let Ok(mut script) = ScriptedModel::parse(&toml) {
            script.answer(&ScriptConversation::new(&words).ask());
        }
    }
}
