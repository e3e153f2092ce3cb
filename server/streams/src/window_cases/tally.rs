//! Runs case after case and keeps count.

use super::{Case, CaseError, Plugins, Verdict, run};

/// The input of each case is cut into calls of so many rows.
const CUTS: &[usize] = &[1, 7, usize::MAX];

/// What became of the cases so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    pub passed: u32,
    pub failed: u32,
    /// Cases whose operator is not built.
    pub skipped: u32,
    pub guest_calls: u64,
}

impl Tally {
    /// Runs a case row by row, in small calls and all at once; it passes if it passes each time. Gives what is to be said
    /// of it, the first line first.
    ///
    /// # Errors
    /// If the case itself is unsound.
    pub fn judge(&mut self, case: &Case, plugins: Plugins<'_>) -> Result<Vec<String>, CaseError> {
        for cut in CUTS {
            let run = run(case, plugins, &mut || *cut)?;
            self.guest_calls += run.guest_calls;
            match run.verdict {
                Verdict::Passed => {}
                Verdict::Skipped(why) => {
                    self.skipped += 1;
                    return Ok(vec![format!("skip {}: {why}", case.name)]);
                }
                Verdict::Failed(differences) => {
                    self.failed += 1;
                    let rows = if *cut == usize::MAX {
                        "all".to_owned()
                    } else {
                        cut.to_string()
                    };
                    let head = format!("FAIL {} ({}), {rows} rows a call", case.name, case.description);
                    let differences = differences.iter().map(|line| format!("     {line}"));
                    return Ok(std::iter::once(head).chain(differences).collect());
                }
            }
        }
        self.passed += 1;
        Ok(vec![format!("pass {}", case.name)])
    }

    /// The closing lines.
    #[must_use]
    pub fn summary(&self) -> Vec<String> {
        let Tally {
            passed,
            failed,
            skipped,
            guest_calls,
        } = self;
        let skipped = (*skipped > 0).then(|| format!("{skipped} skipped"));
        let closing = [
            format!("{guest_calls} plugin calls"),
            format!("{passed} passed, {failed} failed"),
        ];
        skipped.into_iter().chain(closing).collect()
    }
}
