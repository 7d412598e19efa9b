# Run by zsh: prints the completions of a command line, one a line. usage: complete_zsh.zsh COMPLETIONS LINE
# A second, interactive zsh completes on a pseudo terminal; its compadd writes the matches to a file.
zmodload zsh/zpty || exit 77
matches=$(mktemp)
trap 'rm -f $matches' EXIT
zpty inner env -u ZDOTDIR zsh -f -i
inner() { zpty -w inner "$1" }
inner "PROMPT= PROMPT2=; unset zle_bracketed_paste; stty -echo"
inner "fpath=(${(q)1} \$fpath); autoload -Uz compinit && compinit -C -d ${(q)HOME}/zcompdump"
inner "compadd() {
  if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd \"\$@\"; return; fi
  typeset -a __hits; builtin compadd -A __hits \"\$@\"
  print -rl -- \${__hits} >> $matches
  builtin compadd \"\$@\"
}"
inner "complete-to-file() { zle list-choices; print -r -- @end >> $matches; }"
inner "zle -C list-choices list-choices _main_complete; zle -N complete-to-file; bindkey '^T' complete-to-file"
inner "setopt no_list_ambiguous no_beep; LISTMAX=9999; print ready-to-''complete"
zpty -r inner output '*ready-to-complete*'
zpty -w -n inner "$2"$'\x14'
for ((i = 0; i < 1000; i++)); do  # at most ten seconds
  [[ $(<$matches) == *@end ]] && break
  zpty -r -t inner output
  sleep 0.01
done
grep -vxE '@end|' $matches
exit 0
