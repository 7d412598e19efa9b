# bash completion for lrun(1). Words before PROGRAM are lrun's, PROGRAM and what follows complete as without lrun.

# Every option with the words its value may be: '-' for an option without a value, '=' before words that stand only
# behind '=', @file, @directory and @hostname for names of these, nothing for a value that cannot be guessed.
declare -gA _lrun_values=(
  [--devices]='auto -1'
  [--num-gpus]='auto -1'
  [--num-accelerators]='auto -1'
  [-n]='auto cpu gpu xpu'
  [-np]='auto cpu gpu xpu'
  [--nproc-per-node]='auto cpu gpu xpu'
  [--num-nodes]=''
  [--nnodes]=''
  [--accelerator]='auto cpu gpu tpu'
  [--isolate-gpus]=-
  [--virtual-local-rank]=-
  [--bind]='none core cache numa socket'
  [--numa-binding]='node socket exclusive core-complex'
  [--share-gpus]=-
  [--strategy]='ddp dp ddp2 ddp_sharded ddp_spawn ddp_fork ddp_notebook deepspeed horovod tpu'
  [--process-group-backend]='auto nccl gloo shm shm+gloo'
  [--seed]=''
  [--master-port]=''
  [--rdzv-id]=''
  [--role]=''
  [-H]=@hostname
  [--hosts]=@hostname
  [--host]=@hostname
  [--hostfile]=@file
  [--include]=@hostname
  [--exclude]=@hostname
  [--ssh]=@command
  [--copy]=-
  [--rdzv-endpoint]=''
  [--node-rank]=''
  [--rdzv-backend]='static c10d etcd etcd-v2'
  [--rdzv-conf]=''
  [--master-addr]=''
  [--spares]=''
  [--local-addr]=''
  [-m]=-
  [--module]=-
  [--run-path]=-
  [--no-python]=-
  [--python]=@file
  [--liblrun]=-
  [--nested]=-
  [--no-local-rank]=-
  [--use-env]=-
  [--compat]='lrun torchrun torch.distributed.launch'
  [--chdir]=@directory
  [--env]=@variable
  [--unset]=@variable
  [--rlimit]='as core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack'
  [--core]=-
  [--wrap]=@command
  [--preload]=''
  [--memory-dir]=''
  [--debug-rank]=''
  [--output]='fold prefix raw rank0 quiet'
  [--timestamps]=-
  [--pty]=-
  [--stdin]=-
  [--log-dir]=@directory
  [--log-max-bytes]=''
  [--metrics]=@file
  [-r]=''
  [--redirects]=''
  [-t]=''
  [--tee]=''
  [--local-ranks-filter]=''
  [--duplicate-stdout-filters]=''
  [--duplicate-stderr-filters]=''
  [--log-line-prefix-template]=''
  [--grace]=''
  [--shutdown-timeout]=''
  [--timeout]=''
  [--start-timeout]=''
  [--hang-timeout]=''
  [--hang-signal]='progress cpu'
  [--on-hang]='dump kill restart'
  [--watch]=''
  [--notice]='aws azure gcp'
  [--signals-to-handle]='SIGTERM SIGINT SIGHUP SIGQUIT SIGUSR1 SIGUSR2'
  [--settle]=''
  [--max-restarts]=''
  [--checkpoint-path]=@file
  [--restart-backoff]=''
  [--config]=@file
  [--print-config]=-
  [--dry-run]='=text json'
  [-v]=-
  [--verbose]=-
  [--version]=-
  [-h]=-
  [--help]=-
)

