#!/usr/bin/env bash
# The Python of workers where lrun's wheel is installed as people do it: environments, tools of uv and pipx (where these
# are found), user site, conda. usage: python_layouts_test.sh LRUN SOURCE_DIR VERSION WORK_DIR
# LRUN_BESIDE_TORCHRUN=1 prints beside each where torchrun, installed in the same way, runs them; a few minutes longer.
set -euo pipefail
lrun=$1 source=$2 version=$3 work=$4
fail() { printf 'FAILED: %s\n' "$1"; exit 1; }
python3 -c 'import ensurepip, venv' 2> /dev/null || { echo "this Python makes no virtual environments (python3-venv)"; exit 77; }
rm -rf "$work"
mkdir -p "$work"/{bin,home,project,named}
work=$(cd "$work" && pwd -P)
home=$work/home project=$work/project

strip -o "$work/stripped" "$lrun"
wheel=$(python3 "$source/packaging/make.py" wheel "$work/stripped" "$version" "linux_$(uname -m)" "$work")
base=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
ln -s "$base" "$work/bin/python3"
plain=$work/bin:/usr/bin:/bin
tools=$(dirname "$(command -v uv || echo "$work/bin/uv")"):$(dirname "$(command -v pipx || echo "$work/bin/pipx")")

beside_torchrun=${LRUN_BESIDE_TORCHRUN:-}
wheels=("$wheel")
if [ -n "$beside_torchrun" ]; then
  : "${LRUN_TEST_PYTHON:?a Python with torch}"
  torchrun_wheel=$(python3 "$source/tests/install/torchrun_wheel.py" "$work" \
    "$("$LRUN_TEST_PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')")
  wheels+=("$torchrun_wheel")
fi

# A package of the user's own.
mine=$work/mine-1-py3-none-any.whl
python3 - "$mine" << 'PYTHON'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("mine.py", "print('mine')\n")
    wheel.writestr("mine-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    wheel.writestr("mine-1.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("mine-1.dist-info/RECORD", "mine.py,,\nmine-1.dist-info/METADATA,,\nmine-1.dist-info/WHEEL,,\nmine-1.dist-info/RECORD,,\n")
PYTHON

# clean COMMAND...: with the variables of a fresh login, and those that stand before the command.
clean() {
  (cd "$project" && env -i HOME="$home" PATH="$plain" PIP_BREAK_SYSTEM_PACKAGES=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
    UV_OFFLINE=1 UV_PYTHON_DOWNLOADS=never UV_PYTHON="$base" UV_LINK_MODE=copy "$@")
}
venv() { clean python3 -m venv "$1" && clean "$1/bin/python" -m pip install --quiet --no-index "${wheels[@]}"; }

cat > "$project/train.py" <<'PYTHON'
import os, sys
print(os.environ.get("VIA", sys.prefix))
PYTHON
system=$(clean python3 train.py)
venv "$project/.venv"
venv "$work/other"
here=$project/.venv other=$work/other

# runs LAYOUT PREFIX [VARIABLE=VALUE...] COMMAND...: the worker's Python is the one of PREFIX, and nothing is warned of.
runs() {
  local layout=$1 expected=$2 seen
  shift 2
  seen=$(clean LRUN_OUTPUT=raw "$@" 2> "$work/stderr") || { cat "$work/stderr"; fail "$layout: it fails"; }
  [ "$seen" = "$expected" ] || { cat "$work/stderr"; fail "$layout: workers run in '$seen', not in '$expected'"; }
  ! grep -q 'lrun: warning' "$work/stderr" || { cat "$work/stderr"; fail "$layout: it warns"; }
  echo "ok: $layout${beside_torchrun:+; torchrun: $(torchrun_runs "$@")}"
}
# torchrun_runs [VARIABLE=VALUE...] COMMAND...: whether the workers of torchrun in lrun's place run in the Python of `expected`.
torchrun_runs() {
  local word words=() seen
  for word; do
    case $word in
      lrun | */lrun) word=${word%lrun}torchrun ;;
      "$wheel") word=$torchrun_wheel ;;
    esac
    words+=("$word")
  done
  seen=$(clean "${words[@]}" 2> "$work/stderr") || { echo "fails: $(tail -n 1 "$work/stderr")"; return; }
  if [ "$seen" = "$expected" ]; then echo "the same"; else echo "'$seen'"; fi
}
# warns TEXT: the plan of `COMMAND --dry-run` warns with it.
warns() {
  local text=$1
  shift
  clean "$@" --dry-run train.py > /dev/null 2> "$work/stderr" || fail "no plan"
  grep -qF "$text" "$work/stderr" || { cat "$work/stderr"; fail "no warning '$text'"; }
}

