# shellcheck shell=bash
# A Python of its own in the cache: pytest for the black-box suite, and torch where this machine can have it.
python_home=$LRUN_CACHE/python-2.11.0
pytest_packages=('pytest>=8' 'pytest-timeout>=2.3' 'pytest-xdist>=3.6')

# need_pytest: returns 1 when it is not there and cannot be fetched.
need_pytest() {
  make_pytest || return 1
  # It is stricter than Prometheus itself. Without it tests/conformance/test_metrics.py is skipped.
  "$python_home/bin/python" -c 'import prometheus_client' 2> /dev/null ||
    "$python_home/bin/pip" install --quiet 'prometheus-client>=0.21' || note "no prometheus-client: fetching failed"
}

make_pytest() {
  ! "$python_home/bin/python" -c 'import pytest, pytest_timeout, xdist' 2> /dev/null || return 0
  # The system's own Python where there is one: other clones and chroots that share the cache have it too.
  local python=/usr/bin/python3
  [ -x "$python" ] || python=python3
  "$python" -c 'import ensurepip, venv' 2> /dev/null || need_packages python3 python3-venv
  stage "making a Python with pytest in $python_home, half a minute"
  "$python" -m venv --clear "$python_home" &&
    "$python_home/bin/pip" install --quiet "${pytest_packages[@]}"
}

python_torch_is_there() { "$python_home/bin/python" -c 'import torch' > /dev/null 2>&1; }

# need_python_torch: torch from the same LibTorch that we link, plus what only its Python side loads. Prints the reason
# and returns 1 where that cannot be.
need_python_torch() {
  need_pytest || { note "no Python's torch: its folder could not be made"; return 1; }
  ! python_torch_is_there || return 0
  local reason=
  if [ "$("$python_home/bin/python" -c 'import sys; print(*sys.version_info[:2])')" != "3 11" ]; then
    reason="the wheel in the cache is for Python 3.11"
  elif [ ! -f "$libtorch_home/torch/__init__.py" ]; then
    reason="$libtorch_home has no Python part"
  elif ! ldconfig -p | grep -q 'libcudnn\.so\.9' || ! ldconfig -p | grep -q 'libcublas\.so\.13'; then
    reason="its Python side loads the libraries of a CUDA 13 toolkit with cuDNN, which is not here"
  fi
  [ -z "$reason" ] || { note "no Python's torch: $reason"; return 1; }
  fetch_python_torch || { note "no Python's torch: fetching failed"; return 1; }
}

fetch_python_torch() {
  stage "fetching what torch's Python side needs (235 MB, a minute)"
  local fresh status=0
  "$python_home/bin/pip" install --quiet typing_extensions sympy || return 1
  fresh=$(mktemp -d "$LRUN_CACHE/.python.XXXXXX")
  TMPDIR=$fresh "$python_home/bin/pip" install --quiet --no-deps --no-cache-dir --target "$fresh/site" \
    nvidia-cufile==1.15.1.6 nvidia-cusparselt-cu13==0.8.0 nvidia-nvshmem-cu13==3.4.5 &&
    cp -rn "$fresh/site/nvidia/." "$libtorch_home/nvidia/" || status=1  # where the wheel's own rpath looks
  rm -rf "$fresh"
  [ $status -eq 0 ] || return 1
  echo "$libtorch_home" > "$("$python_home/bin/python" -c 'import site; print(site.getsitepackages()[0])')/libtorch.pth"
  python_torch_is_there
}

# Tests find them by these variables; without them they are skipped and say so.
export_test_python() {
  ! python_torch_is_there || export LRUN_TEST_PYTHON=$python_home/bin/python
  ! notebook_python_is_there || export LRUN_TEST_NOTEBOOK_PYTHON=$notebook_home/bin/python
}

notebook_home=$LRUN_CACHE/notebook
notebook_python_is_there() { "$notebook_home/bin/python" -c 'import cppyy, ipykernel, nbconvert' > /dev/null 2>&1; }

# notebook: Cling and Jupyter, for examples/notebook.ipynb.
dev_notebook() {
  if ! notebook_python_is_there; then
    python3 -c 'import ensurepip, venv' 2> /dev/null || need_packages python3 python3-venv
    need_packages g++ python3-dev  # cppyy compiles its bindings
    stage "making a Python with cppyy and Jupyter in $notebook_home"
    python3 -m venv --clear "$notebook_home"
    "$notebook_home/bin/pip" install --quiet cppyy==3.5.0 ipykernel nbconvert
  fi
  notebook_python_is_there || fail "cppyy and Jupyter cannot be set up here" "the notebook's test is skipped, all others run"
  "$notebook_home/bin/python" -c 'import cppyy; print("cppyy", cppyy.__version__)'
}

dev_python() {
  need_libtorch
  need_python_torch || fail "Python's torch cannot be set up here" "tests that need it are skipped, all others run"
  "$python_home/bin/python" -c 'import torch; print("torch", torch.__version__, "in", torch.__path__[0])'
}
