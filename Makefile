# Everything here sets itself up; it needs Go, make and a shell. Which server
# the tests use is printed, and can be chosen: see integration/server/doc.go.

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    := 20s
TIME         = $(if $(filter test virtual,$(MAKECMDGOALS)),20s,60s)

# Modules of their own, so that what they need is in nobody's go.sum who does not use it.
MODULES := $(patsubst ./%/go.mod,%,$(shell find . -mindepth 2 -name go.mod | sort))

# The race detector needs cgo and so a C compiler on most systems.
RACE := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)
TEST = go test $(RACE) -count=1 -timeout 15m

# The same schedules each time, so that what is new in a red run is the code; SEED= chooses by the
# time. Without the race detector, which makes a minute hold few schedules.
SEED     := 1
SIMULATE = cd client/locktest && HOLDFAST_SIMULATE=$(TIME) HOLDFAST_SEED=$(SEED) \
	go test -count=1 -v -timeout 0 -run 'TestSimulation$$' ./internal/simulation

.DEFAULT_GOAL := help
.PHONY: help test first-half second-half unraced others modules virtual differential compiled \
	test-containers lint demo bench bench-quick pictures fuzz simulate defects schedules chaos chaos-defects soak release tag hooks images clean prepare

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Tests of the tests, and a walk through more states than one waits for: make defects.
DEEP := '^Test(Mutations|FlawsAreFound|WrongsAreNoticed|Protocol)'

# Tests on real servers wait more than they compute, so they run side by side. The packages that take
# longest run in two halves, by the names of their tests: -run and -skip of one pattern leave none out.
# Five or six at once keep two processors busy; with more, those tests that measure time would suffer.
HALF   := ^Test[A-G]
LONG   := ./integration/conformance ./integration/failure
# Of these the race detector has nothing to see, and much to slow down: machines without goroutines that
# are walked through, and calls of other programs, which are built without it.
UNRACED := ./.ci/dist ./integration/polyglot ./integration/contract ./integration/readme ./integration/demo \
	./functions ./client/internal/queue ./client/internal/lease
OTHERS   = ./loader $(filter-out $(LONG) $(UNRACED),$(shell go list ./... | sed 's|^github.com/holdfast-go/holdfast|.|'))

# Tests in virtual time are several times slower with the race detector: what drives the client from many
# goroutines has it.
VIRTUAL  = $$(go list ./... | grep -v -e /simulation -e /differential -e /jobs -e /model -e 'locktest$$')
DETECTED := . ./internal/jobs

# Modules that are glue, without goroutines and locks of their own, and bring much to compile.
GLUE  := client/adapter/asynq client/adapter/goredis integration/fencing .ci/pictures
# The others, whose tests are not run in a way of their own.
PLAIN := $(filter-out $(GLUE) client/locktest integration/bench integration/chaos loader/cmd/holdfast,$(MODULES))

test: ## Run the tests on a real server, with the race detector where it pays, and simulate for TIME (20s)
	@$(if $(RACE),,echo "without -race: it needs a C compiler")
	@echo "skipped, shown by make defects: the model's walk, and defects that are put back"
	@$(MAKE) --no-print-directory -k -j 5 virtual first-half second-half others unraced modules

# All that several of the following would compile at once otherwise.
compiled: prepare
	@go list $(RACE) -test -export -deps ./... >/dev/null

first-half: compiled
	$(TEST) -p 1 -run '$(HALF)' $(LONG)

second-half: compiled
	$(TEST) -p 1 -skip '$(HALF)' $(LONG)

# The processors are first of all for the two above, which strike servers and measure how long that takes.
NICE = nice -n 10

others: compiled
	$(NICE) $(TEST) $(SKIP) -p 2 $(OTHERS)

unraced: compiled
	$(NICE) go test -count=1 -timeout 15m -p 2 -skip $(DEEP) $(UNRACED)

modules: compiled
	cd loader/cmd/holdfast && $(NICE) go test -count=1 -timeout 15m . && $(NICE) $(TEST) -p 1 ./internal/...
	@printf '%s\n' $(PLAIN) | xargs -P 2 -I MODULE sh -c 'cd MODULE && $(NICE) $(TEST) ./...'
	@printf '%s\n' $(GLUE) | xargs -P 2 -I MODULE sh -c 'cd MODULE && $(NICE) go test -count=1 ./...'

# Behind the others from the beginning, with what they leave of the processors: it does not matter when its
# time passes. The simulation comes last, when they leave more.
virtual: compiled differential
	cd client/locktest && nice -n 10 go test -p 1 -count=1 -timeout 15m $(VIRTUAL)
	cd client/locktest && nice -n 10 $(TEST) -p 1 $(DETECTED)
	renice -n 10 $$$$ >/dev/null; $(SIMULATE)

# The other packages use one server, whichever it is, or ask little of it. Without the race detector:
# this is about servers. Nobody is nice: the servers in containers are not.
test-containers: export HOLDFAST_RUNTIME = container
test-containers: ## Run the tests of servers on every server of the matrix, in containers
	@echo "skipped, shown by make defects: TestMutationsAreCaught"
	@$(MAKE) --no-print-directory -k -j 3 RACE= NICE= SKIP="-skip $(DEEP)" OTHERS="./loader ./integration/contract ./integration/server" \
		first-half second-half others differential

