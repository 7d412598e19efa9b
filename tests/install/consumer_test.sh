#!/usr/bin/env bash
# Installs this build to a folder of its own, builds a project that knows only that folder, and runs it.
# usage: consumer_test.sh BUILD_DIR SOURCE_DIR VERSION LIBTORCH
set -euo pipefail
build=$1 source=$2 version=$3 libtorch=$4
# Always the same folder: ccache then knows the consumer's unit, which sees all of LibTorch.
work=$build/consumer
rm -rf "$work"
mkdir "$work"
launcher=()
! command -v ccache > /dev/null || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

cmake --install "$build" --prefix "$work/prefix" > "$work/install.log"
for file in bin/lrun lib*/cmake/lrun/lrunConfig.cmake include/lrun/version.h; do
  compgen -G "$work/prefix/$file" > /dev/null || { echo "not installed: $file"; cat "$work/install.log"; exit 1; }
done
# Installed files do not refer to the builder's folders: neither as a search path of libraries nor in any text.
while read -r library; do
  if readelf -d "$library" | grep -E '\((RPATH|RUNPATH)\)' | grep -vF "[\$ORIGIN]"; then
    echo "$library looks for libraries where only its builder has them"
    exit 1
  fi
  objcopy --strip-debug "$library" "$work/stripped"
  if strings -a "$work/stripped" | grep -F -e "$build" -e "$source" -e "$libtorch"; then
    echo "$library tells its builder's folders"
    exit 1
  fi
done < <(find "$work/prefix/bin" "$work"/prefix/lib* -type f \( -perm -u+x -o -name '*.so*' \))
if grep -rIF -e "$build" -e "$source" -e "$libtorch" "$work/prefix" --include='*.cmake' --include='*.pc' --include='*.h'; then
  echo "its builder's folders are in what a project reads"
  exit 1
fi
# Every header that is public in the tree is installed, and nothing else is.
diff <(cd "$source/include" && find lrun -name '*.h' | sort) <(cd "$work/prefix/include" && find lrun -type f | sort)
while read -r file target; do
  [ ! -e "$source/$file" ] || cmp "$source/$file" "$work/prefix/share/$target"
done << 'TABLE'
man/lrun.1             man/man1/lrun.1
docs/for_programs.md   doc/lrun/for_programs.md
completions/lrun.bash  bash-completion/completions/lrun
completions/_lrun      zsh/site-functions/_lrun
completions/lrun.fish  fish/vendor_completions.d/lrun.fish
TABLE

cp -r "$source/tests/consumer" "$work/project"
cmake -S "$work/project" -B "$work/project/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix;$libtorch" \
  "${launcher[@]}" > "$work/configure.log" ||
  { cat "$work/configure.log"; exit 1; }
cmake --build "$work/project/build"
# Neither the build tree nor a variable may be needed to run it.
output=$(env -i "$work/project/build/consumer")
echo "$output"
[[ $output == "rank 0 of 1: loss "* ]]
grep -q "PACKAGE_VERSION \"$version\"" "$work"/prefix/lib*/cmake/lrun/lrunConfigVersion.cmake
