#!/usr/bin/env bash
# The wheel of the library beside that of the launcher, in an environment with torch: a project that sets nothing finds and
# links it, and runs. With another torch, configuring says so, and so does the program. Debian's package of the library is
# found where it was unpacked.
# usage: runtime_wheel_test.sh BUILD_DIR SOURCE_DIR VERSION LIBTORCH
set -euo pipefail
build=$1 source=$2 version=$3 libtorch=$4
work=$build/runtime-wheel
fail() { printf 'FAILED: %s\n' "$1"; exit 1; }
python3 -c 'import ensurepip, venv' 2> /dev/null || { echo "this Python makes no virtual environments (python3-venv)"; exit 77; }
rm -rf "$work"
mkdir -p "$work"/{home,a,b}
launcher=()
! command -v ccache > /dev/null || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

cmake --install "$build" --strip --prefix "$work/prefix" > "$work/log" || { cat "$work/log"; exit 1; }
program=$(python3 "$source/packaging/make.py" wheel "$work/prefix/bin/lrun" "$version" "linux_$(uname -m)" "$work")
for folder in a b; do
  library=$(python3 "$source/packaging/make.py" runtime "$work/prefix" "$version" "linux_$(uname -m)" "$work/$folder")
  ! command -v dpkg-deb > /dev/null ||
    deb=$(python3 "$source/packaging/make.py" deb-library "$work/prefix" "$version" "$(uname -m)" "$work/$folder")
done
diff -r "$work/a" "$work/b" || fail "made twice, a package differs"

python3 -m venv "$work/venv"
pip() { "$work/venv/bin/python" -m pip --disable-pip-version-check "$@"; }
pip install --quiet --no-index --no-deps "$program" "$library"
pip show lrun-runtime > "$work/shown"
grep -qE '^Requires: lrun, torch$' "$work/shown" || { cat "$work/shown"; fail "it does not say what it needs"; }
torch=$(echo "$work"/venv/lib/python3*/site-packages)/torch

# in_environment COMMAND...: with the environment active and nothing else.
in_environment() { env -i HOME="$work/home" VIRTUAL_ENV="$work/venv" PATH="$work/venv/bin:/usr/bin:/bin" "$@"; }
cp -r "$source/tests/consumer" "$work/project"
configure() { in_environment cmake -S "$work/project" -B "$work/project/build" -G Ninja "$@" > "$work/log" 2>&1; }

mkdir -p "$torch/lib" "$torch/include/torch/headeronly"
touch "$torch/lib/libtorch_cpu.so"
printf '#define TORCH_VERSION_%s\n' "MAJOR 1" "MINOR 13" "PATCH 1" > "$torch/include/torch/headeronly/version.h"
! configure || fail "it takes another LibTorch"
tr -s ' \n' ' ' < "$work/log" | grep -qE "needs LibTorch [0-9.]+: $torch is 1.13.1, and lrun was built with" ||
  { cat "$work/log"; fail "the error does not name the other LibTorch"; }
rm -rf "$torch" "$work/project/build"

mkdir "$work/elsewhere"
ln -s "$libtorch" "$work/elsewhere/torch"
echo "$work/elsewhere" > "$(dirname "$torch")/elsewhere.pth"
configure || { cat "$work/log"; fail "the project does not find the torch that only Python finds"; }
rm -rf "$(dirname "$torch")/elsewhere.pth" "$work/project/build"

ln -s "$libtorch" "$torch"
configure "${launcher[@]}" || { cat "$work/log"; fail "the project does not find it"; }
in_environment CCACHE_DIR="${CCACHE_DIR:-$HOME/.cache/ccache}" cmake --build "$work/project/build"
output=$(in_environment lrun --devices 2 "$work/project/build/consumer" 2>&1) || { echo "$output"; fail "the program fails"; }
echo "$output"
[[ $output == *"rank 1 of 2: loss "* ]] || fail "the ranks do not find each other"

if command -v gcc > /dev/null; then
  echo 'unsigned long long aoti_torch_abi_version(void) { return 1ull << 56 | 13ull << 48; }' |
    gcc -shared -fPIC -o "$work/another_libtorch.so" -x c -
  code=0
  output=$(in_environment LD_PRELOAD="$work/another_libtorch.so" "$work/project/build/consumer" 2>&1) || code=$?
  [[ $code -eq 127 && $output == "lrun: error: liblrun was built with LibTorch "*" has loaded 1.13.0"* ]] ||
    { echo "$output"; fail "the program does not say that another LibTorch is loaded"; }
fi
if [ -n "${deb:-}" ]; then
  dpkg-deb --extract "$deb" "$work/deb"
  [ -e "$work/deb/usr/lib/liblrun.so" ] || fail "Debian's package lacks the link that -llrun wants"
  mkdir -p "$work/deb/usr/bin"
  cp "$work/prefix/bin/lrun" "$work/deb/usr/bin/"  # of the package that it depends on
  rm -rf "$work/project/build"
  configure -Dlrun_ROOT="$work/deb/usr" -DLRUN_LIBTORCH="$libtorch" "${launcher[@]}" || { cat "$work/log"; fail "the project does not find Debian's package"; }
  grep -qF "$work/deb/usr/lib/liblrun.so" "$work/project/build/build.ninja" || fail "the project links another liblrun than Debian's"
fi

pip uninstall --quiet --yes lrun lrun-runtime
[ -z "$(find "$work/venv" -name '*lrun*')" ] || fail "it leaves files behind"
