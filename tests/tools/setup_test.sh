#!/usr/bin/env bash
# tools/setup against a make-believe system: dpkg-query, apt-cache, apt-get, id, sudo and python3 are stand-ins on the
# PATH that read and write a few files in a temporary folder. Usage: setup_test.sh path/to/tools/setup
set -euo pipefail

setup=$(realpath "$1")
system=$(mktemp -d)
trap 'rm -rf "$system"' EXIT
export system
mkdir "$system/bin"

stand_in() { # name, reads the body from stdin
  { echo '#!/usr/bin/env bash'; cat; } >"$system/bin/$1"
  chmod +x "$system/bin/$1"
}
stand_in dpkg-query <<'END'
for package in "$@"; do
  if grep -qx "$package" "$system/installed"; then printf 'installed:%s ' "$package"; fi
done
END
stand_in apt-cache <<'END'
[[ -e "$system/lists" ]] || exit 0
if [[ "$2" == bash ]]; then echo '     500 http://a.server'; fi
if grep -qx "$2" "$system/lists"; then echo '  Candidate: 1.0'; else echo '  Candidate: (none)'; fi
END
stand_in apt-get <<'END'
echo "$*" >>"$system/calls"
case " $* " in
  *" update "*) cp "$system/server" "$system/lists" ;;
  *" install "*) printf '%s\n' "$@" >>"$system/installed" ;;
esac
END
stand_in id <<<'cat "$system/uid"'
# Its environments have a python that knows pip: the index is a file with lines "name version".
stand_in python3 <<'END'
[[ -e "$system/venv-works" ]] || exit 1
mkdir -p "$3/bin"
cp "$system/environment-python" "$3/bin/python"
END
cat >"$system/environment-python" <<'END'
#!/usr/bin/env bash
installed=${0%/bin/python}/installed
touch "$installed"
if [[ "$1" == - ]]; then
  for name in "${@:2}"; do
    if grep "^$name " "$installed" | cut -d' ' -f2 | grep .; then exit; fi
  done
  exit 0
fi
what=${!#} # the last argument
case " $* " in
  *" index versions "*) grep "^$what " "$system/index" | head -1 | sed 's/\(.*\) \(.*\)/\1 (\2)/' | grep . ;;
  *" install "*)
    echo "$what" >>"$system/pip-calls"
    grep -qx "${what/==/ }" "$system/index" || exit 1
    echo "${what/==/ }" >>"$installed" ;;
esac
END
chmod +x "$system/environment-python"
export PATH="$system/bin:/usr/bin:/bin"

all=(build-essential cmake ninja-build pkg-config git libfmt-dev nlohmann-json3-dev libcli11-dev
  libhwloc-dev libgtest-dev ccache libdnnl-dev ocl-icd-opencl-dev)

begin() { # a system with every package installed and known, for root
  name=$1
  printf '%s\n' "${all[@]}" | tee "$system/installed" "$system/server" >"$system/lists"
  echo 0 >"$system/uid"
  : >"$system/calls"
}
peers=(python3-torch libopenblas0-pthread libgoogle-perftools4 python3-venv)
begin_peers() { # with the packages of bench/peers, and an index that has all that is wanted
  begin "$1"
  printf '%s\n' "${peers[@]}" | tee -a "$system/installed" "$system/server" >>"$system/lists"
  printf '%s\n' "torch 2.9" "tensorflow 2.8" "onnx 1.8" "onnxruntime 1.7" "tensorboard 2.6" >"$system/index"
  touch "$system/venv-works"
  : >"$system/pip-calls"
  rm -rf "$system/environment"
}
expect_pip_calls() { [[ "$(paste -sd' ' "$system/pip-calls")" == "$1" ]] || problem "expected 'pip install' of '$1'"; }
remove() { sed -i "/^$2\$/d" "$system/$1"; }
run_setup() {
  status=0
  output=$("$setup" "$@" 2>&1) || status=$?
}
problem() {
  printf 'FAILED: %s: %s\n-- exit code %s, output:\n%s\n-- calls of apt-get:\n' "$name" "$1" "$status" "$output" >&2
  cat "$system/calls" >&2
  exit 1
}
expect_status() { [[ "$status" == "$1" ]] || problem "expected exit code $1"; }
expect_output() { [[ "$output" == *"$1"* ]] || problem "expected '$1' in the output"; }
expect_calls() { [[ "$(wc -l <"$system/calls")" == "$1" ]] || problem "expected $1 calls of apt-get"; }

