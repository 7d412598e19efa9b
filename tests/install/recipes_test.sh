#!/usr/bin/env bash
# The recipes of packaging/recipes, as far as they go without conda, Spack and Docker: the source configures with the words
# that they give to cmake, and what the Dockerfile puts into its image starts there. The source that `git archive` makes
# knows its commit. usage: recipes_test.sh LRUN SOURCE_DIR VERSION WORK_DIR
set -euo pipefail
lrun=$1 source=$2 version=$3 work=$4
fail() { printf 'FAILED: %s\n' "$1"; cat "$work/log"; exit 1; }
rm -rf "$work"
mkdir -p "$work/docker"

if git -C "$source" rev-parse -q HEAD > "$work/log" 2>&1; then
  git -C "$source" archive HEAD cmake/commit.txt | tar -x -C "$work"
  [ "$(cat "$work/cmake/commit.txt")" = "$(cat "$work/log")" ] || fail "git archive leaves the commit out"
fi

# configures_alone FOLDER: what was configured there is the launcher, with all that is installed.
configures_alone() {
  ninja -C "$1" -n product > "$work/log" || fail "it cannot be built"
  ! grep -q 'liblrun\.so' "$1/build.ninja" || fail "liblrun is in it"
}
command=$(sed -n 's/^ *- \(cmake -S .*\)/\1/p' "$source/packaging/recipes/conda/recipe.yaml")
(cd "$source" && CMAKE_ARGS='' bash -euc "${command//build\/conda/\"$work/conda\"}") > "$work/log" 2>&1 || fail "conda's does not configure"
configures_alone "$work/conda"
python3 "$source/tests/install/spack_arguments.py" "$source/packaging/recipes/spack/package.py" > "$work/arguments" 2> "$work/log" ||
  fail "Spack's cannot be read"
mapfile -t arguments < "$work/arguments"
cmake -S "$source" -B "$work/spack" -G Ninja "${arguments[@]}" > "$work/log" 2>&1 || fail "Spack's does not configure"
configures_alone "$work/spack"

strip -o "$work/lrun" "$lrun"
python3 "$source/packaging/make.py" archive "$work/lrun" "$version" "$(uname -m)" "$work/docker" > "$work/log"
sed -n '/^RUN /,/[^\\]$/p' "$source/packaging/recipes/Dockerfile" | sed 's/^RUN //' > "$work/run.sh"
(cd "$work/docker" && sh "$work/run.sh") > "$work/log" 2>&1 || fail "the Dockerfile's RUN fails"
size=$(du -sm "$work/docker/image" | cut -f 1)
[ "$size" -le 10 ] || fail "the image has $size MiB"
spaces=()
[ "$(id -u)" -eq 0 ] || spaces=(unshare --map-root-user)
"${spaces[@]}" "$(command -v chroot)" / true || { echo "SKIPPED: nobody may chroot here"; exit 77; }
"${spaces[@]}" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LRUN_NO_CGROUP=1 "$(command -v chroot)" "$work/docker/image" \
  /usr/local/bin/lrun --devices 2 /usr/local/bin/lrun --version > "$work/log" 2>&1 || fail "lrun does not run in the image"
[ "$(grep -c "^\[[01]\] lrun $version\$" "$work/log")" -eq 2 ] || fail "two workers of it do not say their version"
