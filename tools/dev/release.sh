# shellcheck shell=bash
# release: in dist/ what others can install, for both processors.

zig_home=$LRUN_CACHE/zig-0.17.1
zig_package=ziglang==0.17.1

# need_zig: the compiler whose programs run on any Linux, as a Python package of 80 MB.
need_zig() {
  zig=$zig_home/bin/zig
  [ ! -x "$zig" ] || return 0
  need_packages python3 python3-venv
  stage "fetching zig into $zig_home (80 MB, half a minute)"
  python3 -m venv --clear "$zig_home"
  "$zig_home/bin/pip" install --quiet "$zig_package"
  ln -s "$("$zig_home/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/zig" "$zig"
}

project_version() { sed -n 's/^project(lrun VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt; }

# glibc_floor PROGRAM: the newest version of glibc of which it takes a symbol.
glibc_floor() { readelf --wide --dyn-syms "$1" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1; }

# wheel_of PROCESSOR PRESET
wheel_of() {
  local processor=$1 preset=$2 program=build/$2/lrun
  configure_options=(-DLRUN_ZIG="$zig")
  configure_and_build "$preset"
  configure_options=()
  [ "$(glibc_floor "$program")" = GLIBC_2.28 ] || fail "$program needs $(glibc_floor "$program"), not GLIBC_2.28"
  python3 packaging/wheel/make.py "$program" "$(project_version)" "manylinux_2_28_$processor" dist
}

dev_release() {
  need_packages "${build_packages[@]}"
  need_zig
  rm -rf dist
  mkdir dist
  wheel_of x86_64 wheel
  wheel_of aarch64 wheel-aarch64
  (cd dist && sha256sum -- *.whl > SHA256SUMS && ls -l)
}
