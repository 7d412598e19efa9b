# shellcheck shell=bash disable=SC2154 # lrun, lab, out: set by who sources this
# Sourced by the tests of lrun in the steps of a Slurm.

fail() { echo "FAILED: $1"; tail -n 30 "$out/out" "$out/err"; exit 1; }

# step WANTED-STATUS SRUN-OPTIONS -- LRUN-ARGUMENTS
step() {
  local wanted=$1 status=0 options=()
  shift
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  timeout 90 "$lab" exec h0 srun "${options[@]}" "$lrun" "$@" > "$out/out" 2> "$out/err" || status=$?
  [ "$status" -eq "$wanted" ] || fail "'srun ${options[*]} lrun $*' ended with $status, not $wanted"
}
