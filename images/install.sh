#!/bin/sh
# The build stage of both images: install.sh cpu|gpu tensorflow|torch|both
#
# Leaves /opt/venv (the worker's Python packages) and /opt/git/git (the one program that Talos calls).
# Beside this script lie the requirement files and whatever extra/ held: wheels, a file named offline (install from
# those wheels alone), ca.pem (a network that intercepts TLS), constraints.txt.
set -eu

device=$1
backend=$2
here=$(cd "$(dirname "$0")" && pwd)
venv=/opt/venv

die() {
    echo "talos-orch: $*" >&2
    exit 1
}

case $backend in
tensorflow) parts=tensorflow ;;
torch) parts=torch ;;
both) parts="tensorflow torch" ;;
*) die "BACKEND is '$backend'; it is one of tensorflow, torch, both" ;;
esac

have_wheels() {
    ls "$here"/*.whl >/dev/null 2>&1
}

# Only the program itself is taken out of its package: with its dependencies (Perl among them) git is 100 MB, and
# Talos asks it for nothing but the current commit.
fetch_git() {
    mkdir -p /opt/git
    if command -v git >/dev/null; then
        cp "$(command -v git)" /opt/git/git
        return
    fi
    command -v apt-get >/dev/null || die "the base image has neither git nor apt-get: take a base that has git"
    if [ -f "$here/ca.pem" ]; then
        echo "Acquire::https::CaInfo \"$here/ca.pem\";" >/etc/apt/apt.conf.d/90talos-orch
    fi
    apt-get update -qq
    cd /opt/git
    apt-get -o APT::Sandbox::User=root download -qq git
    dpkg-deb -x git_*.deb unpacked
    cp unpacked/usr/bin/git git
    rm -r unpacked git_*.deb
    cd "$here"
}

install_packages() {
    set -- -r "$here/common.txt"
    for part in $parts; do
        set -- "$@" -r "$here/$device-$part.txt"
    done
    [ ! -f "$here/constraints.txt" ] || set -- "$@" -c "$here/constraints.txt"
    if have_wheels; then
        set -- "$@" --find-links "$here"
    fi
    if [ -f "$here/offline" ]; then
        set -- "$@" --no-index
    elif [ -n "${TORCH_INDEX:-}" ]; then
        set -- "$@" --extra-index-url "$TORCH_INDEX"
    fi
    if [ -f "$here/ca.pem" ]; then
        export PIP_CERT="$here/ca.pem" SSL_CERT_FILE="$here/ca.pem"
    fi
    python3 -m venv "$venv"
    "$venv/bin/pip" install --no-cache-dir --no-compile --disable-pip-version-check --root-user-action=ignore \
        --progress-bar off "$@" ||
        die "the packages could not be installed; CPU builds of Torch need TORCH_INDEX (see images/README.md)"
}

# What only a compiler, a test runner or pip itself would read. libclang is named by TensorFlow but never imported.
strip_packages() {
    "$venv/bin/pip" uninstall --quiet --yes libclang 2>/dev/null || true
    "$venv/bin/pip" uninstall --quiet --yes pip
    site=$(echo "$venv"/lib/python3*/site-packages)
    rm -rf "$site/tensorflow/include" "$site/torch/include" "$site/torch/share" "$site/torch/test"
    if [ -d "$site/torch/bin" ]; then
        # DataLoader starts it when tensors are shared through the file system; the rest are compilers and tests.
        find "$site/torch/bin" -type f ! -name torch_shm_manager -delete
    fi
    for package in sklearn scipy pandas numpy sympy networkx h5py joblib; do
        [ ! -d "$site/$package" ] || find "$site/$package" -type d -name tests -prune -exec rm -rf {} +
    done
    find "$site" \( -name '*.a' -o -name '*.pyx' -o -name '*.pxd' \) -type f -delete
    find "$venv" -type d -name __pycache__ -prune -exec rm -rf {} +
    # Containers never write bytecode: without this every start would compile 10,000 files again.
    "$venv/bin/python" -m compileall -q -j 0 "$site" >/dev/null || true
}

check_packages() {
    for part in $parts; do
        "$venv/bin/python" -c "import $part" || die "$part was installed but cannot be imported"
    done
    case $parts in
    *torch*) cuda=$("$venv/bin/python" -c 'import torch; print(torch.version.cuda)') ;;
    *) return 0 ;;
    esac
    case "$device $cuda" in
    "cpu None") ;;
    cpu*) die "this Torch is built for CUDA $cuda; the CPU image wants the CPU build" ;;
    "gpu None") die "this Torch is a CPU build; the GPU image wants the CUDA build" ;;
    esac
}

fetch_git
install_packages
strip_packages
export PYTHONDONTWRITEBYTECODE=1 TF_CPP_MIN_LOG_LEVEL=3
check_packages