# Sets `values` to what may follow option $1; false when there is no such option. Dash and underscore are the same.
_lrun_values_of() {
  local option
  for option in "${!_lrun_values[@]}"; do
    if [[ ${option//_/-} == "${1//_/-}" ]]; then
      values=${_lrun_values[$option]}
      return 0
    fi
  done
  return 1
}

# True when the word after option $1 is its value.
_lrun_takes_word() {
  local values
  _lrun_values_of "$1" && [[ $values != - && $values != =* ]]
}

# Finds PROGRAM among the words before the one being completed; sets `program` to its index, or to -1.
# '=' and '@' are words of their own here, as bash splits '--opt=value' and '--wrap@0' at them.
_lrun_find_program() {
  local i=1
  program=-1
  while ((i < COMP_CWORD)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      program=$((i + 1))
      return
    elif _lrun_takes_word "${COMP_WORDS[i]}"; then
      [[ ${COMP_WORDS[i + 1]-} == @ ]] && ((i += 2))
      [[ ${COMP_WORDS[i + 1]-} == = ]] && ((i++))
      ((i++))
    elif [[ ${COMP_WORDS[i]} == -* ]]; then
      [[ ${COMP_WORDS[i + 1]-} == = ]] && ((i += 2))
    else
      program=$i
      return
    fi
    ((i++))
  done
}

_lrun_reply_values() {
  if [[ $1 == @* ]]; then
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -A "${1#@}" -- "$2")
  else
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
  fi
}

# PROGRAM is a script or another file, or once it has a letter also a command; its arguments complete as without lrun.
_lrun_reply_program() {
  if ((program < COMP_CWORD)) && declare -F _command_offset > /dev/null; then
    _command_offset "$program"
  else
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(((program == COMP_CWORD)) && [[ $1 ]] && compgen -c -- "$1"; compgen -f -- "$1")
  fi
}

_lrun_verbs='status logs runs report explain again stack doctor completion help'

# The options of verb $1, in `values`.
_lrun_options_of_verb() {
  case $1 in
    doctor) values='--hosts --json --verbose --help' ;;
    status) values='--json --watch --help' ;;
    logs) values='--attempt --follow --grep --stream --tail --help' ;;
    runs) values='--json --help' ;;
    report) values='--goodput --html --json --help' ;;
    explain) values='--json --help' ;;
    again) values='--dry-run --help' ;;
    stack) values='--brief --json --pids --help' ;;
    *) values='--help' ;;
  esac
}

# The runs that left a folder, and what their jobs are called, where that is a plain word.
_lrun_runs() {
  local lock name
  for lock in "${LRUN_STATE:-$HOME/.local/state/lrun}"/*/lock; do
    [[ -e $lock ]] || continue
    name=
    read -r name < "$lock"
    [[ $name =~ ^[A-Za-z0-9._:@%+-]+$ ]] && printf '%s\n' "$name"
    lock=${lock%/lock}
    printf '%s\n' "${lock##*/}"
  done
}

# What may stand behind verb $1, in `values`.
_lrun_arguments_of_verb() {
  case $1 in
    runs | doctor) values='' ;;
    completion) values='bash zsh fish' ;;
    help) values=$_lrun_verbs ;;
    *) values=$(_lrun_runs) ;;
  esac
}

_lrun_reply_verb() {
  if [[ ${COMP_WORDS[COMP_CWORD - 1]} == --html ]]; then
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$2")
    return
  elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == --stream ]]; then
    mapfile -t COMPREPLY < <(compgen -W 'stdout stderr' -- "$2")
    return
  fi
  if [[ $2 == -* ]]; then
    _lrun_options_of_verb "$1"
  else
    _lrun_arguments_of_verb "$1"
  fi
  mapfile -t COMPREPLY < <(compgen -W "$values" -- "$2")
}

_lrun() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} program values behind_equals=
  COMPREPLY=()
  if ((COMP_CWORD > 1)) && [[ " $_lrun_verbs " == *" ${COMP_WORDS[1]} "* ]]; then
    _lrun_reply_verb "${COMP_WORDS[1]}" "$current"
    return
  fi
  _lrun_find_program
  if ((program >= 0)); then
    _lrun_reply_program "$current"
    return
  fi
  local before=$((COMP_CWORD - 1))
  if [[ $current == = ]]; then  # '--strategy=' with nothing behind it yet
    current='' behind_equals=1
  elif [[ $previous == = ]]; then
    ((before -= 1))
    behind_equals=1
  fi
  ((before > 2)) && [[ ${COMP_WORDS[before - 1]} == @ ]] && ((before -= 2))
  previous=${COMP_WORDS[before]}
  if _lrun_values_of "$previous" && [[ $values != - && ($values != =* || $behind_equals) ]]; then
    _lrun_reply_values "${values#=}" "$current"
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${!_lrun_values[*]}" -- "$current")
  else
    program=$COMP_CWORD
    _lrun_reply_program "$current"
    ((COMP_CWORD > 1)) || mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$_lrun_verbs" -- "$current")
  fi
}

complete -F _lrun lrun
