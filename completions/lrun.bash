# bash completion for lrun(1). Words before PROGRAM are lrun's, PROGRAM and what follows complete as without lrun.

# Finds PROGRAM among the words before the one being completed; sets `program` to its index, or to -1.
# '=' is a word of its own here, as bash splits '--opt=value' at it.
_lrun_find_program() {
  local i=1
  program=-1
  while ((i < COMP_CWORD)); do
    case ${COMP_WORDS[i]} in
      --)
        program=$((i + 1))
        return
        ;;
      --devices | -n | -np | --nproc[-_]per[-_]node | --num[-_]nodes | --nnodes | --accelerator | --strategy | \
        --process[-_]group[-_]backend | --seed | --master[-_]port | --rdzv[-_]id | --role | --compat | --output | \
        --log[-_]dir | -r | --redirects | -t | --tee | --local[-_]ranks[-_]filter | --duplicate[-_]std???[-_]filters | \
        --log[-_]line[-_]prefix[-_]template | --grace | --settle | --max[-_]restarts | --restart[-_]backoff)
        [[ ${COMP_WORDS[i + 1]-} == = ]] && ((i++))
        ((i++))
        ;;
      -*) [[ ${COMP_WORDS[i + 1]-} == = ]] && ((i += 2)) ;;
      *)
        program=$i
        return
        ;;
    esac
    ((i++))
  done
}

# The words that may follow option $1, in `values`; false when it takes no value.
_lrun_values_of() {
  case $1 in
    --devices) values='auto -1' ;;
    -n | -np | --nproc[-_]per[-_]node) values='auto cpu gpu' ;;
    --accelerator) values='auto cpu gpu' ;;
    --strategy) values='ddp dp ddp2' ;;
    --process[-_]group[-_]backend) values='auto nccl gloo shm' ;;
    --compat) values='lrun torchrun' ;;
    --output) values='prefix raw rank0 quiet' ;;
    --num[-_]nodes | --nnodes | --seed | --master[-_]port | --rdzv[-_]id | --role | -r | --redirects | -t | --tee | \
      --local[-_]ranks[-_]filter | --duplicate[-_]std???[-_]filters | --log[-_]line[-_]prefix[-_]template | --grace | \
      --settle | --max[-_]restarts | --restart[-_]backoff)
      values=''
      ;;
    --log[-_]dir) values=@directories ;;
    *) return 1 ;;
  esac
}

_lrun_reply_values() {
  if [[ $1 == @directories ]]; then
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(compgen -d -- "$2")
  else
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
  fi
}

_lrun_options='--devices -n -np --nproc-per-node --num_nodes --nnodes --accelerator --isolate-gpus --virtual-local-rank
  --strategy --process_group_backend --seed --master-port --rdzv-id --role -m --module --no-python --compat --output
  --log-dir -r --redirects -t --tee --local-ranks-filter --duplicate-stdout-filters --duplicate-stderr-filters
  --log-line-prefix-template --grace --settle --max-restarts --restart-backoff --dry-run
  -v --verbose --version -h --help'

_lrun_reply_program() {
  if declare -F _command_offset > /dev/null; then
    _command_offset "$program"
  else  # without the bash-completion package: commands, and files
    compopt -o filenames 2> /dev/null
    mapfile -t COMPREPLY < <(((program == COMP_CWORD)) && compgen -c -- "$1"; compgen -f -- "$1")
  fi
}

_lrun_verbs='status'

# The options of verb $1, in `values`.
_lrun_options_of_verb() {
  case $1 in
    status) values='--json --help' ;;
  esac
}

# The runs that left a folder.
_lrun_runs() {
  local lock
  for lock in "${LRUN_STATE:-$HOME/.local/state/lrun}"/*/lock; do
    [[ -e $lock ]] || continue
    lock=${lock%/lock}
    printf '%s\n' "${lock##*/}"
  done
}

_lrun_reply_verb() {
  if [[ $2 == -* ]]; then
    _lrun_options_of_verb "$1"
    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$2")
  else
    mapfile -t COMPREPLY < <(compgen -W "$(_lrun_runs)" -- "$2")
  fi
}

_lrun() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} program values
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
  if [[ $current == = ]]; then  # '--strategy=' with nothing behind it yet
    current=''
  elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if [[ ${COMP_WORDS[COMP_CWORD]} == = || ${COMP_WORDS[COMP_CWORD - 1]} == = ]] && [[ $previous == --dry[-_]run ]]; then
    _lrun_reply_values 'text json' "$current"
  elif _lrun_values_of "$previous"; then
    _lrun_reply_values "$values" "$current"
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$_lrun_options" -- "$current")
  else
    program=$COMP_CWORD
    _lrun_reply_program "$current"
    ((COMP_CWORD > 1)) || mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$_lrun_verbs" -- "$current")
  fi
}

complete -F _lrun lrun
