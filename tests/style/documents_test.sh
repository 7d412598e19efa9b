#!/usr/bin/env bash
# documents.py finds each kind of break, and only breaks. usage: documents_test.sh DOCUMENTS_PY BUILD_DIR
set -euo pipefail
documents=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tools/dev" "$work/.ci" "$work/examples"
echo 'ctest --preset dev' > "$work/.ci/run"
: > "$work/tools/dev/check.sh"
: > "$work/tools/dev/packages.sh"
: > "$work/tools/dev/soak.sh"
printf 'int a;\nint b;\n' > "$work/old.cc"
printf 'int a;\nint c;\n' > "$work/new.cc"

# expect STATUS DOCUMENT [WORDS]: the verdict on the document, and words of what is found
expect() {
  printf '%b\n' "$2" > "$work/a.md"
  local status=0
  "$documents" a.md "$work" "$build" 30 > "$work/out" || status=$?
  { [ $status -eq "$1" ] && { [ $# -lt 3 ] || grep -qF -e "$3" "$work/out"; }; } ||
    { echo "'$2': expected status $1 and '${3:-}', got $status:"; cat "$work/out"; exit 1; }
}

# shellcheck disable=SC2016 # the marks of a code block
block() { printf '%s\\n```%s\\n%s\\n```' "$1" "$2" "$3"; }

expect 0 "$(block '<!-- run -->' sh 'lrun --devices 2 ./train')"
expect 1 "$(block '<!-- run -->' sh 'lrun --devices 2 ./tarin')" 'ended with 127'
expect 1 "$(block '<!-- run -->' sh 'lrun ./train --devices 2')" 'ended with 9'
expect 0 "$(block '<!-- run: 0 9 -->' sh 'lrun ./train --devices 2')"
expect 0 "$(block '<!-- run beside -->' sh 'lrun status --json | grep -q rank')"
expect 0 "$(block '<!-- plan -->' sh 'lrun -H a:2 \\\n  ./train')"
expect 1 "$(block '<!-- plan -->' sh 'lrun --hosst a:2 ./train')" 'ended with 125'
expect 0 "$(block '<!-- plan -->' sh 'srun --ntasks-per-node=4 lrun ./train')"
expect 0 "$(block '<!-- prints -->' '' '$ echo pid 4 on a; echo b\npid 5 on c\n...')"
expect 1 "$(block '<!-- prints -->' '' '$ echo a; echo b\na')" 'printed something else'
expect 0 "$(block '<!-- config -->' toml 'devices = 2')"
expect 1 "$(block '<!-- config -->' toml 'devises = 2')" 'ended with 125'
expect 0 "$(block '<!-- ci -->' sh 'ctest --preset dev')"
expect 1 "$(block '<!-- ci -->' sh 'ctest --preset day')" 'nothing runs'
expect 0 "$(block '<!-- file: old.cc -->' cpp 'int b;')"
expect 1 "$(block '<!-- file: old.cc -->' cpp 'int c;')" 'differs from old.cc'
expect 0 "$(block '<!-- diff: old.cc new.cc -->' diff ' int a;\n-int b;\n+int c;')"
expect 1 "$(block '<!-- diff: old.cc new.cc -->' diff ' int a;\n-int b;\n+int d;')" 'differs from new.cc'
expect 0 "$(block '' '' 'lrun: note: a picture')"
expect 1 "$(block '' '' 'lrun ./train')" 'that nothing checks'
expect 1 "$(block '' sh 'true')" 'that nothing checks'
expect 1 "$(block '<!-- run -->\nWords.' sh 'true')" 'that nothing checks'
# shellcheck disable=SC2016 # code within a sentence
expect 0 '| a | `lrun -np 2 ./train` | `lrun` |'
# shellcheck disable=SC2016
expect 1 '| a | `lrun -np 2 ./tarin` |' 'would fail'
expect 1 "$(seq 31 | tr '\n' ' ')" '31 words'
