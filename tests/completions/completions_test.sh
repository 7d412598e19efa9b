#!/usr/bin/env bash
# What a real shell offers for lrun. usage: completions_test.sh bash|zsh|fish COMPLETIONS PRINT_FLAGS LRUN
set -euo pipefail
shell=$1 completions=$(realpath "$2") print_flags=$(realpath "$3") lrun=$(realpath "$4")
here=$(cd "$(dirname "$0")" && pwd)
command -v "$shell" > /dev/null || { echo "SKIPPED: $shell is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work XDG_CONFIG_HOME=$work XDG_DATA_HOME=$work TERM=dumb
mkdir "$work/folder" && cd "$work/folder"
mkdir data && touch train.py && printf '#!/bin/sh\n' > train && chmod +x train

case $shell in zsh) file=_lrun ;; *) file=lrun.$shell ;; esac
"$lrun" completion "$shell" | cmp - "$completions/$file"
case $shell in
  bash) offered() { bash --norc "$here/complete_bash.sh" "$completions" "$1" | sort -u; } ;;
  zsh) offered() { zsh -f "$here/complete_zsh.zsh" "$completions" "$1" | sort -u; } ;;
  # fish offers '--strategy=ddp' where the others offer 'ddp'
  fish) offered() { fish --no-config "$here/complete_fish.fish" "$completions" "$1" | sed 's/^--[-_a-z]*=\(.\)/\1/' | sort -u; } ;;
esac

# exactly LINE WORDS...: the completions of LINE are these
exactly() {
  local line=$1 expected actual
  shift
  expected=$(printf '%s\n' "$@" | sort -u)
  actual=$(offered "$line")
  [ "$expected" = "$actual" ] || { printf "%s, '%s': expected\n%s\ngot\n%s\n" "$shell" "$line" "$expected" "$actual"; exit 1; }
}
# among LINE WORD: the completions of LINE hold WORD
among() {
  local actual
  actual=$(offered "$1")
  grep -qxF -e "$2" <<< "$actual" || { printf "%s, '%s': no '%s' among\n%s\n" "$shell" "$1" "$2" "$actual"; exit 1; }
}
# never LINE PATTERN: no completion of LINE begins like this
never() {
  local actual
  actual=$(offered "$1")
  ! grep -e "^$2" <<< "$actual" || { printf "%s, '%s' offers the above\n" "$shell" "$1"; exit 1; }
}

# Every long name of this version and no other.
mapfile -t names < <("$print_flags" | awk -F'\t' '$1 == "flag" && $2 == "now" { print $4 }' | tr ' ' '\n')
[ "$(offered 'lrun --' | sed 's/[=@]$//' | sort -u)" = "$(printf '%s\n' "${names[@]}" | sort)" ] ||
  { echo "$shell, 'lrun --' offers"; offered 'lrun --'; exit 1; }

# Every value that the table lists, in both spellings.
"$print_flags" | awk -F'\t' '$1 == "flag" && $2 == "now" && $5 != "." { print $4 "\t" $5 }' > "$work/choices"
while IFS=$'\t' read -r flag_names choices; do
  name=${flag_names%% *}
  read -ra words <<< "$choices"
  exactly "lrun $name=" "${words[@]}"
  [ "$name" = --dry-run ] || exactly "lrun $name " "${words[@]}"
done < "$work/choices"
exactly 'lrun --strategy ddp' ddp ddp2 ddp_sharded ddp_spawn ddp_fork ddp_notebook
among 'lrun --wrap sha256s' sha256sum
among 'lrun --wrap@0,2-3 sha256s' sha256sum
among 'lrun --wrap@0 strace --wrap@1 strace tr' train.py
exactly 'lrun -n 2 --accelerator g' gpu

if [ "$shell" != bash ]; then  # which has no descriptions
  "$print_flags" | awk -F'\t' '$1 == "flag" && $4 == "--strategy" { print $5 }' | tr ' ' '\n' | while read -r strategy; do
    grep -qE "^ +$strategy '[A-Z]|[( ]$strategy\\\\:\"[a-z]" "$completions/$file" || { echo "$shell does not describe $strategy"; exit 1; }
  done
fi

# PROGRAM: commands and files. After it nothing of ours is offered.
among 'lrun -n 2 tr' train.py
among 'lrun --devices=2 --strategy ddp tr' train.py
among 'lrun -- tr' train.py
among 'lrun sha256s' sha256sum
# Before its first letter only files, and no thousands of commands.
[ "$(offered 'lrun -n 2 ' | tr -d / | xargs)" = 'data train train.py' ] || { offered 'lrun -n 2 '; exit 1; }
for first in train.py status; do among 'lrun ' "$first"; done
never 'lrun ' 'sha256sum\|-'
if [ "$shell" = bash ] && [ -e /usr/share/bash-completion/bash_completion ]; then
  export WITH_PACKAGE=1
  among 'lrun tr' train.py
  among 'lrun da' data
  among 'lrun sha256s' sha256sum
  among 'lrun ./train tr' train.py
  unset WITH_PACKAGE
fi
among 'lrun ./train tr' train.py
never 'lrun ./train --' --devices
never 'lrun --dry-run -n 2 ./train --str' --strategy
# Verbs, only as the first word, and then the runs.
mkdir -p "$work/state/20260102-run-one" "$work/state/20260103-run-two" "$work/state/no-run"
touch "$work/state/20260102-run-one/lock" "$work/state/20260103-run-two/lock"
export LRUN_STATE=$work/state
among 'lrun sta' status
among 'lrun stac' stack
never 'lrun -n 2 stac' 'stack$'
among 'lrun stack --p' --pids
among 'lrun report --h' --html
among 'lrun report --html tr' train.py
among 'lrun doc' doctor
among 'lrun doctor --ho' --hosts
never 'lrun doctor ' 20260102-run-one
among 'lrun log' logs
among 'lrun logs ' 20260102-run-one
exactly 'lrun logs --stream ' stdout stderr
among 'lrun logs --fol' --follow
among 'lrun run' runs
among 'lrun runs --js' --json
never 'lrun runs ' 20260102-run-one
among 'lrun agai' again
among 'lrun again --dr' --dry-run
among 'lrun again ' 20260102-run-one
among 'lrun completio' completion
exactly 'lrun completion ' bash zsh fish
exactly 'lrun completion z' zsh
exactly 'lrun help st' stack status
never 'lrun help ' 20260102-run-one
among 'lrun help --h' --help
among 'lrun --bind n' numa
among 'lrun --signals-to-handle SIGT' SIGTERM
exactly 'lrun status ' 20260102-run-one 20260103-run-two
exactly 'lrun status 20260103' 20260103-run-two
among 'lrun status --js' --json
printf 'train-7' > "$work/state/20260102-run-one/lock"
echo "\$(touch evil) words" > "$work/state/20260103-run-two/lock"
exactly 'lrun status ' 20260102-run-one 20260103-run-two train-7
exactly 'lrun report tr' train-7
exactly 'lrun stack train' train-7
[ ! -e evil ] || { echo "$shell runs what a job is called"; exit 1; }
never 'lrun status --' --devices
among 'lrun --config tr' train.py
export LRUN_TEST_VARIABLE=1
among 'lrun --env LRUN_TEST_V' LRUN_TEST_VARIABLE
[ "$(offered 'lrun --chdir da' | tr -d /)" = data ] || { echo "$shell does not offer directories"; exit 1; }
[ "$(offered 'lrun --log-dir da' | tr -d /)" = data ] || { echo "$shell does not offer directories"; exit 1; }
