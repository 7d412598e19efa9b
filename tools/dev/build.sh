# shellcheck shell=bash
# build, test, demo, bench, clean.

# What configure_and_build tells cmake beside the preset.
configure_options=()

# say_how_long PRESET [TARGET...]: how much has never been compiled. A file takes 5 seconds of a core on average.
say_how_long() {
  local folder=build/$1 object files=0
  shift
  while read -r object; do
    [ -e "$folder/$object" ] || files=$((files + 1))
  done < <(ninja -C "$folder" -t commands "$@" | sed -n 's/.* -o \([^ ]*\.o\) -c .*/\1/p')
  [ "$files" -gt 0 ] || return 0
  note "$files files to compile, $(jobs) at a time: about $((files * 5 / $(jobs) / 60 + 1)) min, less where ccache has them"
}

# configure PRESET
configure() {
  local preset=$1 log=build/$1/configure.log
  mkdir -p "build/$preset"
  # By name: a LibTorch in CMAKE_PREFIX_PATH, as conda sets it, is not the one that was fetched.
  cmake --preset "$preset" -DLRUN_LIBTORCH="${LRUN_LIBTORCH:-$libtorch_home/torch}" "${configure_options[@]}" \
    > "$log" 2>&1 || {
    cat "$log" >&2
    fail "configuring failed" "./dev doctor says what is missing"
  }
  grep '^-- LibTorch' "$log" || true
}

# configure_and_build PRESET [TARGET...]
configure_and_build() {
  local preset=$1 targets=()
  shift
  [ $# -eq 0 ] || targets=(--target "$@")
  stage "building ($preset) in build/$preset"
  configure "$preset"
  say_how_long "$preset" "${targets[@]:1}"
  nice cmake --build --preset "$preset" --parallel "$(jobs)" "${targets[@]}"
}

dev_build() {
  local preset=${1:-dev}
  [ $# -eq 0 ] || shift
  need_packages "${build_packages[@]}" "${test_packages[@]}"
  case $preset in
    fuzz) need_packages "${check_packages[@]}" ;;
  esac
  need_libtorch
  configure_and_build "$preset" "$@"
}

# The last lines are ctest's own summary.
dev_test() {
  dev_build dev
  dev_run_tests "$@"
}

dev_run_tests() {
  stage "testing"
  export_test_python
  ctest --preset dev --parallel "$(test_jobs)" "$@"
}

dev_demo() {
  need_packages "${build_packages[@]}" dataset-fashion-mnist
  need_libtorch
  # A build that has tests needs their packages; ./dev test installs them and configures anew.
  local configure_options=()
  [ -z "$(missing_packages "${test_packages[@]}")" ] || configure_options=(-DLRUN_BUILD_TESTS=OFF)
  configure_and_build dev lrun fashion_mnist
  stage "training a convolutional network on Fashion-MNIST with two processes, about a minute"
  local run=(build/dev/lrun --devices 2 build/dev/examples/fashion_mnist/fashion_mnist "$@")
  note "${run[*]}"
  "${run[@]}"
  cat << 'TEXT'

Next:
  build/dev/lrun report                          what happened in this run, as a timeline
  build/dev/lrun --devices 3 examples/hello.sh   three workers of a script; your program stands in its place
  build/dev/lrun doctor                          what keeps training from working on this machine
TEXT
}

# within COMMAND...: a part of the benchmarks, which ends with an error where it takes longer than an hour.
within() { bench/within.py "${LRUN_BENCH_LIMIT:-3600}" "$@" || fail "'$1' has failed, and the figures stay as they were"; }

# dev_bench [launcher|store|spawn|rendezvous|clusters|preload|memory|runtime [ARGS...]]: one part, or all of them.
dev_bench() {
  local part=${1:-all} targets=(lrun lrun_bench)
  [ $# -eq 0 ] || shift
  case $part in
    all | launcher | store | spawn | runtime) ;;
    rendezvous) targets=(lrun lrun_limits bench_rendezvous) ;;
    clusters) targets=(lrun lrun_limits) ;;
    preload | memory) targets=(lrun) ;;
    *) fail "there is no benchmark '$part'" "./dev bench [launcher|store|spawn|rendezvous|clusters|preload|memory|runtime]" ;;
  esac
  need_packages "${build_packages[@]}" "${test_packages[@]}"
  need_libtorch
  configure_and_build release "${targets[@]}"
  export LRUN_BUILD=$root/build/release LRUN_PROGRAM=$root/build/release/lrun
  case $part in
    all | launcher)
      stage "launcher.sh"
      within bench/launcher.sh ;;&
    all | store)
      stage "store.sh"
      export_test_python
      within bench/store.sh ;;&
    all | spawn)
      stage "bench_spawn"
      within build/release/bench/bench_spawn ;;&
    all | rendezvous) bench_rendezvous ;;&
    all | clusters) bench_clusters ;;&
    all | preload) bench_preload "$@" ;;&
    all | memory)
      stage "memory_folder.py"
      within bench/memory_folder.py --lrun "$LRUN_PROGRAM" ;;&
    all | runtime) bench_runtime "$@" ;;
  esac
}

bench_rendezvous() {
  stage "bench_rendezvous"
  within build/release/bench/bench_rendezvous
  need_python_torch || true  # it says why
  ! python_torch_is_there || export LRUN_TORCH_PYTHON=$python_home/bin/python
  stage "rendezvous.py"
  within bench/rendezvous.py
}

bench_clusters() {
  stage "clusters.py"
  may_have_lab "./dev bench clusters" || return 0
  need_lab_packages
  within bench/clusters.py
}

bench_runtime() {
  need_python_torch || true  # it says why
  ! python_torch_is_there || export LRUN_TORCH_PYTHON=$python_home/bin/python
  stage "runtime.py"
  within bench/runtime.py "$@"
}

bench_preload() {
  need_python_torch || return 0  # it says why
  stage "preload.py"
  within bench/preload.py --lrun "$LRUN_PROGRAM" --python "$python_home/bin/python" "$@"
}

dev_clean() {
  note "removing build/; the cache in $LRUN_CACHE stays"
  rm -rf "$root/build"
}
