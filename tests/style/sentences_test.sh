#!/usr/bin/env bash
# sentences.py finds each kind of break, and only breaks. usage: sentences_test.sh SENTENCES_PY
set -euo pipefail
sentences=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# expect STATUS FILE TEXT [WORDS]: the verdict on a tree that has only this file, and words of what is found
expect() {
  rm -rf "$work/src" "$work/man" "$work/tests" "$work/README.md"
  mkdir -p "$work/$(dirname "$2")"
  printf '%b\n' "$3" > "$work/$2"
  local status=0
  "$sentences" "$work" "${2%%/*}" > "$work/out" || status=$?
  { [ $status -eq "$1" ] && { [ $# -lt 4 ] || grep -qF -e "$4" "$work/out"; }; } ||
    { echo "'$3': expected status $1 and '${4:-}', got $status:"; cat "$work/out"; exit 1; }
}

expect 0 src/a.h '/// The reader closes it. A worker that is stopped is reaped.'
expect 1 src/a.h '/// The socket.\n/// Who reads it\n/// closes it.' 'src/a.h:2: begin with the subject'
expect 1 src/a.h 'int a;  ///< Whoever reads' 'begin with the subject'
expect 1 src/a.cc '// It ends. Whose turn it is decides.' 'begin with the subject'
expect 1 src/a.h '/// \\param a  a thing. What comes then is lost.' 'begin with the subject'
expect 0 src/a.h '// Who reads? What is read?'
expect 0 src/a.h 'const char* a = "// Who reads it";'
expect 1 src/a.sh '# What is read is kept.' 'begin with the subject'
expect 1 man/a.1 '.It Fl a\nWho reads it.' 'begin with the subject'
expect 1 README.md '- Whoever reads it' 'begin with the subject'
# shellcheck disable=SC2016 # a block of code
expect 0 README.md '```sh\nWho reads it\n```\nText.'
expect 1 tests/texts.golden 'hint     Who reads it' 'begin with the subject'

expect 1 src/a.h '// Mends it.' 'fix'
expect 1 src/a.h '// Empty when it is none.' 'say what there is not'
expect 0 src/a.h '// Empty where there is none, and when it is none of them; the key /lrun/meeting stays.'
expect 1 src/a.h 'class MeetingHolder {};' "'MeetingHolder': rendezvous"
expect 1 src/a.h 'int say_goodbye();' 'leave'
expect 0 src/a.h 'bool empty = value.isNone();'
expect 0 src/a.h 'const char* key = "meeting_port";'
expect 1 README.md 'The launcher holds the meeting.' 'rendezvous'

long=$(printf 'int a;\\n%.0s' {1..99})
expect 0 src/a.cc "$long"
expect 1 src/a.cc "#include \"a.h\"\n$long" 'opens with one to three comment lines'
expect 0 src/a.cc "// In: a number. Out: none. Called by b.cc.\n$long"
expect 1 src/a.cc "// 1\n// 2\n// 3\n// 4\n$long" 'opens with one to three comment lines'
