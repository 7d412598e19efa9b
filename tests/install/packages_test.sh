#!/usr/bin/env bash
# The packages of the launcher. The wheel, installed as pip does it: the program, `python -m lrun`, manual and completions,
# and nothing is left after it was removed. The archive and Debian's package, unpacked: the same files. Made twice, all are
# equal. usage: packages_test.sh LRUN SOURCE_DIR VERSION WORK_DIR
set -euo pipefail
lrun=$1 source=$2 version=$3 work=$4
fail() { printf 'FAILED: %s\n' "$1"; exit 1; }
python3 -c 'import ensurepip, venv' 2> /dev/null || { echo "this Python makes no virtual environments (python3-venv)"; exit 77; }
rm -rf "$work"
mkdir -p "$work/a" "$work/b"

strip -o "$work/lrun" "$lrun"
processor=$(uname -m)
# make KIND PLATFORM: the package, made twice. Prints the path of the second one.
make() {
  for folder in a b; do python3 "$source/packaging/make.py" "$1" "$work/lrun" "$version" "$2" "$work/$folder"; done | tail -1
}
wheel=$(make wheel "linux_$processor")
archive=$(make archive "$processor")
! command -v dpkg-deb > /dev/null || deb=$(make deb "$processor")
diff -r "$work/a" "$work/b" || fail "made twice, a package differs"

tar -xzf "$archive" -C "$work" --transform 's|^[^/]*|archive|'
cmp "$work/lrun" "$work/archive/bin/lrun"
python3 "$source/packaging/components.py" | diff "$source/NOTICE" - || fail "packaging/components.py prints another NOTICE"
cmp "$source/NOTICE" "$work/archive/share/doc/lrun/NOTICE" || fail "the archive has no notices"
if [ -n "${deb:-}" ]; then
  dpkg-deb --extract "$deb" "$work/deb"
  cmp "$work/lrun" "$work/deb/usr/bin/lrun"
  cmp "$source/man/lrun.1" <(gzip -dc "$work/deb/usr/share/man/man1/lrun.1.gz")
  [ "$(dpkg-deb --field "$deb" Version)" = "$version" ] || fail "Debian's package is not of version $version"
  [ -z "$(find "$work/deb" ! -type d -perm /022)" ] || fail "others may write what Debian's package installs"
fi

python3 -m venv "$work/venv"
pip() { "$work/venv/bin/python" -m pip --disable-pip-version-check "$@"; }
find "$work/venv" -type f ! -name '*.pyc' | sort > "$work/before"
pip install --quiet --no-index "$wheel"
[ "$("$work/venv/bin/lrun" --version | head -n 1)" = "lrun $version" ] || fail "the program does not say its version"
for file in man/man1/lrun.1 doc/lrun/for_programs.md bash-completion/completions/lrun zsh/site-functions/_lrun fish/vendor_completions.d/lrun.fish; do
  [ -s "$work/venv/share/$file" ] || fail "share/$file is not installed"
done
info=$(echo "$work"/venv/lib/python3*/site-packages/lrun-"$version".dist-info)
cmp "$source/NOTICE" "$info/NOTICE" || fail "the wheel has no notices"
# PyPI refuses this field before version 2.4.
! grep '^License-File' "$info/METADATA" || fail "the wheel's metadata are newer than their version, 2.1"

# exit_code PYTHON: a run by `PYTHON -m lrun` of which one worker fails with 3.
exit_code() {
  local code=0
  # shellcheck disable=SC2016 # the worker's shell expands it
  "$1" -m lrun --devices 2 sh -c 'exit $((LOCAL_RANK * 3))' 2> "$work/stderr" || code=$?
  echo "$code"
}
[ "$(exit_code "$work/venv/bin/python")" -eq 3 ] || { cat "$work/stderr"; fail "python -m lrun does not end with the worker's code"; }
grep -q 'rank 1 exited with code 3' "$work/stderr" || { cat "$work/stderr"; fail "python -m lrun has no verdict"; }

pip uninstall --quiet --yes lrun
find "$work/venv" -type f ! -name '*.pyc' | sort | diff "$work/before" - || fail "after it was removed, files differ"

pip install --quiet --no-index --target "$work/target" "$wheel"
export PYTHONPATH=$work/target
[ "$(exit_code python3)" -eq 3 ] || { cat "$work/stderr"; fail "python -m lrun of pip --target does not run"; }
rm "$work/target/bin/lrun"
[ "$(exit_code python3)" -eq 127 ] || fail "without its program the package does not end with 127"
grep -qF "lrun: hint: pip install --force-reinstall lrun" "$work/stderr" || fail "without its program the package has no hint"
head -c 20 "$work/lrun" > "$work/target/bin/lrun"
chmod +x "$work/target/bin/lrun"
[ "$(exit_code python3)" -eq 127 ] || fail "with a part of its program the package does not end with 127"
grep -qF "bin/lrun' cannot be started: Exec format error" "$work/stderr" || { cat "$work/stderr"; fail "it does not say why a part of the program does not start"; }
printf '#!/no/loader\n' > "$work/target/bin/lrun"
[ "$(exit_code python3)" -eq 127 ] || fail "without a loader the package does not end with 127"
grep -qF "bin/lrun' needs glibc, and this system has none" "$work/stderr" || { cat "$work/stderr"; fail "it does not say that glibc is missing"; }
