# shellcheck shell=bash disable=SC2154 # lrun, worker, lab, out, group, patience, heartbeat, program: set by who sources this
# One job at a time on hosts of the lab, for elastic_hosts.sh.

job=        # its folder
declare -A launcher  # by host: the process on this machine that has lrun as its only child

fail() {
  echo "FAILED: $job: $1"
  cat "$job/deeds" 2> /dev/null || true
  tail -n 8 "$job"/err.* "$job/log" 2> /dev/null || true
  exit 1
}

# until WORDS... : waits until the command succeeds.
until_true() {
  local what=$1 tries
  shift
  for ((tries = 0; tries < patience * 20; ++tries)); do
    ! "$@" || return 0
    sleep 0.05
  done
  fail "it did not happen in ${patience}s: $what"
}

# new_job NAME ENDPOINT-HOST LRUN-OPTIONS...
new_job() {
  job=$out/$group.$1
  mkdir "$job"
  launcher=()
  port=$((port + 1))
  since=0
  common=(--rdzv-backend c10d --rdzv-endpoint "$2:$port" --rdzv-id "$1" --grace 2s
    --rdzv-conf "heartbeat_timeout=$heartbeat,join_timeout=${join:-60}")
  shift 2
  common+=("$@")
}

# start HOST [ENVIRONMENT... --] LRUN-OPTIONS: the job's launcher on a host, with one worker.
start() {
  local host=$1 environment=()
  shift
  while [[ "${1:-}" == *=* && "$1" != --* ]]; do environment+=("$1"); shift; done
  mkdir -p "$job/state.$host"
  "$lab" exec "$host" env LRUN_STATE="$job/state.$host" "${environment[@]}" "$lrun" "${common[@]}" "$@" \
    "${program[@]:-$worker}" "$job" "$host" > "$job/out.$host" 2>> "$job/err.$host" < /dev/null &
  launcher[$host]=$!
}

# has_steps NODES: whether a world of so many nodes has made three steps since the last mark.
has_steps() {
  # shellcheck disable=SC2016 # awk's fields
  local steps='$3 > since && $1 == "step" && $7 == nodes'
  [ "$(awk -v since="$since" -v nodes="$1" "$steps" "$job/log" 2> /dev/null | wc -l)" -ge 3 ]
}
steps_of() { until_true "steps of $1 nodes" has_steps "$1"; }
# The lines that the test waits for have to come after those that are in the log now.
mark() { since=$(awk '$3 > latest {latest = $3} END {printf "%.0f", latest}' "$job/log"); }
last_round() { awk '$1 == "step" {round = $4} END {print round}' "$job/log"; }

children() { tr -s ' ' '\n' < "/proc/$1/task/$1/children" | sed '/^$/d'; }
# Before it is lrun, the process belongs to the lab.
guard_of() {
  local pid
  for pid in $(children "${launcher[$1]}"); do
    [ ! "/proc/$pid/exe" -ef "$lrun" ] || echo "$pid"
  done
}
launcher_of() { children "$1" | head -n 1; }
workers_on() {
  local pid
  for pid in $(children "$(launcher_of "$(guard_of "$1")")"); do
    [ "$(cat "/proc/$pid/comm" 2> /dev/null)" = memory-copier ] || echo "$pid"
  done
}
has_begun() { [ -n "$(guard_of "$1" 2> /dev/null)" ] || has_ended "${launcher[$1]}"; }
runs_on() { [ -v "launcher[$1]" ] && ! has_ended "${launcher[$1]}" && [ -n "$(guard_of "$1" 2> /dev/null)" ]; }

# ended HOST STATUS...: waits for the launcher, whose status is to be one of these.
ended() {
  local host=$1 status=0 pid=${launcher[$1]}
  shift
  until_true "the end of lrun on $host" has_ended "$pid"
  wait "$pid" 2> /dev/null || status=$?
  unset "launcher[$host]"
  [[ " $* " == *" $status "* ]] || fail "lrun on $host ended with $status, not with $*"
}
has_ended() { [ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status" 2> /dev/null; }

# Nobody holds the sign of life of a worker on this host any more: after a second at most, but on a loaded machine.
no_worker_on() {
  local begin=${EPOCHREALTIME/[.,]/} waited
  flock -w 10 -x "$job/alive.$1" true || fail "a worker on $1 outlived its launcher"
  waited=$(((${EPOCHREALTIME/[.,]/} - begin) / 1000))
  longest=$((waited > longest ? waited : longest))
}

says() { until_true "lrun on $1 says: $2" grep -qE "$2" "$job/err.$1"; }

# All that is left ends well, nothing survives, and what the workers wrote is one job.
end_well() {
  local host
  touch "$job/end"
  for host in "${!launcher[@]}"; do ended "$host" 0; done
  is_one_job
}
is_one_job() {
  local alive
  for alive in "$job"/alive.*; do
    [ ! -e "$alive" ] || no_worker_on "${alive##*alive.}"
  done
  "$worker" --check "$job" > "$job/problems" || fail "$(cat "$job/problems")"
  echo "$group: ${job##*.}: $((SECONDS - begun))s, $(tail -n 1 "$job/log" | awk '{print $9}') samples, each once"
  begun=$SECONDS
}

kill_launcher() {
  local guard inner
  until_true "lrun on $1" has_begun "$1"
  guard=$(guard_of "$1")
  inner=$(launcher_of "$guard" 2> /dev/null || true)
  # The inner process first: it would leave the job when its guard dies. It may have ended meanwhile.
  # shellcheck disable=SC2086 # numbers
  kill -KILL $inner $guard 2> /dev/null || true
  forget "$1"
}

# lose_host kill|off HOST
lose_host() {
  "$lab" hosts "$1" "$2"
  [ ! -v "launcher[$2]" ] || forget "$2"
}

# Reaps the killed launcher, whatever its status.
forget() {
  until_true "the end of lrun on $1" has_ended "${launcher[$1]}"
  wait "${launcher[$1]}" 2> /dev/null || true
  unset "launcher[$1]"
}

# Whether a new world of two has begun, or lrun has ended on all these hosts.
is_settled() {
  ! has_steps 2 || return 0
  local host
  for host in "$@"; do has_ended "${launcher[$host]}" || return 1; done
}

# silence HOST replace|delete: the other one of h1 and h2 cannot send to HOST; HOST can still send.
silence() {
  local mute=h2 address
  [ "$1" = h1 ] || mute=h1
  address=$("$lab" exec h1 getent ahostsv4 "$1" | awk '{print $1; exit}')
  if [ "$2" = replace ]; then
    "$lab" exec $mute ip neigh replace "$address" lladdr 02:00:00:00:00:fe nud permanent dev eth0
  else
    "$lab" exec $mute ip neigh del "$address" dev eth0
  fi
}
