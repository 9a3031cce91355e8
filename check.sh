#!/usr/bin/env bash
# Every check and every test of pgq, from a fresh clone, with one summary at the end.
#
# It makes its own virtual environments in .cache/ and, as root on Debian, installs the packages
# in tests/apt.txt. What it cannot run it lists, and under CI=true that is a failure.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
unset PGQ_TEST_DSN PGQ_TEST_PG VIRTUAL_ENV PYTHONHOME PYTHONPATH
export DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

summary=()
left_out=()
failures=0
absences=0

section() { printf '\n== %s\n' "$1"; }

# check NAME COMMAND...: run it under a heading and remember how it went.
check() {
    local name=$1 start=$SECONDS
    shift
    section "$name"
    if "$@"; then
        summary+=("ok       $name ($((SECONDS - start)) s)")
    else
        summary+=("FAILED   $name ($((SECONDS - start)) s)")
        failures=$((failures + 1))
        return 1
    fi
}

# absent TEXT: something was not run that this script could have run on another machine.
absent() {
    summary+=("NOT RUN  $1")
    absences=$((absences + 1))
}

is_debian_root() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

missing_packages() {
    local package
    command -v dpkg-query >/dev/null || return 0
    while read -r package; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            echo "$package"
    done <tests/apt.txt
}

# Root on Debian gets the packages in tests/apt.txt, those that this release has.
debian_packages() {
    local package missing
    mapfile -t missing < <(missing_packages)
    if [ ${#missing[@]} -gt 0 ] && is_debian_root; then
        section "Install Debian packages: ${missing[*]}"
        apt-get -q update # and in run level 1 no package starts its service
        for package in "${missing[@]}"; do
            RUNLEVEL=1 apt-get -q install -y --no-install-recommends "$package"
        done
        mapfile -t missing < <(missing_packages)
    fi
    [ ${#missing[@]} = 0 ] || absent "what needs these Debian packages: ${missing[*]}"
}

# find_python VERSION: print a working interpreter: on PATH, behind a pyenv shim, or built here.
find_python() {
    local folder candidate folders
    IFS=: read -ra folders <<<"$PATH:$PWD/.cache/python-$1/bin"
    for folder in "${folders[@]}"; do
        for candidate in "$folder/python$1" "${folder%/shims}/versions/$1".*"/bin/python$1"; do
            works "$candidate" "$1" && echo "$candidate" && return
        done
    done
    return 1
}

# A shim may stand for nothing, and Debian's Python has no venv of its own: ask.
works() {
    [ -x "$1" ] && "$1" -c "import ensurepip, ssl, sys, venv
sys.exit('%d.%d' % sys.version_info[:2] != '$2')" 2>/dev/null
}

# environment VERSION: the virtual environment of this Python, made or brought up to date.
environment() {
    local home=.cache/check/python-$1 interpreter
    interpreter=$(find_python "$1") || return
    if ! { pwd && cat pyproject.toml; } | cmp -s - "$home/made-from"; then
        rm -rf "$home" && "$interpreter" -m venv "$home" &&
            "$home/bin/pip" install -q 'pip>=25.1' &&
            "$home/bin/pip" install -q -e '.[embedded,demo]' --group dev &&
            { pwd && cat pyproject.toml; } >"$home/made-from" || return
    fi
    "$home/bin/python" -V
}

# provide VERSION: add it to `pythons` if it can be had here.
provide() {
    if ! find_python "$1" >/dev/null && [ "$1" = 3.13 ] && is_debian_root; then
        check "Build Python $1 from Debian's source" bash tests/support/build_python.sh "$1"
    fi
    if find_python "$1" >/dev/null && check "Install for Python $1" environment "$1"; then
        pythons+=("$1")
    fi
}

has() { [[ " ${pythons[*]} " == *" $1 "* ]]; }

# tests PYTHON POSTGRESQL [PATH...]: the tests below these paths, or all.
tests() {
    local python=$1 postgresql=$2 used=$1 name="Python $1 x PostgreSQL $2"
    shift 2
    if ! has "$python"; then
        used=${pythons[0]}
        absent "$name: no Python $python here; PostgreSQL $postgresql ran with Python $used"
        name="Python $used x PostgreSQL $postgresql"
    fi
    if run "$used" -m tests.support.binaries "$postgresql" >/dev/null; then
        PGQ_TEST_PG=$postgresql check "$name${*:+: $*}" \
            run "$used" -m pytest -q -n logical "${left_out[@]}" "$@"
    else
        absent "$name: no PostgreSQL $postgresql here"
    fi
}

run() { ".cache/check/python-$1/bin/python" "${@:2}"; }
tool() { ".cache/check/python-${pythons[0]}/bin/$1" "${@:2}"; }

module_sizes() {
    find pgq pgq_cli pgq_tui sql tests examples benchmarks -name '*.py' -exec wc -l {} + |
        awk '$1 > 400 && $2 != "total" { print $2 ": " $1 " lines"; long = 1 } END { exit long }'
}

static_checks() {
    check "Format" tool ruff format --check
    check "Lint" tool ruff check
    check "Types" tool mypy pgq pgq_cli pgq_tui tests examples benchmarks
    check "Import contracts" tool lint-imports --no-logo --cache-dir .cache/import_linter
    check "No module over 400 lines" module_sizes
}

# A systemd of the tests' own takes root and namespaces, which a container may not have: its absence
# alone fails no build.
probe_systemd() {
    if ! run "${pythons[0]}" -m tests.support.systemd; then
        left_out+=(--ignore tests/packaging/test_systemd_running.py)
        summary+=("NOT RUN  tests/packaging/test_systemd_running.py: no systemd can be had here")
    fi
}

test_matrix() {
    probe_systemd
    tests 3.13 18
    tests 3.11 15
    tests 3.11 16 tests/sql tests/migrations tests/concurrency
    tests 3.11 17 tests/sql tests/migrations tests/concurrency
    if has 3.12; then
        check "Python 3.12: tests/unit tests/packaging" \
            run 3.12 -m pytest -q -n logical "${left_out[@]}" tests/unit tests/packaging
    else
        # Neither Debian nor PyPI carries this one, so its absence alone fails no build.
        summary+=("NOT RUN  Python 3.12: tests/unit tests/packaging: put a python3.12 on PATH")
    fi
}

debian_packages
pythons=()
for version in 3.13 3.11 3.12; do provide "$version"; done
if [ ${#pythons[@]} -gt 0 ]; then
    static_checks
    test_matrix
else
    absent "everything: no Python 3.11 to 3.13 with venv (Debian: apt-get install python3-venv)"
    failures=$((failures + 1))
fi

section "Summary"
printf '%s\n' "${summary[@]}"
if [ $failures -gt 0 ]; then
    exit 1
elif [ $absences -gt 0 ] && [ "${CI:-}" = true ]; then
    echo "Not everything could be run, which is a failure under CI=true."
    exit 1
fi
