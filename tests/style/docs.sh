#!/usr/bin/env bash
# Man page, --help and completions agree with the flag table: a flag that is in one and missing in another fails.
# usage: docs.sh PRINT_FLAGS [TREE]
set -euo pipefail
print_flags=$1
cd "${2:-.}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() { printf '%s\n' "$*"; failed=1; }

# same WHAT EXPECTED ACTUAL: two lists that must be equal, in this order
same() { diff -u --label 'flag table' --label "$1" "$2" "$3" || complain "$1 and the flag table differ"; }

"$print_flags" > "$work/table"
awk -F'\t' '$1 == "flag"' "$work/table" > "$work/flags"
names_of() { awk -F'\t' -v when="$1" '$2 ~ when { print $3, $4 }' "$work/flags" | tr ' ' '\n' | grep -v '^\.$'; }
names_of now > "$work/now"
names_of . | sort > "$work/flag_names"
awk -F'\t' '$1 == "verb"' "$work/table" > "$work/verbs"
# The options of verbs have a section of their own; elsewhere they may be mentioned.
{ cat "$work/flag_names"; cut -f3,4 --output-delimiter=' ' "$work/verbs" | tr ' ' '\n' | grep '^-' || true; } | sort -u > "$work/own"
awk -F'\t' '$1 == "horovodrun" { print $2 }' "$work/table" > "$work/horovodrun"
tr ' ' '\n' < "$work/horovodrun" | sort -u - "$work/own" > "$work/all"
[ "$(wc -l < "$work/now")" -ge 20 ] || complain "print_flags printed no table"

# The man page's OPTIONS: groups, names and their order are the table's.
awk -F'\t' '$2 == "now" && $7 != group { group = $7; print "# " group } $2 == "now" { print $3, $4 }' "$work/flags" |
  sed 's/^\. //' > "$work/options"
awk '/^\.Sh /{ inside = $2 == "OPTIONS" } !inside { next }
  /^\.Ss /{ print "# " substr($0, 5) }
  /^\.It Fl /{ names = ""; for (i = 2; i < NF; i++) if ($i == "Fl") names = names " -" $(i + 1); print substr(names, 2) }' \
  man/lrun.1 > "$work/man_options"
same "OPTIONS of man/lrun.1" "$work/options" "$work/man_options"

# Its COMPATIBILITY names every option of a later version, and the whole page names nothing that is in no table.
awk '/^\.Sh /{ inside = $2 == "COMPATIBILITY" } inside' man/lrun.1 |
  { grep -oE 'Fl -?[A-Za-z][-_a-z]*' || true; } | sed 's/^Fl /-/' | sort -u > "$work/man_later"
names_of later | sort | comm -23 - "$work/man_later" > "$work/missing"
[ ! -s "$work/missing" ] || complain "COMPATIBILITY of man/lrun.1 lacks: $(tr '\n' ' ' < "$work/missing")"
{ grep -oE 'Fl -?[A-Za-z][-_a-z]*' man/lrun.1 | sed 's/^Fl /-/'; grep -oE '(^|[ `])--[a-z][-_a-z]*' man/lrun.1 | tr -d ' `'; } |
  sort -u | comm -23 - "$work/all" | grep -vxE -e '--(option|epochs|lr|rdzv|local[-_]rank)' > "$work/unknown" || true
[ ! -s "$work/unknown" ] || complain "man/lrun.1 names what the flag table lacks: $(tr '\n' ' ' < "$work/unknown")"

# Its HOROVOD has every option of horovodrun, in the order of that table.
awk '/^\.Sh /{ inside = $2 == "HOROVOD" } !inside { next }
  /^\.It Fl /{ names = ""; for (i = 2; i < NF; i++) if ($i == "Fl") names = names " -" $(i + 1); print substr(names, 2) }' \
  man/lrun.1 > "$work/man_horovodrun"
same "HOROVOD of man/lrun.1" "$work/horovodrun" "$work/man_horovodrun"

