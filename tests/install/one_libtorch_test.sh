#!/usr/bin/env bash
# A project that has a LibTorch of its own: lrun::runtime takes that one, or says in one sentence why not.
# usage: one_libtorch_test.sh BUILD_DIR SOURCE_DIR LIBTORCH
set -euo pipefail
build=$1 source=$2 libtorch=$3
work=$build/one_libtorch
rm -rf "$work"
mkdir -p "$work"
# Nothing of the machine's user: neither the cache nor what LRUN_LIBTORCH names is the project's.
export HOME=$work XDG_CACHE_HOME=$work/cache
unset LRUN_CACHE LRUN_LIBTORCH CMAKE_PREFIX_PATH
fail() { printf 'FAILED: %s\n' "$1"; cat "$work/log"; exit 1; }

cmake --install "$build" --prefix "$work/lrun" > "$work/log" || fail "it does not install"

# torch_like NAME [VERSION]: a LibTorch, with a package for find_package(Torch) that is as small as can be.
torch_like() {
  local folder=$work/$1/torch
  mkdir -p "$folder/share/cmake/Torch" "$folder/include/torch/headeronly" "$folder/include/torch/csrc/api/include" "$folder/lib"
  ! [ -d "$libtorch/../nvidia" ] || ln -s "$(realpath "$libtorch/../nvidia")" "$work/$1/nvidia"
  ln -L "$libtorch/lib/libc10.so" "$libtorch/lib/libtorch_cpu.so" "$folder/lib/" 2> /dev/null ||
    cp "$libtorch/lib/libc10.so" "$libtorch/lib/libtorch_cpu.so" "$folder/lib/"
  cp "$libtorch/include/torch/headeronly/version.h" "$folder/include/torch/headeronly/" 2> /dev/null ||
    cp "$libtorch/include/torch/csrc/api/include/torch/version.h" "$folder/include/torch/headeronly/"
  [ $# -eq 1 ] || sed -i -E "s/(TORCH_VERSION_MAJOR) [0-9]+/\1 $2/" "$folder/include/torch/headeronly/version.h"
  cat > "$folder/share/cmake/Torch/TorchConfig.cmake" << 'CMAKE'
get_filename_component(TORCH_INSTALL_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
foreach(library c10 torch_cpu)
  add_library(${library} SHARED IMPORTED)
  set_target_properties(${library} PROPERTIES IMPORTED_CONFIGURATIONS RELEASE
    IMPORTED_LOCATION_RELEASE "${TORCH_INSTALL_PREFIX}/lib/lib${library}.so")
endforeach()
add_library(torch INTERFACE IMPORTED)
target_link_libraries(torch INTERFACE torch_cpu c10)
set(TORCH_LIBRARIES torch)
CMAKE
}
torch_like own
torch_like old 1
torch_like broken
: > "$work/broken/torch/include/torch/headeronly/version.h"
own=$work/own/torch old=$work/old/torch

# configure PACKAGES OPTION...
configure() {
  local packages=$1
  shift
  rm -rf "$work/build"
  cmake -S "$source/tests/install/with_torch" -B "$work/build" -G Ninja "-DPACKAGES=$packages" -Dlrun_ROOT="$work/lrun" \
    "$@" > "$work/log" 2>&1
}
# links WHAT FOLDER: the one program takes LibTorch from there, and has no path to another.
links() {
  local found
  found=$(grep -oE '[^ =,:]*/lib/libtorch_cpu\.so' "$work/build/build.ninja" | sort -u) || true
  [ "$found" = "$2/lib/libtorch_cpu.so" ] || fail "$1: it links '$found'"
  found=$(grep -oE 'rpath,[^ :]*' "$work/build/build.ninja" | grep -v "^rpath,\($2\|$work/lrun\)/" | sort -u) || true
  [ -z "$found" ] || fail "$1: it looks for libraries in '$found'"
}
# refuses WHAT SENTENCE: one error, with these words.
refuses() {
  [ "$(grep -c '^CMake Error' "$work/log")" -eq 1 ] || fail "$1: not one error"
  tr -s ' \n' ' ' < "$work/log" | grep -qF -- "$2" || fail "$1: another reason"
}

configure "Torch;lrun" -DTorch_DIR="$own/share/cmake/Torch" || fail "Torch first"
links "Torch first" "$own"
configure "Torch;lrun" -DCMAKE_PREFIX_PATH="$own" -DLRUN_LIBTORCH= || fail "Torch first, by the prefix"
links "Torch first, by the prefix" "$own"
configure "lrun;Torch" -DTorch_DIR="$own/share/cmake/Torch" || fail "lrun first"
links "lrun first" "$own"
configure "lrun;Torch" -DCMAKE_PREFIX_PATH="$own/share/cmake" || fail "lrun first, by torch.utils.cmake_prefix_path"
links "lrun first, by torch.utils.cmake_prefix_path" "$own"
configure "lrun" -DCMAKE_PREFIX_PATH="$work/nothing;$own" || fail "lrun alone"
links "lrun alone" "$own"
configure "lrun" -DCMAKE_PREFIX_PATH="$old;$own" || fail "an old one before it"
links "an old one before it" "$own"

! configure "Torch;lrun" -DTorch_DIR="$own/share/cmake/Torch" -DLRUN_LIBTORCH="$libtorch" || fail "two were accepted"
refuses "two" "and find_package(Torch) found $own: a program links one"
! configure "lrun;Torch" -DTorch_DIR="$own/share/cmake/Torch" -DLRUN_LIBTORCH="$libtorch" || fail "two were accepted"
refuses "two, lrun first" "and find_package(Torch) found $own: a program links one"
! configure "Torch;lrun" -DTorch_DIR="$old/share/cmake/Torch" || fail "another version was accepted"
refuses "another version" "and $old is 1."
! configure "Torch;lrun" -DCMAKE_PREFIX_PATH="$old" || fail "another version was accepted"
refuses "another version, by the prefix" "and $old is 1."
! configure "lrun" -DTorch_DIR="$old/share/cmake/Torch" || fail "another version was accepted"
refuses "another version, lrun alone" "$(realpath "$old") is 1."
version=$(sed -n 's/.*LRUN_LIBTORCH_VERSION "\(.*\)".*/\1/p' "$work"/lrun/lib*/cmake/lrun/lrunConfig.cmake)
[ -n "$version" ] || fail "the installed package does not name its LibTorch"
! configure "lrun" -Dversion="$version" -DCMAKE_PREFIX_PATH="$work/broken/torch" || fail "a variable of the project was taken for its version"
refuses "no version" "broken/torch is of an unknown version"
! configure "lrun" || fail "it found one that nobody named"
refuses "none" "neither find_package(Torch), Torch_DIR nor CMAKE_PREFIX_PATH leads to one"
