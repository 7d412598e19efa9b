#!/usr/bin/env bash
# step_mistakes.sh SOURCE COMMAND…: COMMAND, which compiles SOURCE, fails and says what SOURCE expects, as often as it does,
# the first of it first.
set -u
source=$1
shift
errors=$("$@" 2>&1) && { echo "it compiles: $*"; exit 1; }
mapfile -t expected < <(sed -n 's|^ *// says: ||p' "$source")
((${#expected[@]} > 0)) || { echo "nothing is expected of $source"; exit 1; }
mapfile -t said < <(grep -o 'static assertion failed.*\|static_assert failed.*' <<< "$errors" | grep 'lrun: ')
for text in "${expected[@]}"; do
  wanted=$(printf '%s\n' "${expected[@]}" | grep -cxF -- "$text")
  times=$(printf '%s\n' "${said[@]}" | grep -cF -- "lrun: $text")
  ((times >= wanted)) || { echo "'$text' is said $times times, and $wanted are expected:"; echo "$errors"; exit 1; }
done
first=$(grep -m 1 -E 'error:' <<< "$errors")
[[ $first == *"lrun: ${expected[0]}"* ]] || { echo "the first error is another: $first"; echo "$errors"; exit 1; }
