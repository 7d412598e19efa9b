#!/usr/bin/env bash
# Run by bash: prints the completions of a command line, one a line. usage: complete_bash.sh COMPLETIONS LINE
# Words are split as readline does with '=' and '@' among its word breaks.
# shellcheck source=/dev/null
[ -z "${WITH_PACKAGE:-}" ] || source /usr/share/bash-completion/bash_completion
source "$1/lrun.bash"
line=${2//=/ = }
line=${line//@/ @ }
read -ra COMP_WORDS <<< "$line"
[[ $2 == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_LINE=$2
COMP_POINT=${#2}
compopt() { :; }  # allowed only while readline completes
_lrun
printf '%s\n' "${COMPREPLY[@]}"
