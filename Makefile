# Everything here sets itself up; it needs Go, make and a shell. Which server
# the tests use is printed, and can be chosen: see integration/server/doc.go.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    := 20s

# The race detector needs cgo and so a C compiler on most systems.
RACE := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)
TEST := go test $(RACE) -count=1 -timeout 15m

.DEFAULT_GOAL := help
.PHONY: help test test-containers lint demo bench bench-quick fuzz images clean prepare

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: prepare ## Run all tests on a real server, with the race detector
	$(TEST) ./...

test-containers: export HOLDFAST_RUNTIME = container
test-containers: prepare ## Run all tests on every server of the matrix, in containers
	$(TEST) ./...

prepare:
	@$(if $(RACE),,echo "without -race: it needs a C compiler")
	@go run ./integration/server/prepare

lint: ## Check format, vet, staticcheck, and the Lua source
	@bad=$$(gofmt -l .); test -z "$$bad" || { echo "not gofmt'ed:"; echo "$$bad"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...
	cd integration/bench && go vet ./... && go run $(STATICCHECK) ./...
	sh .ci/lint-lua

demo: ## Show it: a flash sale by several processes on a real server
	go run ./integration/demo

bench: ## Measure it beside its rivals and write the report
	cd integration/bench && go run .

bench-quick: ## Check in a minute that the benchmark works; its numbers mean little
	cd integration/bench && go vet ./... && go test ./... && out=$$(mktemp -d) && go run . -quick -out "$$out" && rm -rf "$$out"

fuzz: prepare ## Fuzz the functions, FUZZTIME (20s) for each target
	@for package in $$(go list ./integration/...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$package || exit 1; \
		done; \
	done

images: ## Build the container images for machines that can pull none
	sh integration/images/build.sh

clean: ## Remove what tests leave: cached results, notes about images, images
	go clean -testcache
	rm -rf "$${TMPDIR:-/tmp}/holdfast-images-$$(id -u)"
	-docker image rm holdfast-test/redis:7.0 holdfast-test/redis:8.0 holdfast-test/valkey:8.1
