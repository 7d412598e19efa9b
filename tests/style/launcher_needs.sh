#!/usr/bin/env bash
# The launcher starts anywhere: it needs libc and the loader, nothing else, and stripped at most 5 MB; with sanitizers or
# in a debug build the compiler's own libraries too, at any size. usage: launcher_needs.sh LRUN optimised|other
set -euo pipefail
allowed='linux-vdso|libc|libdl|libpthread|librt|ld-linux'
[ "$2" = optimised ] || allowed="$allowed|libm|libstdc\+\+|libgcc_s|libasan|libubsan|libtsan"
needs=$(ldd "$1")
extra=$(grep -vE "^[[:space:]]*(/[^ ]*/)?($allowed)[-.0-9a-z_]*\.so" <<< "$needs" || true)
[ -z "$extra" ] || { printf 'lrun needs more than it may:\n%s\n' "$extra"; exit 1; }
[ "$2" = optimised ] || exit 0

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
strip -o "$folder/lrun" "$1"
size=$(stat -c %s "$folder/lrun")
[ "$size" -le 5000000 ] || { echo "lrun has $size bytes without symbols, and is to have at most 5,000,000"; exit 1; }
