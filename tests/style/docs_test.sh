#!/usr/bin/env bash
# docs.sh finds a flag that one of the documents lacks or invents. usage: docs_test.sh DOCS_SH PRINT_FLAGS TREE
set -euo pipefail
docs=$1 print_flags=$2 tree=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# spoil FILE SED_SCRIPT: the gate must fail once the file was changed so
spoil() {
  rm -rf "$work/tree"
  mkdir "$work/tree"
  cp -r "$tree/man" "$tree/completions" "$work/tree/"
  sed -i "$2" "$work/tree/$1"
  ! cmp -s "$tree/$1" "$work/tree/$1" || { echo "'$2' changes nothing in $1"; exit 1; }
  ! "$docs" "$print_flags" "$work/tree" > "$work/out" 2>&1 || { echo "not found in $1: $2"; exit 1; }
  grep -q "$(basename "$1")" "$work/out" || { echo "the file is not named for '$2':"; cat "$work/out"; exit 1; }
}

spoil man/lrun.1 '/^\.It Fl -seed/d'
spoil man/lrun.1 's/^\.It Fl -seed Ar N/.It Fl -sead Ar N/'
spoil man/lrun.1 '/^\.Fl -start-method$/d'
spoil man/lrun.1 '/^\.It Ev ROLE_NAME/d'
spoil man/lrun.1 's/^\.It Cm status/.It Cm state/'
spoil completions/lrun.bash 's/status/state/g'
spoil man/lrun.1 's/^\.Ev PET_NNODES ,/,/'
spoil completions/lrun.bash '/\[--grace\]=/d'
spoil completions/lrun.bash 's/\[--seed\]=/[--sead]=/'
spoil completions/_lrun '/--seed=/d'
spoil completions/_lrun 's/--seed=/--sead=/'
spoil completions/lrun.fish 's/-l seed/-l sead/'
