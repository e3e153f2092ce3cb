# The two commands of README.md, and the inner loop. Chores are `cargo xtask VERB`.
CARGO ?= cargo
TEST_SUITES ?=

.PHONY: run test check fmt release suites

run: release
	target/release/millstream serve

release:
	$(CARGO) build --release --package millstream

# Everything that CI runs.
test:
	$(CARGO) xtask ci

# The inner loop.
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- --deny warnings
	$(CARGO) test --workspace --quiet

fmt:
	$(CARGO) fmt --all

# The black-box suites alone: make suites TEST_SUITES="python node".
suites: release
	tests/run $(TEST_SUITES)
