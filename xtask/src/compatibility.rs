//! `compatibility`: writes the tables of configuration keys in `docs/compatibility.md` from the table that the server reads.
//!
//! A test holds the page to it, so a key that comes into effect changes the page in the same commit.

use anyhow::{Context, bail};

use crate::root;

const PAGE: &str = "docs/compatibility.md";
const BEGIN: &str = "<!-- keys: written by `cargo xtask compatibility` -->\n";
const END: &str = "<!-- end of keys -->\n";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    if let Some(argument) = arguments.first() {
        bail!("compatibility takes no arguments, not {argument}");
    }
    let path = root::path()?.join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| format!("read {PAGE}"))?;
    std::fs::write(&path, with_tables(&page)?).with_context(|| format!("write {PAGE}"))
}

/// The page with the tables as they are now.
fn with_tables(page: &str) -> anyhow::Result<String> {
    let (before, rest) = page
        .split_once(BEGIN)
        .with_context(|| format!("{PAGE} has no line {BEGIN}"))?;
    let (_, after) = rest
        .split_once(END)
        .with_context(|| format!("{PAGE} has no line {END}"))?;
    let tables = metadata::config_keys::compatibility_table();
    Ok(format!("{before}{BEGIN}\n{}\n\n{END}{after}", tables.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_tells_of_the_keys_as_they_are() {
        let page = std::fs::read_to_string(root::path().unwrap().join(PAGE)).unwrap();
        assert!(
            page == with_tables(&page).unwrap(),
            "{PAGE} is out of date: cargo xtask compatibility"
        );
    }
}
