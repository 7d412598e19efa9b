#!/usr/bin/env bash
# Every command in a document is run, and every piece of code in it is the code that is tested.
# usage: readme.sh DOCUMENT SOURCE_DIR BUILD_DIR
#
# A code block is preceded by a comment that says how it is held to be true:
#   <!-- run -->         each line is run, with lrun in PATH, in a folder with the programs `train` and `train.py`
#   <!-- ci -->          each line is a command that .ci/run, ./dev check or ./dev soak runs
#   <!-- file: PATH -->  the block stands in that file, word for word
# A block without one is refused, unless it is a picture (no language).
set -euo pipefail
document=$1 source=$2
build=$(cd "$3" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

complain() {
  printf '%s\n' "$*" >&2
  exit 1
}

# Writes every block to $work/N.block and its mark to $work/N.mark.
awk -v work="$work" '
  /^<!-- .* -->$/ { mark = $0; gsub(/^<!-- | -->$/, "", mark); next }
  /^```/ && !inside { inside = 1; picture = ($0 == "```"); if (!picture) { n++; print mark > (work "/" n ".mark") }; next }
  /^```/ { inside = 0; mark = ""; next }
  inside && !picture { print > (work "/" n ".block") }
  /[^ ]/ && !inside { mark = "" }' "$document"

# A program in the build folder is named from the source folder; everything else runs among the example programs.
run_block() {
  local command folder status
  while read -r command; do
    folder=$work/run
    [[ $command != build/* ]] || folder=$source
    status=0
    (cd "$folder" && PATH=$build:$PATH bash -c "$command") > "$work/out" 2>&1 < /dev/null || status=$?
    [ $status -eq 0 ] || complain "$document: '$command' ended with $status:
$(tail -20 "$work/out")"
  done < "$1"
}

# Of a ./dev command the arguments are free (./dev test -R NAME is ./dev test); other commands call it as a function.
is_run_elsewhere() {
  local word scripts=("$source/.ci/run" "$source/tools/dev/check.sh" "$source/tools/dev/soak.sh")
  if [[ $1 == ./dev\ * ]]; then
    word=$(cut -d' ' -f2 <<< "$1")
    grep -qE "/dev\"? $word|\bdev_$word\b" "${scripts[@]}"
  else
    grep -qF -e "$1" "${scripts[@]}"
  fi
}

mkdir "$work/run"
cat > "$work/run/train" << 'PROGRAM'
#!/bin/sh
[ "$RANK" -lt "$WORLD_SIZE" ] && { [ $# -eq 0 ] || [ "$*" = "--lr 0.1" ]; }
PROGRAM
printf 'import os\nassert int(os.environ["RANK"]) < int(os.environ["WORLD_SIZE"])\n' > "$work/run/train.py"
chmod +x "$work/run/train"
export LRUN_STATE=$work/state

blocks=0
for mark in "$work"/*.mark; do
  block=${mark%.mark}.block
  blocks=$((blocks + 1))
  case $(cat "$mark") in
    run) run_block "$block" ;;
    ci)
      while read -r command; do
        is_run_elsewhere "$command" || complain "$document: nothing runs '$command'"
      done < "$block"
      ;;
    file:*)
      file=$source/$(sed 's/^file: //' "$mark")
      [[ $(cat "$file") == *"$(cat "$block")"* ]] || complain "$document: a block differs from $file:
$(cat "$block")"
      ;;
    *) complain "$document: a code block without a mark: $(head -1 "$block")" ;;
  esac
done
[ $blocks -gt 0 ] || complain "$document: no code blocks found"
