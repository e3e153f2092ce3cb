//! Heads, names and sizes of files, and words that have no place in them.

use std::path::Path;

use anyhow::Context;

use crate::root;

/// Lines of code, tests and comments not counted, past which a file must be split.
const CODE_LINES_MAX: usize = 1000;

/// Files larger than this are data, not text of ours.
const TEXT_BYTES_MAX: u64 = 2 << 20;

/// Names that say nothing about what is inside.
const CATCH_ALL_NAMES: &[&str] = &[
    "mod.rs",
    "utils.rs",
    "util.rs",
    "helpers.rs",
    "misc.rs",
    "common.rs",
    "core.rs",
    "impls.rs",
    "types.rs",
];

/// Paths of one machine, unfinished code and private talk. Written in two halves so that this file passes.
const UNWANTED: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ho", "me/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("sub", "agent"), "the project speaks of itself alone"),
    (concat!("dbg", "!("), "left over from a search for a bug"),
    (concat!("unimple", "mented!("), "a part that is not built is absent"),
];

/// Endings of files that hold text of ours.
const TEXT_ENDINGS: &[&str] = &[
    "rs", "md", "toml", "py", "js", "mjs", "go", "java", "sh", "yaml", "yml", "json", "xml", "wit", "",
];

pub(super) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut findings = Vec::new();
    for file in root::files(root)? {
        let ending = file
            .extension()
            .map(|ending| ending.to_string_lossy().into_owned())
            .unwrap_or_default();
        let path = root.join(&file);
        if !TEXT_ENDINGS.contains(&ending.as_str()) || std::fs::metadata(&path)?.len() > TEXT_BYTES_MAX {
            continue;
        }
        let Ok(text) = String::from_utf8(std::fs::read(&path).with_context(|| format!("read {}", file.display()))?)
        else {
            continue;
        };
        let name = file.display().to_string();
        findings.extend(unwanted_words(&name, &text));
        if ending == "rs" {
            findings.extend(check_rust(&name, &text));
        }
    }
    Ok(findings)
}

fn unwanted_words(name: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (word, why) in UNWANTED.iter().filter(|(word, _)| line.contains(word)) {
            findings.push(format!("{name}:{}: {word}: {why}", number + 1));
        }
    }
    findings
}

fn check_rust(name: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        findings.push(format!("{name}: does not begin with //! and what this room is for"));
    }
    let file_name = name.rsplit('/').next().unwrap_or(name);
    if CATCH_ALL_NAMES.contains(&file_name) {
        findings.push(format!("{name}: this name says nothing about what is inside"));
    }
    let lines = code_lines(name, text);
    if lines > CODE_LINES_MAX {
        findings.push(format!("{name}: {lines} lines of code; split at {CODE_LINES_MAX}"));
    }
    findings
}

/// Lines that are neither empty nor comment, up to the tests at the end; nothing where the whole file is tests.
fn code_lines(name: &str, text: &str) -> usize {
    if name.ends_with("/tests.rs") || name.contains("/tests/") {
        return 0;
    }
    let mut lines = text.lines().map(str::trim).peekable();
    let mut count = 0;
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]"
            && lines
                .peek()
                .is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'))
        {
            break;
        }
        if !line.is_empty() && !line.starts_with("//") {
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_head_is_found() {
        let found = check_rust("server/a/src/b.rs", "use std::fmt;\n");
        assert_eq!(
            found,
            ["server/a/src/b.rs: does not begin with //! and what this room is for"]
        );
    }

    #[test]
    fn a_catch_all_name_is_found() {
        assert_eq!(check_rust("server/a/src/utils.rs", "//! Things.\n").len(), 1);
        assert!(check_rust("server/a/src/batch.rs", "//! Batches.\n").is_empty());
    }

    #[test]
    fn tests_and_comments_do_not_count_as_code() {
        let text = "//! Head.\n\nfn a() {}\n// Why.\nfn b() {}\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
        assert_eq!(code_lines("server/a/src/b.rs", text), 2);
        assert_eq!(code_lines("server/a/src/b/tests.rs", text), 0);
    }

    #[test]
    fn a_file_past_the_limit_is_found() {
        let text = format!("//! Long.\n{}", "fn a() {}\n".repeat(CODE_LINES_MAX + 1));
        assert_eq!(check_rust("a.rs", &text), ["a.rs: 1001 lines of code; split at 1000"]);
    }

    #[test]
    fn a_path_of_one_machine_is_found_with_its_line() {
        let text = format!("one\ncd {}x\n", UNWANTED[0].0);
        assert_eq!(
            unwanted_words("a.md", &text),
            [format!("a.md:2: {}: a path of one machine", UNWANTED[0].0)]
        );
    }
}
