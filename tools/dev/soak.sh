# shellcheck shell=bash
# soak: long runs by hand. soak [alone | caches [ROUNDS [SEED]] | chroot | conformance | elastic [COUNT [SEED]] | faults [COUNT [SEED]] |
# hosts [SCHEDULES [SEED]] | kills [MINUTES [SEED]] | launches [COUNT] | libtorch [VERSION...] | notices [COUNT [SEED]] | packages |
# programs | repeat [MINUTES [SEED]] | tests | valgrind [COUNT [SEED]]]; without a part all of them.

# Where many files are one unit, an #include that one of them lacks is not missed.
soak_alone() {
  stage "every file compiled by itself, half an hour"
  cmake --preset dev -B build/alone -DCMAKE_UNITY_BUILD=OFF -DLRUN_PRECOMPILE=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 > /dev/null
  nice cmake --build build/alone --parallel "$(jobs)"
}

# bare_debian SUITE WORK: the essential packages of it in WORK/root.
bare_debian() {
  local suite=$1 work=$2 mirror=${LRUN_DEBIAN_MIRROR:-http://deb.debian.org/debian}
  stage "a bare Debian $suite in $work, 2 minutes"
  if ! debootstrap --variant=minbase "$suite" "$work/root" "$mirror" > "$work/debootstrap.log" 2>&1; then
    tail -20 "$work/debootstrap.log"
    fail "debootstrap failed, see $work/debootstrap.log" "LRUN_DEBIAN_MIRROR names another mirror"
  fi
}

# A bare Debian with nothing but a clone of what is committed here, and this machine's cache.
soak_chroot() {
  [ "$(id -u)" -eq 0 ] || fail "soak chroot needs root (debootstrap, chroot)"
  need_packages debootstrap iproute2
  need_libtorch
  local work
  work=$(mktemp -d "${TMPDIR:-/var/tmp}/lrun-chroot.XXXXXX")
  bare_debian bookworm "$work"
  git clone --quiet --no-hardlinks "$root" "$work/root/root/lrun"
  local network ended=0
  for network in with without; do
    stage "./dev demo and ./dev test in it, $network network"
    in_chroot "$work/root" "$network" "./dev demo && ./dev test" || { ended=1; break; }
  done
  # The mounts lived in a namespace of their own: nothing of this machine is below the folder any more.
  rm -rf --one-file-system "$work"
  [ $ended -eq 0 ] || fail "the run in the chroot failed"
}

# in_chroot FOLDER with|without COMMAND: runs COMMAND in the clone, with /proc, /dev and the cache.
in_chroot() {
  local folder=$1 network=$2 command=$3 spaces=(--mount --propagation private)
  [ "$network" = with ] || spaces+=(--net)
  cp -L /etc/resolv.conf "$folder/etc/resolv.conf"
  mkdir -p "$folder/root/.cache/lrun"
  # shellcheck disable=SC2016 # expanded by the shell inside
  unshare "${spaces[@]}" bash -euc '
    ip link set lo up
    mount --rbind /proc "$1/proc"
    mount --rbind /dev "$1/dev"
    mount --bind "$2" "$1/root/.cache/lrun"
    exec chroot "$1" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 ${http_proxy:+http_proxy="$http_proxy"} \
      bash -euc "cd /root/lrun; $3" < /dev/null' _ "$folder" "$LRUN_CACHE" "$command"
}

# The versions of LibTorch beside the one that everything else is tested with: the newest patch of each minor version.
other_libtorchs=(2.9.1 2.10.0 2.12.1 2.13.0 2.14.1 2.15.0)

# soak libtorch [VERSION...]: the library and its tests on CPUs, compiled for each; 20 minutes and 2 GB a version.
soak_libtorch() {
  local version folder build
  [ $# -gt 0 ] || set -- "${other_libtorchs[@]}"
  for version in "$@"; do
    folder=$LRUN_CACHE/libtorch-$version build=build/libtorch-$version
    stage "LibTorch $version"
    [ -e "$folder/torch/lib/libtorch_cpu.so" ] || fetch_other_libtorch "$version" "$folder"
    cmake --preset dev -B "$build" -DLRUN_LIBTORCH="$folder/torch" -DLRUN_BUILD_CUDA=OFF | grep '^-- LibTorch'
    nice cmake --build "$build" --parallel "$(jobs)" --target lrun lrun_runtime_tests
    ctest --test-dir "$build" -L '^runtime$' --parallel "$(nproc)" --output-on-failure --no-tests=error
  done
}

# fetch_other_libtorch VERSION FOLDER: its wheel, and the two of CUDA's libraries without which libtorch_cpu does not load.
fetch_other_libtorch() {
  local work toolkit suffix=""
  work=$(mktemp -d "$LRUN_CACHE/.other.XXXXXX")
  fetch_wheels "$work/torch" "torch==$1"
  toolkit=$(sed -nE 's/^Requires-Dist: (cuda-toolkit|nvidia-cuda-runtime)[^=]*==([0-9]+\.[0-9]+).*/\2/p' "$work"/torch/torch-*.dist-info/METADATA)
  [ "${toolkit%%.*}" -ge 13 ] || suffix=-cu${toolkit%%.*}
  fetch_wheels "$work/cuda" "nvidia-cuda-runtime$suffix==$toolkit.*" "nvidia-cuda-cupti$suffix==$toolkit.*"
  cp -r "$work"/cuda/* "$work/torch/"
  mv -T "$work/torch" "$2"
  rm -rf "$work"
}

# The black-box cases with a launcher under AddressSanitizer, whose own memory one of them would measure, and before whose
# library those about clocks load another; and with torchrun itself, of which they say what it does.
soak_conformance() {
  mkdir -p build/check
  configure_and_build asan lrun
  stage "conformance of lrun under AddressSanitizer"
  ASAN_OPTIONS=verify_asan_link_order=0 run_conformance "$root/build/asan/lrun" \
    --deselect test_options.py::test_launcher_takes_little_memory
  need_python_torch || return 0
  stage "the same cases with torchrun; 15 minutes"
  run_conformance torchrun
}

# The tests that start processes, in random order, subsets and parallelism; the seed makes a run repeatable.
soak_repeat() {
  local minutes=${1:-60} seed=${2:-$(date +%s)} tests round=0 deadline
  configure_and_build dev
  mapfile -t tests < <(ctest --test-dir build/dev -N -L '^(e2e|contract|runtime)$' | sed -n 's/^ *Test *#[0-9]*: //p')
  [ ${#tests[@]} -gt 0 ] || fail "there are no tests to repeat"
  stage "repeating ${#tests[@]} tests for $minutes minutes; seed $seed"
  RANDOM=$seed
  deadline=$((SECONDS + minutes * 60))
  while [ $SECONDS -lt $deadline ]; do
    round=$((round + 1))
    soak_round "$round" "$seed" || fail "round $round failed" "./dev soak repeat $minutes $seed repeats the order"
  done
  note "$round rounds passed, seed $seed"
}

# One round: 20 tests by chance, some of them at the same time. Reads `tests` of soak_repeat.
soak_round() {
  local names="" at parallel=$((RANDOM % (2 * $(nproc)) + 1)) i
  for ((i = 0; i < 20; ++i)); do
    at=$(((RANDOM * 32768 + RANDOM) % ${#tests[@]}))
    names+="${names:+|}$(sed 's/[][().*+?^$|\\]/\\&/g' <<< "${tests[at]}")"
  done
  GTEST_RANDOM_SEED=$(($2 % 99999 + 1)) ctest --test-dir build/dev -R "^($names)\$" --parallel "$parallel" \
    --output-on-failure --no-tests=error > build/soak.log 2>&1 || {
    cat build/soak.log
    return 1
  }
  note "round $1: $(grep 'tests passed' build/soak.log), $parallel at a time"
}

# Short runs with random faults. A failure prints how to repeat the one run.
soak_faults() {
  local count=${1:-2000} seed=${2:-$(date +%s)}
  configure_and_build dev lrun random_faults
  local run=(build/dev/tests/faults/random_faults '--gtest_filter=RandomFaults.*')
  stage "$count runs with random faults, seed $seed"
  "${run[@]}" "--runs=$count" "--seed=$seed"
  stage "$((count / 4)) of them without pidfds, as on old kernels"
  LRUN_NO_PIDFD=1 "${run[@]}" "--runs=$((count / 4))" "--seed=$seed"
}

# Jobs of several launchers that are killed, stopped and cut off by chance, on this machine and on hosts of the lab. A
# failure prints how to repeat the one job.
soak_elastic() {
  local count=${1:-200} seed=${2:-$(date +%s)}
  configure_and_build dev lrun random_jobs shifted_clock
  stage "$count jobs of several launchers to which anything happens, seed $seed"
  build/dev/tests/faults/random_jobs "--runs=$count" "--seed=$seed"
  stage "$((count / 10)) of them on hosts of their own"
  may_have_lab "./dev soak elastic $count $seed" || return 0
  need_lab_packages
  ELASTIC_SEED=$((seed % 30000)) ELASTIC_JOBS=$((count / 10)) tests/cluster/elastic_hosts.sh \
    build/dev/lrun build/dev/tests/faults/elastic_worker build/dev/tests/cluster/libshifted_clock.so chance
}

# Ranks of torchrun and of lrun that fill Triton's cache in a home folder on a network file system that has faults.
soak_caches() {
  local rounds=${1:-50} seed=${2:-$(date +%s)}
  configure_and_build dev lrun
  need_packages libfuse3-3
  need_programs_python || fail "Python with torch cannot be set up here"
  install_for_programs tests/faults/caches.txt || fail "Triton cannot be fetched here"
  stage "$rounds rounds of 8 ranks that fill one cache, seed $seed"
  "$LRUN_PROGRAMS_PYTHON" -W ignore tests/faults/shared_caches.py --rounds "$rounds" --seed "$seed" --lrun build/dev/lrun
}

# Hosts of the lab that are lost, whose replacements go on from what the workers there had saved in memory.
soak_hosts() {
  local schedules=${1:-100} seed=${2:-$(date +%s)}
  configure_and_build dev lrun
  may_have_lab "./dev soak hosts $schedules $seed" || return 0
  need_lab_packages
  stage "$schedules jobs that lose hosts with a state in memory, 6 s each, seed $seed"
  python3 tests/faults/lost_hosts.py --schedules "$schedules" --seed "$seed" --lrun build/dev/lrun --keep build/lost_hosts
}

# Two of four workers of examples/resume.py are killed every 15 seconds.
soak_kills() {
  local minutes=${1:-60} seed=${2:-$(date +%s)}
  configure_and_build dev lrun
  need_programs_python || fail "Python with torch and numpy cannot be set up here"
  stage "workers with a state in memory that are killed for $minutes minutes, seed $seed"
  "$LRUN_PROGRAMS_PYTHON" -W ignore tests/faults/killed_workers.py --minutes "$minutes" --seed "$seed" --lrun build/dev/lrun
}

# Runs on machines that are about to go; 200 take 3 minutes.
soak_notices() {
  local count=${1:-200} seed=${2:-$(date +%s)}
  configure_and_build dev lrun
  stage "$count notices that a machine is about to go, seed $seed"
  python3 tests/faults/notices.py --notices "$count" --seed "$seed" --lrun build/dev/lrun
}

# lrun below valgrind, which knows no pidfds. Its findings are in a file a process, and fail the part.
soak_valgrind() {
  local count=${1:-200} seed=${2:-$(date +%s)} found
  local logs=$root/build/valgrind
  need_packages valgrind
  configure_and_build dev
  rm -rf "$logs"
  mkdir -p "$logs"
  stage "$count runs with random faults below valgrind, seed $seed"
  export LRUN_NO_PIDFD=1
  export LRUN_TEST_UNDER="valgrind -q --vgdb=no --leak-check=full --show-leak-kinds=definite --log-file=$logs/%p"
  build/dev/tests/faults/random_faults '--gtest_filter=RandomFaults.*' "--runs=$count" "--seed=$seed"
  stage "the fault matrix below valgrind"
  # Valgrind itself dies when the kernel refuses an exec that it has let through.
  ctest --test-dir build/dev -R IsTheGoldenOne -E 'start_(no_interpreter|windows_lines)' --parallel "$(jobs)" \
    --output-on-failure --no-tests=error
  # It does not know TIOCGPTPEER.
  found=$(find "$logs" -type f -exec cat {} + |
    grep -vE 'unhandled ioctl 0x5441|could cause spurious value errors|README_MISSING_SYSCALL' || true)
  [ -z "$found" ] || { printf '%s\n' "$found"; fail "valgrind found something, see $logs"; }
}

soak_launches() {
  local count=${1:-1000}
  configure_and_build dev lrun random_faults
  stage "$count launches of 32 workers"
  build/dev/tests/faults/random_faults '--gtest_filter=ManyLaunches.*' "--launches=$count"
}

soak_programs() {
  configure_and_build dev lrun real_programs
  need_programs_python || fail "the frameworks cannot be set up here"
  need_deepspeed || fail "DeepSpeed cannot be set up here"
  stage "programs of all frameworks under lrun"
  ctest --test-dir build/dev -L '^programs$' --output-on-failure --no-tests=error
}

soak_tests() {
  configure_and_build dev
  dev_lint
  stage "tests labelled soak"
  ctest --test-dir build/dev -L '^soak$' --output-on-failure --no-tests=ignore
}

dev_soak() {
  local what=${1:-all}
  [ $# -eq 0 ] || shift
  need_packages "${build_packages[@]}" "${test_packages[@]}"
  need_libtorch
  case $what in
    all)
      soak_alone
      soak_tests
      soak_faults
      soak_elastic
      soak_caches
      soak_hosts
      soak_kills
      soak_notices
      soak_launches
      soak_programs
      soak_conformance
      soak_valgrind
      soak_chroot
      soak_packages
      soak_libtorch
      soak_repeat
      ;;
    alone | caches | chroot | conformance | elastic | faults | hosts | kills | launches | libtorch | notices | packages | programs | repeat | tests | valgrind) "soak_$what" "$@" ;;
    *) fail "unknown part '$what'" "alone, caches, chroot, conformance, elastic, faults, hosts, kills, launches, libtorch, notices, packages, programs, repeat, tests or valgrind" ;;
  esac
}