begin "nothing is missing"
echo 1000 >"$system/uid"
run_setup
expect_status 0; expect_calls 0

begin "one package is missing, then no longer"
remove installed cmake
run_setup
expect_status 0; expect_calls 1; expect_output "installing: cmake"
run_setup
expect_status 0; expect_calls 1

begin "--check changes nothing and tells required from optional"
remove installed libdnnl-dev
run_setup --check
expect_status 0; expect_calls 0; expect_output "optional: libdnnl-dev"
remove installed cmake
run_setup --check
expect_status 1; expect_calls 0; expect_output "missing: cmake"

begin "lists of a fresh container are updated first"
remove installed cmake
rm "$system/lists"
run_setup
expect_status 0; expect_calls 2; expect_output "installing: cmake"

begin "a system without oneDNN goes on without it, and does not update its lists every time"
remove installed libdnnl-dev; remove server libdnnl-dev; remove lists libdnnl-dev
run_setup
expect_status 0; expect_calls 0; expect_output "continuing without it"

begin "a required package that no source has"
remove installed libfmt-dev; remove server libfmt-dev; remove lists libfmt-dev
run_setup
expect_status 1; expect_calls 1; expect_output "libfmt-dev is not in this system's package sources"

begin_peers "--peers makes an environment once"
remove installed python3-torch
run_setup --peers="$system/environment"
expect_status 0; expect_calls 1; expect_output "installing: python3-torch"
expect_output "PyTorch 2.9, TensorFlow 2.8, ONNX Runtime 1.7, TensorBoard 2.6"
expect_pip_calls "torch==2.9+cpu torch==2.9 tensorflow==2.8 onnx==1.8 onnxruntime==1.7 tensorboard==2.6"
run_setup --peers="$system/environment"
expect_status 0; expect_calls 1; expect_output "PyTorch 2.9, TensorFlow 2.8, ONNX Runtime 1.7, TensorBoard 2.6"
expect_pip_calls "torch==2.9+cpu torch==2.9 tensorflow==2.8 onnx==1.8 onnxruntime==1.7 tensorboard==2.6"

begin_peers "--peers takes builds for CPUs where the index has them"
printf '%s\n' "torch 2.9+cpu" "tensorflow-cpu 2.8" >>"$system/index"
run_setup --peers="$system/environment"
expect_status 0; expect_output "PyTorch 2.9+cpu, TensorFlow 2.8"
expect_pip_calls "torch==2.9+cpu tensorflow-cpu==2.8 onnx==1.8 onnxruntime==1.7 tensorboard==2.6"

begin_peers "--peers without an index is satisfied with the system's PyTorch, and only with that"
: >"$system/index"
run_setup --peers="$system/environment"
expect_status 0; expect_output "PyTorch missing, TensorFlow missing"; expect_output "of the system: PyTorch"
remove installed python3-torch; remove server python3-torch; remove lists python3-torch
run_setup --peers="$system/environment"
expect_status 1; expect_output "no PyTorch at all"

begin_peers "--peers where no environment can be made"
rm "$system/venv-works"
run_setup --peers="$system/environment"
expect_status 0; expect_output "no virtual environment could be made"; expect_output "of the system: PyTorch"

begin_peers "--peers leaves a folder alone that is something else"
mkdir "$system/environment"; touch "$system/environment/file"
run_setup --peers="$system/environment"
expect_status 1; expect_output "is no virtual environment"
[[ -e "$system/environment/file" ]] || problem "the folder was removed"

begin_peers "--check --peers makes nothing"
run_setup --check --peers="$system/environment"
expect_status 0; expect_output "PyTorch missing"; expect_pip_calls ""
[[ ! -e "$system/environment" ]] || problem "an environment was made"

begin "an unknown option"
run_setup --frobnicate
expect_status 2; expect_output "unknown option '--frobnicate'"

begin "sudo is used by those who are not root"
stand_in sudo <<<'echo "sudo" >>"$system/calls"; exec "$@"'
echo 1000 >"$system/uid"
remove installed cmake
run_setup
expect_status 0; expect_calls 2; expect_output "installing: cmake"

# Hides the system's own sudo as well: only what the script calls is left on the PATH.
begin "neither root nor sudo"
rm "$system/bin/sudo"
for tool in bash env cat grep sed; do ln -s "$(command -v $tool)" "$system/bin/$tool" 2>/dev/null || true; done
echo 1000 >"$system/uid"
remove installed cmake
PATH="$system/bin" run_setup
expect_status 1; expect_calls 0; expect_output "there is no sudo"

echo "all cases passed"
