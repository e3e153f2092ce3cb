//! The recorded cases, one row a call and in batches cut anyhow.

use proptest::prelude::*;
use streams::window_cases::{Case, Run, Verdict, native, run};

/// The cases whose operators are built.
const BUILT: &[&str] = &[
    "001_tumbling_boundaries",
    "002_tumbling_grace_limit",
    "003_tumbling_other_key_moves_time",
    "004_tumbling_null_key_value",
    "005_tumbling_final",
    "006_tumbling_zero_negative_skip",
    "007_tumbling_rekey",
    "008_hopping_overlap",
    "009_hopping_partly_late",
    "010_hopping_near_zero",
    "030_quirk_final_lost",
    "033_stock_stats",
    "036_random_tumbling_update_120",
    "037_random_hopping_final_80",
];

fn case(name: &str) -> Case {
    let path = format!("{}/../../tests/cases/windows/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the case is recorded");
    Case::parse(&text).expect("the case is sound")
}

fn run_cut(case: &Case, mut cut: impl FnMut() -> usize) -> Run {
    run(case, &mut |params| native(params), &mut cut).expect("the case is sound")
}

#[test]
fn every_built_case_passes_row_by_row_and_all_at_once() {
    for name in BUILT {
        let case = case(name);
        for rows in [1, usize::MAX] {
            assert_eq!(
                run_cut(&case, || rows).verdict,
                Verdict::Passed,
                "{name} in calls of {rows}"
            );
        }
    }
}

#[test]
fn a_wrong_outcome_fails() {
    let mut first = case(BUILT[0]);
    first.input[0].timestamp += 1;
    let Verdict::Failed(lines) = run_cut(&first, || 1).verdict else {
        panic!("passed")
    };
    assert!(lines.iter().any(|line| line.starts_with("- result")), "{lines:?}");
    let mut second = case(BUILT[1]);
    second.params.grace_ms = Some(2_999);
    let Verdict::Failed(lines) = run_cut(&second, || 1).verdict else {
        panic!("passed")
    };
    assert!(lines.iter().any(|line| line.starts_with("+ dropped")), "{lines:?}");
}

#[test]
fn an_operator_that_is_not_built_is_skipped() {
    let run = run_cut(&case("011_sliding_left_right"), || 1);
    assert_eq!(run.verdict, Verdict::Skipped("operator sliding not built".into()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cases_pass_however_the_input_is_cut(index in 0..BUILT.len(), cuts in prop::collection::vec(1..12usize, 1..20)) {
        let mut cuts = cuts.into_iter().cycle();
        let run = run_cut(&case(BUILT[index]), || cuts.next().unwrap());
        prop_assert_eq!(run.verdict, Verdict::Passed, "{}", BUILT[index]);
    }
}
