#!/usr/bin/env bash
# Stands for `docker`, as far as the documents use it: the program of the image runs on this machine, with $DOUBLE_ROOT for the root of the container.
# $DOUBLE_NODE is Node, $DOUBLE_PROGRAM the compiled program, and $DOUBLE_PORTS the two ports that stand for 8080 and 8081.
set -euo pipefail
config=$DOUBLE_ROOT/effective.yaml
read -r public internal <<<"$DOUBLE_PORTS"

# The paths of the container, on this machine.
inside() {
  for argument in "$@"; do
    case $argument in
      /config/relay.yaml) argument=$config ;;
      /data/*) argument=$DOUBLE_ROOT$argument ;;
    esac
    printf '%s\0' "$argument"
  done
}

# Runs the program as in a container: with nothing of the caller's environment but the variables in $passed.
program() {
  [ ! -e "$DOUBLE_ROOT/config/relay.yaml" ] ||
    sed "s#/run/secrets#$DOUBLE_ROOT/secrets#; s/port: 8080/port: $public/; s/port: 8081/port: $internal/; s/0\.0\.0\.0/127.0.0.1/" \
      "$DOUBLE_ROOT/config/relay.yaml" >"$config"
  mapfile -d '' -t words < <(inside "$@")
  cd "$DOUBLE_ROOT"
  exec env -i PATH="$PATH" RELAY_URL="http://127.0.0.1:$internal" "${passed[@]}" "$DOUBLE_NODE" "$DOUBLE_PROGRAM" "${words[@]}"
}

stop_relay() {
  pid=$(cat "$DOUBLE_ROOT/pid")
  kill -TERM "$pid" 2>/dev/null || true
  while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
}

passed=()
case $1 in
  run)
    shift
    while [[ $1 == -* ]]; do shift; done
    [ "$1" = parcel-relay ]
    shift
    program "$@"
    ;;
  compose) shift ;;
  *) echo "no double for docker $1" >&2; exit 64 ;;
esac

[ "$1" != -f ] || shift 2
verb=$1
shift
case $verb in
  build | pull) ;;
  exec)
    while [ "$1" = -e ]; do
      passed+=("$2=${!2}")
      shift 2
    done
    [[ $1 == relay* && $2 == parcel-relay ]]
    shift 2
    program "$@"
    ;;
  run)
    while [[ $1 == -* ]]; do shift; done
    shift
    program "$@"
    ;;
  cp) cp -r "$DOUBLE_ROOT${1#*:}" "$2" ;;
  stop) stop_relay ;;
  up)
    # A new image replaces the container that runs.
    [ ! -e "$DOUBLE_ROOT/pid" ] || stop_relay
    mkdir -p "$DOUBLE_ROOT/data"
    # Empty the log first: the line "relay ready" of the container before is in it.
    : >"$DOUBLE_ROOT/log"
    (program serve --config /config/relay.yaml) >"$DOUBLE_ROOT/log" 2>&1 </dev/null &
    echo $! >"$DOUBLE_ROOT/pid"
    until grep -q '"relay ready"' "$DOUBLE_ROOT/log"; do
      kill -0 $! 2>/dev/null || { cat "$DOUBLE_ROOT/log"; exit 1; }
      sleep 0.05
    done
    ;;
  *) echo "no double for docker compose $verb" >&2; exit 64 ;;
esac
