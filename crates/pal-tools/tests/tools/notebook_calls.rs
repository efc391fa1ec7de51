//! Calls of the `NotebookEdit` tool.

use serde_json::{Value, json};

use crate::common::Place;

/// A notebook as Jupyter writes it: an indent of one space, and a number that a JSON library would write differently.
const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": [
    "# Title\n",
    "über <b>alles</b>"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "sum",
   "metadata": {
    "tags": ["a"]
   },
   "outputs": [
    {
     "data": {"text/plain": ["1e-05"]},
     "output_type": "execute_result"
    }
   ],
   "source": [
    "1 + 1"
   ]
  }
 ],
 "metadata": {"weight": 1e-05},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

fn place() -> Place {
    let place = Place::new();
    place.put("a.ipynb", NOTEBOOK);
    let _ = place.read("a.ipynb").good();
    place
}

/// Edits the notebook and returns its cells; all lines outside of the list of cells stay as they are.
fn edit(place: &Place, fields: &Value) -> Vec<Value> {
    let mut input = json!({"notebook_path": "a.ipynb"});
    input.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let _ = place.call("NotebookEdit", &input).good();
    let text = place.text("a.ipynb");
    assert!(text.ends_with(
        "\n ],\n \"metadata\": {\"weight\": 1e-05},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n"
    ));
    let notebook: Value = serde_json::from_str(&text).unwrap();
    notebook["cells"].as_array().unwrap().clone()
}

#[test]
fn a_replaced_code_cell_loses_its_outputs_and_nothing_else_changes() {
    let place = place();
    let cells = edit(&place, &json!({"cell_id": "sum", "new_source": "x = 2\nx ** 2\n"}));
    assert_eq!(cells[1]["source"], json!(["x = 2\n", "x ** 2\n"]));
    assert_eq!((&cells[1]["outputs"], &cells[1]["execution_count"]), (&json!([]), &Value::Null));
    assert_eq!((&cells[1]["id"], &cells[1]["metadata"]), (&json!("sum"), &json!({"tags": ["a"]})));
    let expected = NOTEBOOK
        .replace("\"execution_count\": 3", "\"execution_count\": null")
        .replace("    \"1 + 1\"\n", "    \"x = 2\\n\",\n    \"x ** 2\\n\"\n");
    let start = expected.find("   \"outputs\": [").unwrap();
    let end = expected.rfind("   \"source\": [").unwrap();
    let expected = format!("{}   \"outputs\": [],\n{}", &expected[..start], &expected[end..]);
    assert_eq!(place.text("a.ipynb"), expected, "all other bytes stay");
    // The new content is known, so the next edit needs no read; cells can be named by number.
    let cells = edit(&place, &json!({"cell_id": "cell-0", "new_source": "", "cell_type": "code"}));
    assert_eq!((&cells[0]["cell_type"], &cells[0]["source"]), (&json!("code"), &json!([])));
    assert_eq!(cells[0]["outputs"], json!([]));
    let cells = edit(&place, &json!({"cell_id": "sum", "new_source": "text", "cell_type": "markdown"}));
    assert!(cells[1].get("outputs").is_none() && cells[1].get("execution_count").is_none());
}

#[test]
fn cells_are_inserted_and_deleted() {
    let place = place();
    let insert = json!({"edit_mode": "insert", "cell_type": "code", "new_source": "first()"});
    let cells = edit(&place, &insert);
    assert_eq!(
        (cells.len(), &cells[0]["source"], &cells[1]["id"]),
        (3, &json!(["first()"]), &json!("intro"))
    );
    assert_eq!(cells[0]["id"].as_str().map(str::len), Some(8), "{}", cells[0]);
    let insert =
        json!({"edit_mode": "insert", "cell_id": "intro", "cell_type": "markdown", "new_source": "two"});
    let cells = edit(&place, &insert);
    assert_eq!((&cells[2]["source"], &cells[2]["cell_type"]), (&json!(["two"]), &json!("markdown")));
    assert!(cells[2].get("outputs").is_none() && cells[2]["id"] != cells[0]["id"]);
    let cells = edit(&place, &json!({"edit_mode": "delete", "cell_id": "cell-2"}));
    assert_eq!(cells.len(), 3);
    let cells = edit(&place, &json!({"edit_mode": "delete", "cell_id": "cell-0"}));
    assert_eq!(cells.len(), 2);
    assert_eq!(place.text("a.ipynb"), NOTEBOOK, "an insertion that is deleted leaves the file as it was");
}

#[test]
fn old_and_one_line_notebooks_keep_their_form() {
    let place = Place::new();
    let one_line =
        r#"{"cells":[{"cell_type":"raw","metadata":{},"source":"x"}],"nbformat":4,"nbformat_minor":2}"#;
    place.put("b.ipynb", one_line);
    let _ = place.read("b.ipynb").good();
    let insert = json!({"notebook_path": "b.ipynb", "edit_mode": "insert", "cell_id": "cell-0", "cell_type": "raw", "new_source": "y"});
    let _ = place.call("NotebookEdit", &insert).good();
    let text = place.text("b.ipynb");
    assert_eq!(
        text,
        one_line.replace("\"x\"}", r#""x"},{"cell_type":"raw","metadata":{},"source":["y"]}"#),
        "a format without cell ids gets none"
    );
}

#[test]
fn errors_name_the_problem_and_change_nothing() {
    let place = place();
    place.put("new.ipynb", NOTEBOOK);
    place.put("bad.ipynb", "{\"worksheets\": []}");
    let _ = place.read("bad.ipynb").good();
    let base = json!({"notebook_path": "a.ipynb", "cell_id": "sum", "new_source": "x"});
    for (change, why) in [
        (json!({"notebook_path": "new.ipynb"}), "you have not read it"),
        (json!({"notebook_path": "none.ipynb"}), "does not exist"),
        (json!({"notebook_path": "a.py"}), "no .ipynb file"),
        (json!({"notebook_path": "bad.ipynb"}), "no `cells`"),
        (json!({"cell_id": "total"}), "there is no cell `total`; by number they are cell-0 to cell-1"),
        (json!({"cell_id": "cell-2"}), "there is no cell `cell-2`"),
        (json!({"cell_id": null}), "`cell_id` is missing"),
        (json!({"new_source": null}), "`new_source` is missing"),
        (json!({"edit_mode": "insert"}), "`cell_type` is missing"),
        (json!({"edit_mode": "move"}), "unknown variant `move`"),
        (json!({"cell_id": "intro", "new_source": "# Title\nüber <b>alles</b>"}), "exactly this source"),
    ] {
        let mut input = base.clone();
        input.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let said = place.call("NotebookEdit", &input).wrong();
        assert!(said.contains(why), "{change}: {said}");
    }
    assert_eq!(place.text("a.ipynb"), NOTEBOOK);
    place.put("a.ipynb", NOTEBOOK.replace("Title", "Other"));
    assert!(place.call("NotebookEdit", &base).wrong().contains("has changed since you last saw it"));
}