runs "active venv" "$here" VIRTUAL_ENV="$here" PATH="$here/bin:$plain" lrun train.py
runs "venv by path" "$here" .venv/bin/lrun train.py
ln -s "$here"/bin/*run "$work/named"
runs "link to lrun of a venv" "$here" "$work/named/lrun" train.py
runs "module of the program" "$here" .venv/bin/lrun -m train
clean .venv/bin/lrun --dry-run train.py | tr -s ' \n' ' ' | grep -F "python $here/bin/python beside lrun" > /dev/null || fail "the plan does not say which Python and why"
clean .venv/bin/lrun -v train.py 2>&1 | grep -F "lrun: note: python: $here/bin/python (beside lrun)" > /dev/null || fail "-v does not say it"
(clean .venv/bin/lrun doctor -v || true) | grep -E "^info     Python: .*$here/bin/python.* \(beside lrun\)" > /dev/null || fail "doctor does not say it"
clean python3 -m venv "$work/broken"
cp "$here/bin/lrun" "$work/broken/bin/"
rm "$work"/broken/bin/python*
warns "lrun's own environment is '$work/broken', which has no Python" "$work/broken/bin/lrun"
warns "Python '/nowhere' (--python) cannot be executed here: this run would fail" "$here/bin/lrun" --python /nowhere
rm "$other/bin/lrun"
warns "not in '$other/bin/python3' (PATH)" PATH="$other/bin:$here/bin:$plain" lrun
warns "not in '$other/bin/python' (VIRTUAL_ENV)" VIRTUAL_ENV="$other" PATH="$other/bin:$plain" "$here/bin/lrun"
runs "--python above all" "$other" PYTHON_EXEC=/nowhere "$here/bin/lrun" --python "$other/bin/python" train.py
runs "PYTHON_EXEC" "$other" PYTHON_EXEC="$other/bin/python" "$here/bin/lrun" train.py
runs "python -m lrun" "$here" .venv/bin/python -m lrun train.py
clean .venv/bin/python -m lrun --dry-run train.py | tr -s ' \n' ' ' | grep -F "python $here/bin/python python -m lrun" > /dev/null || fail "the plan does not say that it is the Python of python -m"

printf '#!%s/bin/python\n' "$other" | cat - "$project/train.py" > "$project/own.py"
printf '#!/usr/bin/env python3\n' | cat - "$project/train.py" > "$project/any.py"
chmod +x "$project"/{own,any}.py
runs "first line of ./own.py" "$other" .venv/bin/lrun ./own.py
runs "own.py without a path" "$here" .venv/bin/lrun own.py
runs "env python3 in ./any.py" "$here" .venv/bin/lrun ./any.py

clean python3 -m pip install --quiet --no-index --user "${wheels[@]}"
runs "user site" "$system" PATH="$home/.local/bin:$plain" lrun train.py
runs "user site with an active venv" "$here" VIRTUAL_ENV="$here" PATH="$here/share:$home/.local/bin:$here/bin:$plain" "$home/.local/bin/lrun" train.py
mkdir "$work/numbered"
ln -s "$base" "$work/numbered/$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')"
runs "only python3.N" "$system" PATH="$work/numbered" "$home/.local/bin/lrun" train.py
clean python3 -m pip uninstall --quiet --yes lrun ${beside_torchrun:+torchrun}

conda=$work/conda
clean python3 -m pip install --quiet --no-index --prefix "$conda" "$wheel"
lrun_of_conda=$(find "$conda" -name lrun -path '*/bin/lrun')
conda=${lrun_of_conda%/bin/lrun} # Debian puts 'local' in between
mkdir "$conda/conda-meta"
printf '#!/bin/sh\nVIA=conda exec %s "$@"\n' "$base" > "$conda/bin/python"
chmod +x "$conda/bin/python"
ln -s python "$conda/bin/python3"
beside_torchrun=  # this is no conda that could run another program of Python
runs "conda by path" conda "$conda/bin/lrun" train.py
runs "active conda" conda CONDA_PREFIX="$conda" PATH="$conda/bin:$plain" lrun train.py
beside_torchrun=${LRUN_BESIDE_TORCHRUN:-}

