# shellcheck shell=bash
# ci and check: the tests, and what CI adds to them. Every part of check runs, also after another failed. At the end stands
# a table of the parts and the seconds that each took, and then ctest's count on the instrumented build.

check_failed=()
check_left_out=()
check_times=()  # 'NAME SECONDS RESULT', one for each part
check_count=    # ctest's summary of the last part that ran tests
check_minutes=${LRUN_CHECK_MINUTES:-1000}
unset LRUN_CHECK_MINUTES  # lrun warns of variables with its prefix that it does not know

# part NAME COMMAND...: runs it in a shell of its own, so that a failure ends this part only. (A function called in a
# condition would lose set -e.) A part that this machine cannot run says why and returns 77. LRUN_CHECK_MINUTES bounds where everything has to be compiled first: what was, stays in
# the cache for the next run.
part() {
  local name=$1 status began=$SECONDS result=passed
  shift
  if [ $SECONDS -gt $((check_minutes * 60)) ]; then
    check_left_out+=("$name, after $check_minutes minutes")
    check_times+=("$name - left-out")
    return 0
  fi
  set +e
  (set -e; "$@") < /dev/null 2>&1 | tee "build/check/$name.log"
  status=${PIPESTATUS[0]}
  set -e
  if [ "$status" -eq 77 ]; then
    check_left_out+=("$(tail -1 "build/check/$name.log")")
    result=left-out
  elif [ "$status" -ne 0 ]; then
    check_failed+=("$name")
    result=FAILED
    printf 'dev: FAILED: %s\n' "$name" >&2
  fi
  check_times+=("$name $((SECONDS - began)) $result")
  ! grep -q '% tests passed' "build/check/$name.log" || check_count=$(grep '% tests passed' "build/check/$name.log" | tail -1)
}

print_times() {
  stage "what each part took"
  printf '%-18s %8s  %s\n' part seconds result
  # shellcheck disable=SC2086 # three words
  for row in "${check_times[@]}"; do printf '%-18s %8s  %s\n' $row; done
  printf '%-18s %8s\n' all "$SECONDS"
}

# What failed, once more at the end: the parts print thousands of lines. A failed expectation says what it means in
# the lines below it; the workers' own lines (those of a launcher under test) are left out, but for the lab, whose tests
# show what the launchers on its hosts said.
tell_failures() {
  local name lines hidden signs=': Failure$|^CMake Error|^(FAILED|ERROR) |\*\*\*(Failed|Timeout|Exception)|(error|warning):|FAILED:|runtime error:|ERROR: [A-Z]'
  for name in "${check_failed[@]}"; do
    printf '\n== failed: %s\n' "$name"
    lines=8 hidden='^lrun: '
    [ "$name" != lab ] || lines=60 hidden='^$'
    grep -E -A "$lines" "$signs" "build/check/$name.log" \
      | grep -vE "$hidden" | head -$((lines * 8)) || true
    printf -- '-- the last lines of %s:\n' "$name"
    tail -15 "build/check/$name.log"
  done
  # Of much output only the end is kept: the first failure of each part stands there, too.
  for name in "${check_failed[@]}"; do
    printf '== first in %s: %s\n' "$name" "$(grep -v '^lrun: ' "build/check/$name.log" | grep -E -m 1 -A 3 "$signs" | cut -c-200)"
  done
  fail "failed: ${check_failed[*]}" "all of a part's output is in build/check/PART.log"
}

# clang-tidy on the product; ./dev lint and ./dev soak look at the tests too.
check_lint() {
  local bad=0 units
  lint_layout || bad=1
  mapfile -t units < <(sources 'src/*.cc' 'examples/*.cc')
  lint_tidy "${units[@]}" || bad=1
  return $bad
}

check_headers() {
  stage "public headers, each compiled alone"
  nice cmake --build --preset dev --parallel "$(jobs)" --target all_verify_interface_header_sets
}

# The lines of docs/install.md, into a folder that goes away.
check_release() {
  stage "release build, installed"
  local PREFIX
  PREFIX=$(mktemp -d)
  cmake --preset release > build/release.log || { cat build/release.log; return 1; }
  cmake --build --preset release --target product
  cmake --install build/release --prefix "${PREFIX:-$HOME/.local}" > build/release.log || { cat build/release.log; return 1; }
  tests/style/launcher_needs.sh "$PREFIX/bin/lrun" optimised
  rm -rf "$PREFIX"
}

