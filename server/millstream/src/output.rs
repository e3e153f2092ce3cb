//! Where words go: data to standard output, everything meant for people to standard error.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

/// Rows under headings, in columns as wide as what stands in them.
#[derive(Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&'static str]) -> Self {
        Table {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        debug_assert_eq!(cells.len(), self.headings.len(), "a cell for each heading");
        self.rows.push(cells);
    }

    pub(crate) fn print(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(self.render().as_bytes())?;
        out.flush()
    }

    fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.headings[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
        let headings: Vec<String> = self.headings.iter().map(|heading| (*heading).to_owned()).collect();
        let mut text = String::new();
        for row in std::iter::once(&headings).chain(&self.rows) {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// One value on one line.
pub(crate) fn print_json(value: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// A line of data.
pub(crate) fn print_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// A word to whoever sits at the terminal.
pub(crate) fn tell(message: &str) {
    // Nobody is left to be told if this fails.
    let _ = writeln!(io::stderr().lock(), "{message}");
}

/// An error with its causes.
pub(crate) fn tell_error(error: &anyhow::Error) {
    let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let (start, end) = if colour { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    tell(&format!("{start}error:{end} {error:#}"));
}

/// Whether the reader of our output has gone, which is its right.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause
            .downcast_ref::<serde_json::Error>()
            .and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["TOPIC", "PARTITIONS"]);
        table.row(["a".into(), "1".into()]);
        table.row(["grüße-und-mehr".into(), "12".into()]);
        assert_eq!(
            table.render(),
            "TOPIC           PARTITIONS\na               1\ngrüße-und-mehr  12\n"
        );
    }

    #[test]
    fn a_closed_pipe_is_found_below_other_errors() {
        let error = anyhow::Error::new(io::Error::from(io::ErrorKind::BrokenPipe)).context("writing");
        assert!(is_closed_pipe(&error));
        assert!(!is_closed_pipe(&anyhow::anyhow!("else")));
    }
}
