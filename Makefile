# Shortcuts for people who work on pgq; ./check.sh is what decides.
.PHONY: check test bench chaos soak demo fmt clean

check:
	./check.sh

test: .venv
	.venv/bin/python -m pytest -n logical

bench: .venv
	.venv/bin/python -m benchmarks

chaos: .venv
	.venv/bin/python -m tests.chaos chaos --json docs/reliability/chaos.json
	.venv/bin/python -m tests.chaos chaos --pooler --json docs/reliability/chaos-pooler.json

soak: .venv
	.venv/bin/python -m tests.chaos soak --json docs/reliability/soak.json

demo:
	./demo.sh

fmt: .venv
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

clean:
	rm -rf .cache .hypothesis .venv build dist

.venv: pyproject.toml
	python3 -m venv .venv
	.venv/bin/pip install -q 'pip>=25.1'
	.venv/bin/pip install -q -e '.[embedded,demo]' --group dev
	touch .venv
