#!/bin/sh
# A Docker Engine for this machine: engine.sh [compose]
#
# Uses the one that answers. Else, as root on Debian or Ubuntu, installs the distribution's docker.io and starts it
# without systemd. Else says in one line what is missing, and exits 3: callers then use the process engine.
# With `compose` it sees to a Compose program and Podman too, which only the tests need.
set -eu

state=${XDG_STATE_HOME:-${TMPDIR:-/tmp}}/talos-orch
log=$state/dockerd.log
patience=60

missing() {
    echo "engine.sh: $*" >&2
    exit 3
}

# Not `docker info`: the client may be missing while the engine is there, and Python is what talks to it.
answers() {
    if command -v docker >/dev/null 2>&1; then
        docker version --format '{{.Server.Version}}' >/dev/null 2>&1
    else
        [ -S /var/run/docker.sock ] && command -v curl >/dev/null 2>&1 &&
            curl --silent --fail --max-time 5 --unix-socket /var/run/docker.sock http://localhost/_ping >/dev/null
    fi
}

wait_for_engine() {
    waited=0
    until answers; do
        waited=$((waited + 1))
        [ "$waited" -lt "$patience" ] || return 1
        kill -0 "$1" 2>/dev/null || return 1
        sleep 1
    done
}

install_engine() {
    echo "engine.sh: installing docker.io, iptables and mmdebstrap from the distribution" >&2
    export DEBIAN_FRONTEND=noninteractive
    if apt-get update -qq >"$state/apt.log" 2>&1; then
        apt-get install -qq -y --no-install-recommends docker.io iptables mmdebstrap >>"$state/apt.log" 2>&1 && return
    fi
    missing "the distribution's docker.io could not be installed (see $state/apt.log): install Docker by hand"
}

start_engine() {
    echo "engine.sh: starting dockerd (log: $log)" >&2
    # Its own session: it must outlive this script, make and the terminal.
    setsid dockerd >"$log" 2>&1 </dev/null &
    wait_for_engine $! ||
        missing "dockerd does not start here (see $log): start Docker by hand, or use --engine process"
}

# A second kind of engine for the tests; they say so where it is missing. catatonit is the init that it looks for.
podman_for_tests() {
    if command -v podman >/dev/null 2>&1 || [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        return 0
    fi
    echo "engine.sh: installing podman from the distribution" >&2
    mkdir -p "$state"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends podman catatonit; } \
        >"$state/podman.log" 2>&1 || echo "engine.sh: podman could not be installed (see $state/podman.log)" >&2
}

compose() {
    [ "${want:-}" = compose ] || return 0
    podman_for_tests
    if docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null 2>&1; then
        return 0
    fi
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
        missing "no Compose program: install docker-compose (or the Docker Compose plugin)"
    fi
    echo "engine.sh: installing docker-compose from the distribution" >&2
    mkdir -p "$state"
    if apt-get update -qq >"$state/compose.log" 2>&1 &&
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends docker-compose \
            >>"$state/compose.log" 2>&1; then
        return 0
    fi
    missing "docker-compose could not be installed (see $state/compose.log): install it by hand"
}

want=${1:-}
if answers; then
    compose
    exit 0
fi
if [ -n "${DOCKER_HOST:-}" ]; then
    missing "no engine answers at DOCKER_HOST=$DOCKER_HOST: start it, or unset DOCKER_HOST"
fi
if [ "$(id -u)" != 0 ]; then
    if [ -S /var/run/docker.sock ] && [ ! -w /var/run/docker.sock ]; then
        missing "this user may not talk to the Docker Engine: join the docker group, then log in again"
    fi
    missing "no Docker Engine answers, and installing one needs root: install and start Docker, or run this as root"
fi
mkdir -p "$state"
if ! command -v dockerd >/dev/null 2>&1; then
    command -v apt-get >/dev/null 2>&1 ||
        missing "no Docker Engine here, and this is not Debian or Ubuntu: install Docker and start it"
    install_engine
    # The package may have started it through an init system.
    if answers; then
        compose
        exit 0
    fi
fi
start_engine
compose