# VERBS of the man page, its items and their options, and the verbs in help and completions.
awk -F'\t' '{ gsub(/ +/, " ", $3); print $2 ($3 == "." ? "" : $3) }' "$work/verbs" > "$work/verb_lines"
awk '/^\.Sh /{ inside = $2 == "VERBS" } !inside { next }
  /^\.It Cm /{ if (line) print line; line = $3 } /^\.It Fl /{ line = line " -" $3 } END { if (line) print line }' \
  man/lrun.1 > "$work/man_verbs"
same "VERBS of man/lrun.1" "$work/verb_lines" "$work/man_verbs"
while read -r verb options; do
  for file in completions/lrun.bash completions/_lrun completions/lrun.fish; do
    for word in "$verb" $options; do
      grep -qwF -e "$word" "$file" || complain "$file lacks '$word' of 'lrun $verb'"
    done
  done
done < "$work/verb_lines"

# The workers' variables are the contract's, in its order.
awk -F'\t' '$1 == "contract" { print $2 }' "$work/table" > "$work/contract"
awk '/^\.Ss /{ inside = /worker gets/ } /^\.Sh /{ inside = 0 } inside && /^\.It Ev /{ print $3 }' man/lrun.1 > "$work/man_contract"
same "the workers' variables in man/lrun.1" "$work/contract" "$work/man_contract"

# Torchrun's variables of the flags of this version.
while read -r variable; do
  grep -qE "Ev $variable( |\$)" man/lrun.1 || complain "man/lrun.1 lacks $variable"
done < <(awk -F'\t' '$2 == "now" { print $6 }' "$work/flags" | grep -oE 'PET_[A-Z_]+')

# --help: every name, and nothing else that looks like one.
"$print_flags" help > "$work/help"
grep -oE '(^|[ ,(/|])--?[A-Za-z][-_a-z]*' "$work/help" | grep -oE -e '--?[A-Za-z].*' | sort -u > "$work/help_names"
comm -23 "$work/flag_names" "$work/help_names" > "$work/missing"
[ ! -s "$work/missing" ] || complain "--help lacks: $(tr '\n' ' ' < "$work/missing")"
comm -13 "$work/own" "$work/help_names" | grep -vxE -e '--(opt|epochs|lr|help)' -e '-(u|vv|o)' > "$work/unknown" || true
[ ! -s "$work/unknown" ] || complain "--help names what the flag table lacks: $(tr '\n' ' ' < "$work/unknown")"

# Completions: the flags of this version, no others. (What they do in a shell: tests/completions.)
sort "$work/now" > "$work/offered"
sed -n 's/^  \[\(-[^]]*\)\]=.*/\1/p' completions/lrun.bash | sort > "$work/bash"
same completions/lrun.bash "$work/offered" "$work/bash"
sed -n '/^_arguments/,$p' completions/_lrun | sed 's/\[.*//; s/([^)]*)//' | grep -oE -e '--?[A-Za-z][-_a-z]*' |
  grep -vxE -e '-[sS]' | sort -u > "$work/zsh"
same completions/_lrun "$work/offered" "$work/zsh"
grep '^complete ' completions/lrun.fish | sed "s/ -d .*//; s/ -n '[^']*'//" | grep -oE -e ' -[slo] [-_A-Za-z]+' |
  sed 's/ -[so] /-/; s/ -l /--/' | sort -u > "$work/fish"
same completions/lrun.fish "$work/offered" "$work/fish"
awk -F'\t' '$2 == "now" && $8 == "word" { print $3, $4 }' "$work/flags" | tr ' ' '\n' | grep -v '^\.$' | tr _ - | sort > "$work/with_word"
sed -n '/^            case -/,/^            case .-\*/p; /^            case .--wrap/,/set -e/p' completions/lrun.fish |
  grep -oE -e '--?[A-Za-z][-?a-z]*' | grep -vxE -e '-[eq]' | tr '?' - | sort -u | sed '/^--$/d' > "$work/fish_with_word"
same "the options with a value in completions/lrun.fish" "$work/with_word" "$work/fish_with_word"

exit $failed
