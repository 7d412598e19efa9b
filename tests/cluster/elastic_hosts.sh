#!/usr/bin/env bash
# Elastic jobs on hosts of the lab that lose workers, launchers, whole hosts and their network: each ends in success or
# with a verdict, never as two jobs, and nothing is left. Groups of cases run beside each other, each on hosts of its
# own.
# usage: elastic_hosts.sh LRUN WORKER CLOCK [GROUP...]
set -euo pipefail
lrun=$1 worker=$2 clock=$3
shift 3
groups=("${@}")
[ ${#groups[@]} -gt 0 ] || groups=(killed gone partition apart chance)
# shellcheck source=tests/cluster/lab.sh
. "$(dirname "$0")/lab.sh"
need_lab hosts
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
patience=60   # seconds: nothing takes as long, also on a loaded machine
heartbeat=5   # seconds

# shellcheck source=tests/cluster/elastic_job.sh
source "$(dirname "$0")/elastic_job.sh"

# ---- the cases ----------------------------------------------------------------------------------------------------

# Hosts stay: a worker, a launcher, both processes of it, and all of a host's processes are killed.
killed() {
  "$lab" hosts up 3
  new_job worker h1 --nnodes 2:3 --max-restarts 1
  for host in h1 h2 h3; do start $host; done
  steps_of 3
  kill -KILL "$(workers_on h2)"
  mark
  steps_of 3
  [ "$(tail -n 1 "$job/log" | awk '{print $8}')" -eq 1 ] || fail "a killed worker does not cost one restart"
  end_well

  new_job launcher h1 --nnodes 2:3
  for host in h1 h2 h3; do start $host; done
  steps_of 3
  kill_launcher h3
  mark
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
  kill -KILL "$(guard_of h2)"
  forget h2
  mark
  no_worker_on h2
  steps_of 2
  end_well

  new_job spare h1 --nnodes 2
  start h1 --node-rank 0
  start h2 --node-rank 1
  steps_of 2
  start h3
  says h3 "this node waits until it is needed"
  kill_launcher h2
  mark
  steps_of 2
  says h1 "node h2 is lost"
  end_well

  new_job host h1 --nnodes 2:3
  for host in h1 h2 h3; do start $host; done
  steps_of 3
  lose_host kill h3
  mark
  steps_of 2
  end_well

  "$lab" hosts on h3
  new_job first h1 --nnodes 1:3
  for host in h1 h2 h3; do start $host; done
  steps_of 3
  lose_host kill h1
  mark
  steps_of 2
  says h2 "the leader on node h1 is lost: its launcher ended"
  # And the one that came after it.
  kill_launcher h2
  mark
  steps_of 1
  says h3 "the leader on node h2 is lost: its launcher ended"
  # One that comes back to the first host joins the job, and shows it to who comes there.
  "$lab" hosts on h1
  start h1 --rdzv-conf "heartbeat_timeout=$heartbeat,join_timeout=$patience,last_call_timeout=$patience"
  says h1 "the job is already running: this node joins it at "
  mark
  steps_of 2
  start h2
  says h2 "the job is already running: this node joins it at "
  mark
  steps_of 3
  end_well
}

# A host loses its power, is booted again and comes late; others are cut off for a moment and for ever.
gone() {
  "$lab" hosts up 3
  new_job power h1 --nnodes 2:3
  for host in h1 h2 h3; do start $host; done
  steps_of 3
  lose_host off h3
  mark
  steps_of 2
  says h1 "node h3 is lost: silence for ${heartbeat}s"
  "$lab" hosts on h3
  start h3
  mark
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
  "$lab" hosts cut h3
  mark
  steps_of 2
  ended h3 125
  no_worker_on h3
  "$lab" hosts heal h3
  start h3
  mark
  steps_of 3
  end_well
}

# The leader's host is cut off; a host receives and cannot send, and the other way round; a slow network.
partition() {
  "$lab" hosts up 3
  join=15 new_job rendezvous h1 --nnodes 2:3
  for host in h1 h2 h3; do start $host; done
  steps_of 3
  "$lab" hosts cut h1
  mark
  steps_of 2
  says h2 "the leader on node h1 is lost: silence for ${heartbeat}s"
  ended h1 125
  says h1 "1 of 3 nodes is not a majority"
  "$lab" hosts heal h1
  mark
  steps_of 2
  end_well

  new_job half h1 --nnodes 1:2
  start h1
  start h2
  steps_of 2
  lose_host off h1
  ended h2 125
  says h2 "the leader on node h1 is lost: silence for ${heartbeat}s; 1 of 2 nodes is not a majority"
  no_worker_on h2
  is_one_job
  "$lab" hosts on h1

  for receiver in h1 h2; do
    new_job "unheard-by-$receiver" h1 --nnodes 1:2
    start h1
    start h2
    steps_of 2
    silence $receiver replace
    mark
    steps_of 1
    ended h2 125
    no_worker_on h2
    silence $receiver delete
    start h2
    mark
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

# Clocks differ; jobs of one name are two where they meet at two places; one of another name is rejected.
apart() {
  "$lab" hosts up 4
  local monotonic=(unshare --time --monotonic "-$(awk '{printf "%d", $1 / 2}' /proc/uptime)")
  "$lab" exec h1 "${monotonic[@]}" true 2> /dev/null || monotonic=()
  new_job skew h1 --nnodes 3
  # Rank 2 fails after rank 1, before it can be told to end, by an earlier time of day, and lrun there has another steady
  # clock.
  # shellcheck disable=SC2016 # expanded by the workers
  program=(sh -c '[ $RANK != 1 ] || { exec 9> $0/held; flock 9; }
    touch $0/started.$RANK
    until [ -e $0/go ]; do sleep 0.02; done
    [ $RANK != 1 ] || exit 9
    [ $RANK != 2 ] || { flock $0/held true; sleep 1; exit 5; }
    exec sleep 1000')
  local now
  now=$("$lab" exec h2 env LD_PRELOAD="$clock" TEST_CLOCK_SHIFT=60 date +%s)
  [ "$now" -ge $(($(date +%s) + 30)) ] || fail "the clock of h2 is not shifted"
  start h1
  start h2 LD_PRELOAD="$clock" TEST_CLOCK_SHIFT=60 --node-rank 1
  lrun_here=$lrun lrun=$out/$group.lrun
  printf '#!/bin/sh\nexec %s "%s" "$@"\n' "${monotonic[*]}" "$lrun_here" > "$lrun"
  chmod +x "$lrun"
  start h3 LD_PRELOAD="$clock" TEST_CLOCK_SHIFT=-60 --node-rank 2
  lrun=$lrun_here
  for rank in 0 1 2; do until_true "the start of rank $rank" test -e "$job/started.$rank"; done
  "$lab" hosts delay h3 2000
  touch "$job/go"
  for host in h1 h2 h3; do
    ended $host 9
    grep '^lrun: error: ' "$job/err.$host" | tail -n 1 | grep -q 'rank 1 exited with code 9$' || fail "lrun on $host does not blame rank 1"
  done
  "$lab" hosts heal h3
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

# What happens to three hosts follows from a seed; ELASTIC_SEED and ELASTIC_JOBS choose.
chance() {
  "$lab" hosts up 3
  local seed=${ELASTIC_SEED:-$(($(date +%s) % 30000))} jobs=${ELASTIC_JOBS:-3} number deeds host
  declare -A state
  echo "$group: seed $seed"
  for ((number = seed; number < seed + jobs; ++number)); do
    RANDOM=$number
    state=([h1]=well [h2]=well [h3]=well)
    join=12 new_job "seed$number" h1 --nnodes $((RANDOM % 2 + 1)):3 --max-restarts 2
    for host in h1 h2 h3; do start $host; done
    [ $((RANDOM % 4)) -eq 0 ] || until_true "a step of the training" grep -q ^step "$job/log"
    for ((deeds = RANDOM % 5 + 1; deeds > 0; --deeds)); do
      host=h$((RANDOM % 3 + 1))
      happens_to $host
      sleep $((RANDOM % 2 * RANDOM % 5)).$((RANDOM % 10))
    done
    for host in h1 h2 h3; do undo $host; done
    touch "$job/end"
    for host in "${!launcher[@]}"; do ended "$host" 0 125 137 143; done
    is_one_job
  done
}

# happens_to HOST: something that can follow what has happened to it. Without h1 the job often ends: that is seldom.
happens_to() {
  local what=$((RANDOM % 6))
  [ "$1" != h1 ] || [ $((RANDOM % 3)) -eq 0 ] || what=0
  [ "${state[$1]}" = well ] || { undo "$1"; what=-1; }
  [ ! -v "launcher[$1]" ] || until_true "lrun on $1" has_begun "$1"
  if ! runs_on "$1"; then
    echo "  $1 starts" >> "$job/deeds"
    ! [ -v "launcher[$1]" ] || ended "$1" 0 125 137 143
    start "$1"
    return 0
  fi
  echo "  $1: $what" >> "$job/deeds"
  case $what in
    0) for worker_pid in $(workers_on "$1" | head -n 1); do kill -KILL "$worker_pid" 2> /dev/null || true; done ;;
    1) kill_launcher "$1" ;;
    2) kill -TERM "$(guard_of "$1")" 2> /dev/null || true ;;
    3) "$lab" hosts cut "$1"; state[$1]="cut" ;;
    4) "$lab" hosts delay "$1" 50 20; state[$1]=slow ;;
    5) lose_host off "$1"; state[$1]=off ;;
  esac
}
undo() {
  case ${state[$1]} in
    cut | slow) "$lab" hosts heal "$1" ;;
    off) "$lab" hosts on "$1" ;;
  esac
  state[$1]=well
}

# ---- all groups ---------------------------------------------------------------------------------------------------

run_group() {
  local group=$1 host port=29400 since=0 begun=$SECONDS longest=0 program=() common=()
  export LAB=$out/lab.$1
  trap '"$lab" down > /dev/null 2>&1' EXIT
  "$group"
  echo "$group: at most $longest ms from the end of a launcher to that of its workers"
}

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
