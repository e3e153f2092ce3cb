# The two commands of README.md, and the inner loop. Chores are `cargo xtask VERB`.
CARGO ?= cargo
TEST_SUITES ?=

# Arguments of `serve` for `make run`.
ARGS ?=

.PHONY: run test check fmt release plugins suites

# Without the demo's plugin or data the node runs all the same, and it is said what is missing.
run: release
	-$(CARGO) xtask plugins
	demo/run $(ARGS)

plugins:
	$(CARGO) xtask plugins

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
