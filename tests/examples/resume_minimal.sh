#!/usr/bin/env bash
# A training of which a worker is killed goes on from its last step but one at most, and ends with the bits of one that was not.
# shellcheck source=tests/examples/common.sh
source "$(dirname "$0")/common.sh"
steps=$1
[ -w /dev/shm ] || skip "there is no /dev/shm"
options=(--devices 2 --output raw --seed 5 --strategy ddp)
"$LRUN" "${options[@]}" "$RESUME_MINIMAL" "$work/whole" "$steps" > "$work/whole.out" 2> "$work/err" || fail "exit code $?" "$work/err"

# A worker prints its pid, and becomes the program.
cat > "$work/worker" << 'end'
#!/bin/sh
echo "pid $$"
exec "$@"
end
chmod +x "$work/worker"
mkfifo "$work/pipe"
"$LRUN" "${options[@]}" --max-restarts 1 --restart-backoff 0s "$work/worker" "$RESUME_MINIMAL" "$work/killed" "$steps" \
  > "$work/pipe" 2> "$work/err" &
launcher=$!
killed=no
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$work/killed.out"
  case $killed,$line in
    no,pid*) pid=${line#pid } ;;
    no,"step 150")
      kill -KILL "$pid" || fail "it ended before it could be killed" "$work/killed.out"
      killed=yes
      ;;
  esac
done < "$work/pipe"
wait "$launcher" || fail "exit code $?" "$work/killed.out" "$work/err"
[ "$killed" = yes ] || fail "none of the $steps steps was the one at which a worker is killed" "$work/killed.out"

# The last line before the kill, and the step from which it went on.
last=$(sed -n '/^goes on/q;s/^step //p' "$work/killed.out" | tail -n 1)
begin=$(sed -nE 's/^goes on from step ([0-9]+) (in memory|on disk)$/\1/p' "$work/killed.out")
[[ "$begin" =~ ^[0-9]+$ && "$begin" -ge $((last - 1)) ]] ||
  fail "it went on from '$begin', not from step $last" "$work/killed.out" "$work/err"
grep '^bias' "$work/whole.out" > "$work/bias" || fail "no bias" "$work/whole.out"
grep -qxf "$work/bias" "$work/killed.out" || fail "other weights than without the kill" "$work/whole.out" "$work/killed.out"

# Ranks that share the optimizer's state. The last step is on disk, whatever its number.
for last in 30 50; do
  "$LRUN" --devices 2 --output raw --strategy ddp_sharded "$RESUME_MINIMAL" "$work/sharded" $last > "$work/out" 2> "$work/err" ||
    fail "exit code $?" "$work/err"
done
grep -qx 'goes on from step 30 on disk' "$work/out" || fail "it did not go on" "$work/out" "$work/err"
