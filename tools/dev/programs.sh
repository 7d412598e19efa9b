# shellcheck shell=bash
# shellcheck disable=SC2154 # python_home and libtorch_home are set by python.sh and common.sh
# A Python with the frameworks of tests/programs, in the cache beside that of Python's torch, which it uses.
programs_home=$LRUN_CACHE/programs-2.11.0

# install_for_programs LIST OPTIONS...: what LIST pins; once, until the list changes.
install_for_programs() {
  local list=$1
  shift
  ! cmp -s "$list" "$programs_home/$(basename "$list")" || return 0
  stage "fetching what $list pins into $programs_home"
  "$python_home/bin/pip" --python "$programs_home/bin/python" install --quiet --no-deps "$@" -r "$list" &&
    cp "$list" "$programs_home/"
}

# need_programs_python: the reason is printed, and it returns 1, where it cannot be.
need_programs_python() {
  need_python_torch || return 1
  local site
  if ! "$programs_home/bin/python" -c 'import torch' > /dev/null 2>&1; then
    "$python_home/bin/python" -m venv --clear --without-pip "$programs_home" || return 1
    site=$("$programs_home/bin/python" -c 'import site; print(site.getsitepackages()[0])')
    printf '%s\n' "$libtorch_home" "$("$python_home/bin/python" -c 'import site; print(site.getsitepackages()[0])')" \
      > "$site/torch.pth"
  fi
  install_for_programs tests/programs/requirements.txt || { note "no frameworks: fetching failed"; return 1; }
  export LRUN_PROGRAMS_PYTHON=$programs_home/bin/python
}

# DeepSpeed comes as source, and compiles a part of itself when it is first used: here, and not within a test.
need_deepspeed() {
  export TORCH_EXTENSIONS_DIR=$programs_home/extensions
  if ! install_for_programs tests/programs/requirements-deepspeed.txt ||
    ! DS_BUILD_OPS=0 install_for_programs tests/programs/deepspeed.txt --no-build-isolation; then
    note "no DeepSpeed: it cannot be fetched or built"
    return 1
  fi
  stage "DeepSpeed compiles its part for CPUs, half a minute"
  "$LRUN_PROGRAMS_PYTHON" -W ignore -c 'from deepspeed.comm.torch import build_shm_op; assert build_shm_op()' \
    > build/deepspeed.log 2>&1 || { tail -5 build/deepspeed.log; note "no DeepSpeed: it does not compile"; return 1; }
}