differential: compiled
	cd client/locktest && $(TEST) ./internal/differential

prepare:
	@go run ./integration/server/prepare

# All modules in one workspace, which lasts as long as this: most of what they need is the same.
lint: ## Check format, vet, staticcheck, and the Lua source
	@bad=$$(gofmt -l .); test -z "$$bad" || { echo "not gofmt'ed:"; echo "$$bad"; exit 1; }
	@bad=$$(grep -rL --include='*.go' --include='*.lua' --include='*.sh' "SPDX-License-Identifier: Apache-2.0" .); test -z "$$bad" || { echo "without its license:"; echo "$$bad"; exit 1; }
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && export GOWORK="$$dir/go.work" && \
		go work init $(addprefix '$(CURDIR)'/,. $(MODULES)) && set -x && \
		go vet work && go run $(STATICCHECK) work
	sh .ci/lint-lua

demo: ## Show it: a flash sale by several processes on a real server
	go run ./integration/demo

bench: ## Measure it beside its rivals, on two servers if there is docker, and write the report
	-sh integration/images/build.sh valkey:8.1
	cd integration/bench && go run .

bench-quick: ## Check in a moment that the benchmark works; its numbers mean little
	cd integration/bench && go vet ./... && go test ./... && out=$$(mktemp -d) && go run . -quick -out "$$out" && rm -rf "$$out"

pictures: ## Run the tool in a terminal, and draw what is seen there into docs/pictures
	cd .ci/pictures && go run .
	cd loader/cmd/holdfast && HOLDFAST_PICTURES='$(CURDIR)/docs/pictures' go test -count=1 -run 'TestThePageInABrowser$$' .

# Until Go 1.27 the end of the time can be reported as a failure: https://go.dev/issue/75804
fuzz: prepare ## Fuzz what servers and others may send, FUZZTIME (20s) for each target; what it finds goes to testdata/fuzz
	@log=$$(mktemp) && trap 'rm -f $$log' EXIT && grep -r '^func Fuzz' --include='*_test.go' . | sed 's|/[^/]*:func | |; s|(.*||' | sort | while read -r dir target; do \
		echo "$$dir $$target"; \
		(cd $$dir && go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x . </dev/null) 2>&1 | tee $$log; \
		if grep -q '^FAIL' $$log && ! grep -qx ' *context deadline exceeded' $$log; then exit 1; fi; \
	done

simulate: ## Simulate schedules of faults for TIME (60s) at each level, from SEED on
	$(SIMULATE)
	for level in replicated guarded quorum brief; do \
		(HOLDFAST_PROFILE=$$level; export HOLDFAST_PROFILE; $(SIMULATE)) || exit 1; \
	done

defects: prepare ## Put defects into the library, the queue, the model and the client, and find each; walk through the model
	go test -count=1 -run $(DEEP) ./client/internal/queue ./integration/contract
	cd client/locktest && go test -count=1 -run $(DEEP) ./internal/model
	cd client/locktest && go test -count=1 -v -timeout 40m -run 'TestDefectsAreFound' ./internal/simulation

# Brief ones of all deployments and levels, each with few actors and faults. PROCESSES= at once; ^C ends it.
schedules: SCHEDULES := 1000000
schedules: ## Simulate SCHEDULES (1000000) brief schedules of faults, from SEED on, and say what they saw
	export HOLDFAST_PROFILE=brief HOLDFAST_SCHEDULES=$(SCHEDULES) HOLDFAST_PROCESSES=$(PROCESSES); $(SIMULATE)

# Servers as local processes: they are killed, paused and restarted all the time.
chaos: ## Strike real servers and clients with random faults for TIME (60s), from SEED on, and check what they saw
	cd integration/chaos && go test -short -count=1 ./...
	cd integration/chaos && HOLDFAST_RUNTIME=$${HOLDFAST_RUNTIME:-local} go run . -time $(TIME) -seed $(SEED)

chaos-defects: ## Put defects into the library and into callers, and find each in that way: some minutes
	cd integration/chaos && HOLDFAST_RUNTIME=$${HOLDFAST_RUNTIME:-local} go test -count=1 -v -timeout 15m ./...

# One deployment for all of it; DEPLOYMENT= chooses another one, as -deployment of the program.
DEPLOYMENT := cluster
soak: TIME := 60m
soak: ## Load and random faults for TIME (60m), and then what clients and servers have must not have grown
	cd integration/chaos && HOLDFAST_RUNTIME=$${HOLDFAST_RUNTIME:-local} go run . -soak -time $(TIME) \
		-seed $(SEED) -deployment $(DEPLOYMENT) -faults all

release: ## Make archives, an image, an SBOM, notes and checksums into dist, for VERSION=v1.2.3; publish nothing
	bash .ci/release "$(VERSION)"

tag: ## Set the tags of all modules for VERSION=v1.2.3, in their order; push none
	bash .ci/tag "$(VERSION)"

hooks: ## Let git run gofmt, go vet and the fast tests before each commit
	git config core.hooksPath .ci/hooks

images: ## Build the container images for machines that can pull none
	sh integration/images/build.sh

clean: ## Remove what tests leave: cached results, images
	go clean -testcache
	-docker image rm holdfast-test/redis:7.0 holdfast-test/redis:8.0 holdfast-test/valkey:8.1
