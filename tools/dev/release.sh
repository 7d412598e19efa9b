# shellcheck shell=bash
# release: in dist/ what others can install, for both processors.

zig_version=0.17.1
zig_home=$LRUN_CACHE/zig-$zig_version

# need_zig: the compiler whose programs run on any Linux, as a Python package of 80 MB.
need_zig() {
  zig=$zig_home/bin/zig
  [ ! -x "$zig" ] || return 0
  need_packages python3 python3-venv
  stage "fetching zig into $zig_home (80 MB, half a minute)"
  python3 -m venv --clear "$zig_home"
  "$zig_home/bin/pip" install --quiet "ziglang==$zig_version"
  ln -s "$("$zig_home/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/zig" "$zig"
}

project_version() { sed -n 's/^project(lrun VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt; }

# newest_symbol PREFIX FILE...: the newest version of glibc (GLIBC_) or libstdc++ (GLIBCXX_) of which they take a symbol.
newest_symbol() {
  local prefix=$1
  shift
  readelf --wide --dyn-syms "$@" | grep -o "${prefix}[0-9.]*" | sort -uV | tail -1
}
# is_older VERSION FLOOR: or the same
is_older() { [ "$(printf '%s\n' "$@" | sort -V | tail -1)" = "$2" ]; }

# packages_of PROCESSOR PRESET: the launcher, compiled, as a wheel, an archive and a package for Debian.
packages_of() {
  local processor=$1 preset=$2 program=build/$2/lrun version
  version=$(project_version)
  configure_options=(-DLRUN_ZIG="$zig")
  configure_and_build "$preset"
  configure_options=()
  [ "$(newest_symbol GLIBC_ "$program")" = GLIBC_2.28 ] || fail "$program needs $(newest_symbol GLIBC_ "$program"), not GLIBC_2.28"
  ! grep -qaF wheel_headers/ "$program" || fail "$program names a folder of its build, so that others are not equal to it"
  python3 packaging/make.py wheel "$program" "$version" "manylinux_2_28_$processor" dist
  python3 packaging/make.py archive "$program" "$version" "$processor" dist
  python3 packaging/make.py deb "$program" "$version" "$processor" dist
}

# The library for this machine's processor, as a wheel and as a package for Debian: LibTorch's headers need a GNU C++ library, whose version 12 is that
# of Debian 12 and Ubuntu 22.04.
package_of_library() {
  local version prefix libraries
  version=$(project_version)
  need_libtorch
  configure_and_build release product
  prefix=build/release/prefix
  rm -rf "$prefix"
  cmake --install build/release --strip --prefix "$prefix" > build/release.log || { cat build/release.log; return 1; }
  libraries=("$prefix"/lib/liblrun.so.* "$prefix"/lib/liblrun_cuda.so)
  is_older "$(newest_symbol GLIBC_ "${libraries[@]}")" GLIBC_2.35 || fail "liblrun needs $(newest_symbol GLIBC_ "${libraries[@]}")"
  is_older "$(newest_symbol GLIBCXX_ "${libraries[@]}")" GLIBCXX_3.4.30 || fail "liblrun needs $(newest_symbol GLIBCXX_ "${libraries[@]}")"
  python3 packaging/make.py runtime "$prefix" "$version" "manylinux_2_35_$(uname -m)" dist
  python3 packaging/make.py deb-library "$prefix" "$version" "$(uname -m)" dist
}

dev_release() {
  local version
  need_packages "${build_packages[@]}" advancecomp
  need_zig
  version=$(project_version)
  # The time that all files carry: that of the commit.
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) || fail "./dev release packs what is committed: it needs a clone of the repository"
  export SOURCE_DATE_EPOCH
  rm -rf dist
  mkdir dist
  packages_of x86_64 wheel
  packages_of aarch64 wheel-aarch64
  package_of_library
  # The same format in less space: Python's zipfile searches for repetitions in haste.
  advzip --recompress --shrink-extra --quiet dist/*.whl
  git archive --format=tar --prefix="lrun-$version/" HEAD | gzip -9n > "dist/lrun-$version.tar.gz"
  python3 packaging/make.py spdx "$version" "$zig_version" dist
  (cd dist && sha256sum -- lrun* > SHA256SUMS && ls -l)
}
