//! The tests that `docs/compatibility.md` names as evidence are there.
//!
//! The last cell of each row of the section's tables holds files and, behind each, names of tests in it, all in backticks:
//! `` `server/a/tests/b.rs` `one_test`, `another` ``. A row without a test is a finding, too. A name that ends with `_` is the
//! beginning of names that a suite puts together.

use std::path::Path;

use anyhow::Context;

const PAGE: &str = "docs/compatibility.md";
const HEADING: &str = "## What shows it";

pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let page = std::fs::read_to_string(root.join(PAGE)).with_context(|| format!("read {PAGE}"))?;
    Ok(check_page(&page, |path| std::fs::read_to_string(root.join(path)).ok()))
}

fn check_page(page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut lines = page.lines().skip_while(|line| *line != HEADING);
    if lines.next().is_none() {
        return vec![format!("{PAGE}: no heading {HEADING}")];
    }
    let rows = lines
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .filter(|row| !row.starts_with("row | "));
    let mut findings = Vec::new();
    for row in rows {
        let (id, cell) = (
            row.split(" | ").next().unwrap_or_default(),
            row.rsplit(" | ").next().unwrap_or_default(),
        );
        findings.extend(check_cell(cell, &read).map(|finding| format!("{PAGE}: {id}: {finding}")));
    }
    findings
}

fn check_cell(cell: &str, read: impl Fn(&str) -> Option<String>) -> impl Iterator<Item = String> {
    let mut findings = Vec::new();
    let (mut path, mut text) = ("", String::new());
    let mut is_shown = false;
    for word in cell.split('`').skip(1).step_by(2) {
        if word.contains('/') {
            path = word;
            text = read(path).unwrap_or_default();
            if text.is_empty() {
                findings.push(format!("there is no file {path}"));
            }
        } else if text.is_empty() || !defines(&text, word) {
            findings.push(format!("there is no test {word} in {path}"));
        } else {
            is_shown = true;
        }
    }
    if !is_shown && findings.is_empty() {
        findings.push("no test is named".to_owned());
    }
    findings.into_iter()
}

/// Whether a test of that name is there: a function of Rust's or Python's, a name in a macro that makes tests, or a string that a
/// suite calls its case.
fn defines(text: &str, name: &str) -> bool {
    if name.ends_with('_') {
        return text.contains(&format!("\"{name}")) || text.contains(&format!("`{name}"));
    }
    ["fn {}(", "def {}(", "    {} =>", "\"{}\""]
        .iter()
        .any(|form| text.contains(&form.replace("{}", name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(cell: &str) -> Vec<String> {
        let page = format!(
            "# Page\n\n{HEADING}\n\n| row | what | test |\n|---|---|---|\n| S1 | It is so. | {cell} |\n\n## Next\n"
        );
        check_page(&page, |path| match path {
            "a/b.rs" => Some("fn one() {}\n    two => suite;\n".to_owned()),
            "c/D.java" => Some("add(\"three\", x); add(\"four_\" + codec, y); // five\n".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn tests_that_are_there_are_found_in_every_language() {
        assert_eq!(findings("`a/b.rs` `one`, `two`; `c/D.java` `three`, `four_`"), [""; 0]);
    }

    #[test]
    fn a_test_or_a_file_that_is_not_there_is_told() {
        let prefix = format!("{PAGE}: S1: ");
        for (cell, finding) in [
            ("`a/b.rs` `three`", "there is no test three in a/b.rs"),
            ("`a/b.rs` `on`", "there is no test on in a/b.rs"),
            ("`c/D.java` `five`", "there is no test five in c/D.java"),
            ("`c/D.java` `five_`", "there is no test five_ in c/D.java"),
            ("`a/x.rs`", "there is no file a/x.rs"),
            ("`one`", "there is no test one in "),
            ("`a/b.rs`", "no test is named"),
            ("by hand", "no test is named"),
        ] {
            assert_eq!(findings(cell), [format!("{prefix}{finding}")], "{cell}");
        }
    }

    #[test]
    fn a_page_without_the_section_is_told() {
        assert_eq!(
            check_page("# Page\n", |_| None),
            [format!("{PAGE}: no heading {HEADING}")]
        );
    }
}
