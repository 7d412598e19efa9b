#!/usr/bin/env bash
# pages.py finds each kind of break, and only breaks. usage: pages_test.sh PAGES_PY
# shellcheck disable=SC2016 # the quotes of Markdown
set -euo pipefail
pages=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# file PATH TEXT: a file of the tree
file() {
  mkdir -p "$work/tree/$(dirname "$1")"
  printf '%b\n' "$2" > "$work/tree/$1"
}

# words N: so many words
words() { printf 'word %.0s' $(seq "$1"); }

# begin: a tree that is in order
begin() {
  rm -rf "$work/tree"
  file src/core/stop/policy.h 'struct LaunchPlan {}; int decide(int kBegin);'
  file README.md "$(words 1200)"
  file ARCHITECTURE.md "$(words 900)$picture$picture$picture"
  file docs/design/stopping.md "# The end\n$(words 690)\n[page](stopping.md#the-end) \`src/core/stop\`$picture"
}

# expect STATUS [WORDS]: the verdict on the tree, and words of what is found
expect() {
  local status=0
  "$pages" "$work/tree" README.md ARCHITECTURE.md 'docs/design/*.md' > "$work/out" || status=$?
  { [ $status -eq "$1" ] && { [ $# -lt 2 ] || grep -qF -e "$2" "$work/out"; }; } ||
    { echo "expected status $1 and '${2:-}', got $status:"; cat "$work/out"; exit 1; }
}

# page STATUS TEXT [WORDS]: the same of a design page with this text and a picture
page() {
  begin
  file docs/design/launch.md "$2$picture"
  expect "$1" "${@:3}"
}

# drawn STATUS PICTURE [WORDS]: the same of a page with this picture
drawn() {
  begin
  file docs/design/launch.md "\`\`\`mermaid\n$2\n\`\`\`"
  expect "$1" "${@:3}"
}

fence='```'
picture="\n${fence}mermaid\nflowchart TB\n  a[\"words of a picture do not count\"] --> b\n${fence}\n"

begin
expect 0
file README.md "$(words 1201)"
expect 1 'README.md:1: 1201 words, and 1200 are allowed'
begin; file README.md "$(words 2000)"
"$pages" "$work/tree" ARCHITECTURE.md || { echo 'a page that is not named is held to its limit'; exit 1; }
begin; file ARCHITECTURE.md "$(words 901)$picture$picture$picture"
expect 1 'ARCHITECTURE.md:1: 901 words'
begin; file ARCHITECTURE.md "$picture$picture"
expect 1 '2 pictures (```mermaid) in place of 3'
begin; file docs/design/launch.md "| a | b |\n${fence}sh\n$(words 698)\n${fence}$picture"
expect 1 'docs/design/launch.md:1: 701 words, and 700 are allowed'
begin; file docs/design/launch.md 'A page.'
expect 1 'docs/design/launch.md:1: 0 pictures'
begin; file docs/design/launch.md "$picture$picture"
expect 1 '2 pictures'
begin; rm -r "$work/tree/docs"
expect 1 'docs/design/*.md:1: there is no such page'

page 1 'Text.\n[a page](nothing.md)' 'docs/design/launch.md:2: there is no nothing.md'
page 0 '[a page](https://example.org/nothing.md)'
page 0 '[a page](../../README.md)'
page 1 '[a page](stopping.md#nothing)' 'there is no heading #nothing in stopping.md'
page 0 '# A b, c\n[a](#a-b-c) [b](stopping.md) [c](https://example.org/d)'
page 1 '[a](#b)' 'there is no heading #b in launch.md'
page 1 '`src/core/stop/police.h`' 'there is no src/core/stop/police.h'
page 1 'It is in src/core/stop/policy.cc.' 'there is no src/core/stop/policy.cc'
page 0 'It is in src/core/stop/policy.h, see `src/core/*/policy.h` and `src/core/MODULE`.'
page 1 '`src/base/MODULE`' 'there is no src/base/MODULE'
page 0 '`build/dev/src/nothing`'
page 0 '`LaunchPlan`, `kBegin`, `decide()`, `NAME`, `a word`'
page 1 '`LaunchPlane`' 'the sources have no LaunchPlane'
page 1 '`LaunchPlan::decided()`' 'the sources have no decided()'
page 1 '`policy()`' 'the sources have no policy()'
begin; file docs/guide.md '[a page](nothing.md)'
expect 1 'docs/guide.md:1: there is no nothing.md'
begin; file CHANGELOG.md '[a page](nothing.md)'
expect 1 'CHANGELOG.md:1: there is no nothing.md'

drawn 1 'graf TB\n  a --> b' "'graf' is none of the pictures"
drawn 1 '' "'' is none of the pictures"
drawn 0 'flowchart TB\n  subgraph a\n    b["(it"]\n  end\n  b --> c'
drawn 1 'flowchart TB\n  subgraph a\n    b --> c' "as many 'end'"
drawn 1 'flowchart TB\n  a[text --> b' 'docs/design/launch.md:3: a bracket or a quote is left open'
drawn 1 'flowchart TB\n  a["text] --> b' 'a bracket or a quote is left open'
drawn 0 'stateDiagram-v2\n  [*] --> Running'
drawn 0 'sequenceDiagram\n  participant a\n  participant b\n  loop each\n    a->>b: go :)\n    b--xa: end\n  end'
drawn 1 'sequenceDiagram\n  participant a\n  a->>b: go' 'no participant of the picture: a->>b: go'
drawn 1 'sequenceDiagram\n  participant a\n  a->>a: go\n  end' "as many 'end'"