check_fuzz() {
  configure_and_build fuzz
  stage "fuzzing, 20 seconds each"
  ctest --preset fuzz --parallel "$(jobs)" --no-tests=ignore
}

# ThreadSanitizer cannot place its shadow under the widest address space randomisation: setarch -R turns it off.
check_tsan() {
  stage "ThreadSanitizer on the runtime"
  setarch -R "$root/dev" build tsan
  setarch -R ctest --preset tsan --parallel "$(test_jobs)"
}

check_asan() {
  configure_and_build asan
  stage "tests under AddressSanitizer and UndefinedBehaviorSanitizer"
  ctest --preset asan --parallel "$(test_jobs)"
}

# run_conformance LAUNCHER [PYTEST-ARGUMENT...]: the black-box cases of torchrun's behaviour. Those with torch in their
# workers are skipped where Python has none. lrun respects signals that were ignored when it was started, and a background job
# may have begun so.
run_conformance() {
  local launcher=$1
  shift
  if ! need_pytest; then
    note "conformance is left out, there is no pytest; to install it: $python_home/bin/pip install ${pytest_packages[*]@Q}"
    return 77
  fi
  need_python_torch || true
  env --default-signal=HUP,INT,QUIT "$python_home/bin/python" -m pytest -q -n "$(jobs)" --tb=short tests/conformance \
    --launcher "$launcher" "$@"
}

check_conformance() {
  stage "what torchrun does, asked of lrun from outside; 2 minutes"
  run_conformance "$root/build/dev/lrun"
}

# Short runs with random faults; another seed each time, and a failure prints how to repeat the one run.
check_faults() {
  stage "100 runs and 10 jobs of several launchers with random faults, 20 launches of 32 workers"
  ctest --test-dir build/dev -L '^check$' --output-on-failure --no-tests=error
}

# These tests mostly wait. Meanwhile the last part's files are compiled at the lowest priority, as far as that comes.
check_lab() {
  stage "tests on real clusters in namespaces"
  may_have_lab "ctest --test-dir build/dev -L '^cluster\$' --output-on-failure" || return 77
  need_lab_packages
  configure asan
  nice -n 19 ninja -C build/asan -j "$(jobs)" > build/check/asan_beside_lab.log 2>&1 &
  # shellcheck disable=SC2064 # this ninja
  trap "kill $! 2> /dev/null || true; wait $! || true" EXIT
  ctest --test-dir build/dev -L '^cluster$' --output-on-failure --no-tests=error
}

check_programs() {
  need_programs_python || { note "programs of other frameworks are left out; ./dev python and the network would bring them"; return 77; }
  stage "PyTorch, Lightning and accelerate under lrun, a minute"
  ctest --test-dir build/dev -L '^programs$' -E '^DeepSpeed' --output-on-failure --no-tests=error
}

# Parts that need no further build come first.
check_parts() {
  part conformance check_conformance
  part faults check_faults
  part lab check_lab
  part release check_release
  part lint check_lint
  part headers check_headers
  part docs dev_docs
  part fuzzing check_fuzz
  part ThreadSanitizer check_tsan
  need_python_torch || true
  export_test_python
  part programs check_programs
  part AddressSanitizer check_asan
}

# The last lines are ctest's count of the last part that ran tests.
finish_parts() {
  print_times
  [ ${#check_left_out[@]} -eq 0 ] || printf 'dev: LEFT OUT: %s\n' "${check_left_out[@]#dev: }"
  [ ${#check_failed[@]} -eq 0 ] || tell_failures
  printf '%s\n' "$check_count"
}

dev_check() {
  need_packages "${build_packages[@]}" "${test_packages[@]}" "${check_packages[@]}"
  need_libtorch
  mkdir -p build/check
  rm -f build/check/*.log
  part build configure_and_build dev
  check_parts
  finish_parts
}

# What continuous integration runs. Without the tests the rest says little.
dev_ci() {
  need_packages "${build_packages[@]}" "${test_packages[@]}" "${check_packages[@]}"
  need_libtorch
  mkdir -p build/check
  rm -f build/check/*.log
  part build configure_and_build dev
  part tests dev_run_tests
  [ ${#check_failed[@]} -gt 0 ] || check_parts
  finish_parts
}
