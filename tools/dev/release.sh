# shellcheck shell=bash
# release: in dist/ what others can install, for both processors.

zig_version=0.17.1
zig_home=$LRUN_CACHE/zig-$zig_version
# Its wheels for x86_64 and aarch64.
zig_requirement="ziglang==$zig_version \
  --hash=sha256:ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54 \
  --hash=sha256:b7c5f02fccd40f89b999ee16a1f5ddced56e6182370f8affe494bcf8a28cf07e"

# need_zig: the compiler whose programs run on any Linux, as a Python package of 100 MB.
need_zig() {
  zig=$zig_home/bin/zig
  [ ! -x "$zig" ] || return 0
  need_packages python3 python3-venv
  stage "fetching zig into $zig_home (100 MB, half a minute)"
  python3 -m venv --clear "$zig_home"
  "$zig_home/bin/pip" install --quiet --require-hashes --only-binary=:all: --requirement <(echo "$zig_requirement")
  ln -s "$("$zig_home/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/zig" "$zig"
}

project_version() { sed -n 's/^project(lrun VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt; }

# newest_symbol PREFIX FILE...: the newest version of glibc (GLIBC_) or libstdc++ (GLIBCXX_) of which they take a symbol.
newest_symbol() {
  local prefix=$1
  shift
  readelf --wide --dyn-syms "$@" | grep -o "${prefix}[0-9.]*" | sort -uV | tail -1
}
# needs_at_most VERSION FILE...: fails where one of them needs a newer glibc or libstdc++, or cannot be read.
needs_at_most() {
  local version=$1 file newest
  shift
  for file in "$@"; do
    newest=$(newest_symbol "${version%%_*}_" "$file") || fail "what '$file' needs of ${version%%_*} cannot be read"
    [ "$(printf '%s\n' "$newest" "$version" | sort -V | tail -1)" = "$version" ] || fail "'$file' needs $newest, not $version"
  done
}

# packages_of PROCESSOR PRESET: the launcher, compiled, as a wheel, an archive and a package for Debian.
packages_of() {
  local processor=$1 preset=$2 program=build/$2/lrun version
  version=$(project_version)
  configure_options=(-DLRUN_ZIG="$zig")
  configure_and_build "$preset"
  configure_options=()
  needs_at_most GLIBC_2.28 "$program"
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
  [ -f "${libraries[-1]}" ] || fail "liblrun was built without CUDA" \
    "it needs a CUDA toolkit and the nccl.h of LibTorch's version; build/release/configure.log says what was found"
  needs_at_most GLIBC_2.35 "${libraries[@]}"
  needs_at_most GLIBCXX_3.4.30 "${libraries[@]}"
  python3 packaging/make.py runtime "$prefix" "$version" "manylinux_2_35_$(uname -m)" dist
  python3 packaging/make.py deb-library "$prefix" "$version" "$(uname -m)" dist
}

dev_release() {
  local version changes
  is_debian_12 || fail "./dev release makes the packages on Debian 12: its libraries are compiled in, and listed with its versions" \
    "run it in a container or chroot of Debian 12 (bookworm)"
  changes=$(git status --porcelain) || fail "./dev release packs what is committed: it needs a clone of the repository"
  [ -z "$changes" ] || fail "./dev release packs what is committed, and here is what is not: ${changes%%$'\n'*}" \
    "commit it and what else 'git status' lists, or 'git stash --include-untracked'"
  need_packages "${build_packages[@]}" advancecomp
  need_zig
  version=$(project_version)
  # The time that all files carry: that of the commit.
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH
  rm -rf dist
  mkdir dist
  packages_of x86_64 wheel
  packages_of aarch64 wheel-aarch64
  package_of_library
  # The same format in less space: Python's zipfile searches for repetitions in haste.
  advzip --recompress --shrink-insane --quiet dist/*.whl
  git archive --format=tar --prefix="lrun-$version/" HEAD | gzip -9n > "dist/lrun-$version.tar.gz"
  python3 packaging/make.py spdx "$version" "$zig_version" build/release/prefix dist
  (cd dist && sha256sum -- *lrun* > SHA256SUMS && ls -l)
  [ "$(wc -l < dist/SHA256SUMS)" -eq "$(find dist -type f ! -name SHA256SUMS | wc -l)" ] || fail "dist/SHA256SUMS does not list all of dist"
}
