#!/usr/bin/env bash
# Elastic jobs on hosts of the lab that lose workers, launchers, whole hosts and their network: each ends in success or
# with a verdict, never as two jobs, and nothing is left. Four groups of cases run beside each other, each on hosts of
# its own.
# usage: elastic_hosts.sh LRUN WORKER CLOCK [GROUP...]
set -euo pipefail
lrun=$1 worker=$2 clock=$3
shift 3
groups=("${@}")
[ ${#groups[@]} -gt 0 ] || groups=(killed gone partition apart)
lab=${LRUN_LAB:-}
[ -n "$lab" ] || { echo "skipped: LRUN_LAB names no lab"; exit 77; }
[ "$(id -u)" -eq 0 ] || { echo "skipped: the lab needs root"; exit 77; }
unset LRUN_LAB  # lrun knows no such variable
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
patience=60   # seconds: nothing takes as long, also on a loaded machine
heartbeat=3   # seconds

# ---- one job at a time in a group ---------------------------------------------------------------------------------

job=        # its folder
declare -A launcher  # by host: the process on this machine that has lrun as its only child

fail() {
  echo "FAILED: $job: $1"
  tail -n 8 "$job"/err.* "$job/log" 2> /dev/null
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

# steps NODES AT-LEAST: whether a world of so many nodes has made steps since the last job or change.
has_steps() { [ "$(awk -v from="$since" -v nodes="$1" '$3 > from && $1 == "step" && $7 == nodes' "$job/log" 2> /dev/null | wc -l)" -ge 3 ]; }
steps_of() { until_true "steps of $1 nodes" has_steps "$1"; }
# What comes is to come after now, on the clock of all workers (nanoseconds since the boot).
mark() { since=$(awk '{printf "%.0f", $1 * 1e9}' /proc/uptime); }
last_round() { awk '$1 == "step" {round = $4} END {print round}' "$job/log"; }

children() { tr -s ' ' '\n' < "/proc/$1/task/$1/children" | sed '/^$/d'; }
guard_of() { children "${launcher[$1]}"; }

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

# Nobody holds the sign of life of a worker on this host any more.
no_worker_on() { flock -w 10 -x "$job/alive.$1" true || fail "a worker on $1 outlived its launcher"; }

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
  for alive in "$job"/alive.*; do no_worker_on "${alive##*alive.}"; done
  "$worker" --check "$job" > "$job/problems" || fail "$(cat "$job/problems")"
  echo "$group: ${job##*.}: $((SECONDS - begun))s, $(tail -n 1 "$job/log" | awk '{print $9}') samples, each once"
  begun=$SECONDS
}

kill_launcher() {
  local guard inner
  guard=$(guard_of "$1")
  inner=$(children "$guard")
  # shellcheck disable=SC2086 # numbers
  kill -KILL $guard $inner
  wait "${launcher[$1]}" 2> /dev/null || true
  unset "launcher[$1]"
}

# ---- the cases ----------------------------------------------------------------------------------------------------

# Hosts stay: a worker, a launcher, both processes of it, and all of a host's processes are killed.
killed() {
  "$lab" hosts up 3
  new_job worker h1 --nnodes 2:3 --max-restarts 1
  for host in h1 h2 h3; do start $host; done
  steps_of 3
  mark
  kill -KILL "$(children "$(children "$(guard_of h2)")")"
  steps_of 3
  [ "$(tail -n 1 "$job/log" | awk '{print $8}')" -eq 1 ] || fail "a killed worker does not cost one restart"
  end_well

  new_job launcher h1 --nnodes 2:3
  for host in h1 h2 h3; do start $host; done
  steps_of 3
  mark
  kill_launcher h3
  no_worker_on h3
  steps_of 2
  says h1 "node h3 is lost: its launcher ended"
  # A spare takes the place of one that is killed: it is there before anybody is missed.
  start h3
  steps_of 3
  end_well

  new_job guard h1 --nnodes 2:3
  for host in h1 h2 h3; do start $host; done
  steps_of 3
  mark
  kill -KILL "$(guard_of h2)"
  wait "${launcher[h2]}" 2> /dev/null || true
  unset "launcher[h2]"
  no_worker_on h2
  steps_of 2
  end_well

  new_job spare h1 --nnodes 2
  start h1 --node-rank 0
  start h2 --node-rank 1
  steps_of 2
  start h3
  says h3 "this one waits until it is needed"
  mark
  kill_launcher h2
  steps_of 2
  says h1 "node h2 is lost"
  end_well

  new_job host h1 --nnodes 2:3
  for host in h1 h2 h3; do start $host; done
  steps_of 3
  mark
  "$lab" hosts kill h3
  wait "${launcher[h3]}" 2> /dev/null || true
  unset "launcher[h3]"
  steps_of 2
  end_well

  "$lab" hosts on h3
  new_job first h1 --nnodes 2:3
  for host in h1 h2 h3; do start $host; done
  steps_of 3
  mark
  "$lab" hosts kill h1
  wait "${launcher[h1]}" 2> /dev/null || true
  unset "launcher[h1]"
  until_true "an end or a new world" is_settled h2 h3
  if has_steps 2; then
    end_well
  else
    for host in h2 h3; do
      ended $host 125
      says $host "the meeting at h1 is lost"
    done
    is_one_job
  fi
}

# A host loses its power, is booted again and comes late; others are cut off for a moment and for ever.
gone() {
  "$lab" hosts up 3
  new_job power h1 --nnodes 2:3
  for host in h1 h2 h3; do start $host; done
  steps_of 3
  mark
  "$lab" hosts off h3
  wait "${launcher[h3]}" 2> /dev/null || true
  unset "launcher[h3]"
  steps_of 2
  says h1 "node h3 is lost: silence for ${heartbeat}s"
  mark
  "$lab" hosts on h3
  start h3
  steps_of 3
  says h1 "node h3 has joined"
  end_well

  new_job cut h1 --nnodes 2:3
  for host in h1 h2 h3; do start $host; done
  steps_of 3
  before=$(last_round)
  "$lab" hosts cut h3
  "$lab" hosts heal h3
  mark
  steps_of 3
  [ "$(last_round)" = "$before" ] || fail "a network that was gone for a moment has ended the round"
  mark
  "$lab" hosts cut h3
  steps_of 2
  ended h3 125
  no_worker_on h3
  "$lab" hosts heal h3
  mark
  start h3
  steps_of 3
  end_well
}

# The host of the meeting is cut off; a host hears and is not heard, and the other way round; a slow network.
partition() {
  "$lab" hosts up 3
  join=15 new_job meeting h1 --nnodes 2:3
  for host in h1 h2 h3; do start $host; done
  steps_of 3
  mark
  "$lab" hosts cut h1
  until_true "an end or a new world" is_settled h1 h2 h3
  "$lab" hosts heal h1
  if has_steps 2; then
    until_true "an end of lrun on h1" has_ended "${launcher[h1]}"
    ended h1 125
    end_well
  else
    for host in h1 h2 h3; do ended $host 125; done
    is_one_job
  fi

  for deaf in h1 h2; do
    new_job "unheard-by-$deaf" h1 --nnodes 1:2
    start h1
    start h2
    steps_of 2
    mark
    silence $deaf replace
    steps_of 1
    ended h2 125
    no_worker_on h2
    silence $deaf delete
    mark
    start h2
    steps_of 2
    end_well
  done

  new_job slow h1 --nnodes 2:2
  "$lab" hosts delay h2 40 10
  start h1
  start h2
  steps_of 2
  before=$(last_round)
  "$lab" hosts delay h2 100
  mark
  steps_of 2
  [ "$(last_round)" = "$before" ] || fail "a slow network has ended the round"
  "$lab" hosts heal h2
  end_well
}

# silence DEAF replace|delete: the other of h1 and h2 sends to a neighbour that is not there; what DEAF sends arrives.
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

# Whether a new world of two has begun, or lrun has ended on all these hosts.
is_settled() {
  ! has_steps 2 || return 0
  local host
  for host in "$@"; do has_ended "${launcher[$host]}" || return 1; done
}

# Clocks differ; jobs of one name are two where they meet at two places; one of another name is turned away.
apart() {
  "$lab" hosts up 4
  local monotonic=()
  ! "$lab" exec h1 unshare --time --monotonic 100000 true 2> /dev/null || monotonic=(unshare --time --monotonic)
  new_job skew h1 --nnodes 3
  # The second to fail has the earliest time of day, and lrun there another steady clock.
  # shellcheck disable=SC2016 # expanded by the workers
  program=(sh -c 'touch $0/started.$RANK
    [ $RANK = 1 ] || until [ -e $0/failed ]; do sleep 0.02; done
    until [ -e $0/started.0 -a -e $0/started.1 -a -e $0/started.2 ]; do sleep 0.02; done
    [ $RANK != 1 ] || { touch $0/failed; exit 9; }
    [ $RANK != 2 ] || exit 5
    exec sleep 1000')
  local now
  now=$("$lab" exec h2 env LD_PRELOAD="$clock" TEST_CLOCK_SHIFT=60 date +%s)
  [ "$now" -ge $(($(date +%s) + 30)) ] || fail "the clock of h2 is not shifted"
  start h1
  start h2 LD_PRELOAD="$clock" TEST_CLOCK_SHIFT=60 --node-rank 1
  lrun_here=$lrun
  [ ${#monotonic[@]} -eq 0 ] || lrun=$out/$group.lrun
  printf '#!/bin/sh\nexec %s 100000 "%s" "$@"\n' "${monotonic[*]}" "$lrun_here" > "$out/$group.lrun"
  chmod +x "$out/$group.lrun"
  start h3 LD_PRELOAD="$clock" TEST_CLOCK_SHIFT=-60 --node-rank 2
  lrun=$lrun_here
  for host in h1 h2 h3; do
    ended $host 9
    tail -n 1 "$job/err.$host" | grep -q 'rank 1 (.*exited with code 9' || fail "lrun on $host does not blame rank 1"
  done
  echo "$group: skew: $((SECONDS - begun))s"
  begun=$SECONDS
  program=()

  new_job same h1 --nnodes 2
  start h1 --node-rank 0
  start h2 --node-rank 1
  steps_of 2
  first=$job first_launchers=("${launcher[h1]}" "${launcher[h2]}") first_port=$port
  new_job other h3 --nnodes 2 --rdzv-id same
  start h3 --node-rank 0
  start h4 --node-rank 1
  steps_of 2
  for host in h3 h4; do [ "$(grep -c " $host\$" "$first/log")" -eq 0 ] || fail "two jobs of one name have merged"; done
  end_well
  # At the place of the first one there is no room for another name.
  port=$((first_port - 1))
  new_job stranger h1 --nnodes 2
  start h3
  ended h3 125
  says h3 "same"
  [ ! -e "$job/log" ] || fail "a job of another name has begun"
  job=$first launcher=([h1]="${first_launchers[0]}" [h2]="${first_launchers[1]}")
  end_well
}

# ---- all groups ---------------------------------------------------------------------------------------------------

run_group() {
  local group=$1 host port=29400 since=0 begun=$SECONDS program=() common=()
  export LAB=e$1$$  # small letters and digits
  trap '"$lab" down > /dev/null 2>&1' EXIT
  "$group"
}

export LAB=eprobe$$
"$lab" hosts up 1 > "$out/probe" 2>&1 || { "$lab" down > /dev/null 2>&1; echo "skipped: no namespace hosts here: $(tail -n 1 "$out/probe")"; exit 77; }
"$lab" down > /dev/null 2>&1
pids=()
for group in "${groups[@]}"; do
  (run_group "$group") > "$out/said.$group" 2>&1 &
  pids+=($!)
done
bad=0
for i in "${!groups[@]}"; do
  said=$out/said.${groups[$i]}
  if wait "${pids[$i]}"; then
    grep "^${groups[$i]}: " "$said"
  else
    bad=1
    cat "$said"
  fi
done
[ $bad -eq 0 ] || exit 1
echo "elastic jobs on separate hosts: well, ${SECONDS}s"