if command -v uv > /dev/null; then
  uvx=(PATH="$plain:$tools" uvx --quiet --from "$wheel")
  printf '[project]\nname = "p"\nversion = "0"\nrequires-python = ">=3.7"\ndependencies = [\n' > "$project/pyproject.toml"
  for one in "${wheels[@]}"; do
    name=$(basename "$one")
    echo "\"${name%%-*} @ file://$one\","
  done >> "$project/pyproject.toml"
  echo ']' >> "$project/pyproject.toml"
  rm -r "$here"
  runs "uv run" "$here" PATH="$plain:$tools" uv run --quiet lrun train.py
  runs "uvx" "$system" "${uvx[@]}" lrun train.py
  seen=$(clean LRUN_OUTPUT=raw PATH="$plain:$tools" uvx --quiet --with "$mine" --from "$wheel" lrun -m mine 2> "$work/stderr") ||
    { cat "$work/stderr"; fail "uvx --with a package: workers do not find it"; }
  runs "uvx in an active venv" "$here" VIRTUAL_ENV="$here" PATH="$here/bin:$plain:$tools" uvx --quiet --from "$wheel" lrun train.py
  seen=$(clean LRUN_OUTPUT=raw PATH="$plain:$tools" uv run --quiet --no-project --with "$wheel" lrun train.py 2> "$work/stderr")
  case $seen in "$home"/.cache/uv/*) ;; *) fail "uv run --with lrun: workers run in '$seen'" ;; esac
  for one in "${wheels[@]}"; do clean PATH="$plain:$tools" uv tool install --quiet "$one" 2> /dev/null; done
  runs "uv tool" "$system" "$home/.local/bin/lrun" train.py
  clean PATH="$plain:$tools" uv tool install --quiet --force --with "$mine" "$wheel" 2> /dev/null
  runs "uv tool --with a package" "$home/.local/share/uv/tools/lrun" "$home/.local/bin/lrun" train.py
  clean PATH="$plain:$tools" uv tool uninstall --quiet lrun ${beside_torchrun:+torchrun}
else
  echo "skipped: no uv here"
fi
if command -v pipx > /dev/null && clean PATH="$plain:$tools" pipx install "$wheel" > "$work/pipx" 2>&1; then
  [ -z "$beside_torchrun" ] || clean PATH="$plain:$tools" pipx install "$torchrun_wheel" > "$work/pipx" 2>&1
  runs "pipx" "$system" "$home/.local/bin/lrun" train.py
  clean PATH="$plain:$tools" pipx inject lrun "$mine" > "$work/pipx" 2>&1 || { cat "$work/pipx"; fail "pipx inject"; }
  clean "$home/.local/bin/lrun" -m mine > /dev/null 2> "$work/stderr" ||
    { cat "$work/stderr"; fail "pipx inject: workers do not find the package"; }
  runs "pipx in an active venv" "$other" VIRTUAL_ENV="$other" PATH="$home/.local/bin:$other/bin:$plain" lrun train.py
else
  echo "skipped: pipx is not here, or cannot install"
fi
