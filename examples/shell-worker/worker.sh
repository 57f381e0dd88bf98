#!/usr/bin/env bash
# A worker for Belfry that needs bash, curl and what every Unix has: see README.md beside it.
#
#   worker.sh QUEUE COMMAND [ARGUMENT…]
#
# performs COMMAND for each run of QUEUE, one at a time. The payload comes on its standard input, as JSON.
set -u

queue=${1:?usage: worker.sh QUEUE COMMAND [ARGUMENT…]}
shift
url=${BELFRY_URL:-http://127.0.0.1:8080}
worker="shell-$(printf '%s' "${HOSTNAME:-host}" | LC_ALL=C tr -cd 'A-Za-z0-9.-' | cut -c1-60)-$$-$RANDOM"
lease_ms=${LEASE_MS:-30000}
# A signal is heard when the poll has ended, so it is not kept open for long.
poll_ms=${POLL_MS:-5000}
beat_seconds=$((lease_ms / 3000))
grace_seconds=${GRACE_SECONDS:-10}
stopping=
trap 'stopping=1' TERM INT

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# In a file, since everybody on this machine can read the arguments of a command.
(umask 077 && printf 'header = "Authorization: Bearer %s"\n' "${BELFRY_API_KEY:?is not set}" >"$work/key")

# Sends the JSON on standard input until it is answered: every call of the protocol may be sent again.
post() {
  local body answer tries status
  body=$(cat)
  answer=$(mktemp "$work/answer.XXXXXX")
  for tries in 1 2 3 4 5 6 7 8; do
    printf '%s' "$body" | curl -sS --fail-with-body -K "$work/key" -H 'Content-Type: application/json' \
      --data-binary @- -o "$answer" --max-time 45 --retry 5 --retry-connrefused "$url$1"
    status=$?
    # 22: it was answered, with a refusal.
    if [ "$status" -eq 0 ] || [ "$status" -eq 22 ]; then break; else sleep "$tries"; fi
  done
  cat "$answer"
  rm -f "$answer"
  return "$status"
}

# JSON as one token a line: texts, numbers and words, and the signs between them. A text has no line break in JSON.
tokens() {
  LC_ALL=C grep -oE '"([^"\\]|\\.)*"|[][{}:,]|[^][{}:,"[:space:]]+'
}

# The value of a field of the first run in a lease answer, still as JSON. It keeps count of the braces, since a payload
# may have fields of the same names.
field_of_run() {
  local depth=0 last='' name='' value='' token
  while IFS= read -r token; do
    case $token in '}' | ']') depth=$((depth - 1)) ;; esac
    if [ "$depth" -eq 3 ] && [ -z "$name" ] && [ "$token" = : ]; then
      name=$last
      continue
    fi
    if [ "$name" != '' ] && { [ "$depth" -lt 3 ] || { [ "$depth" -eq 3 ] && [ "$token" = , ]; }; }; then
      [ "$name" = "\"$1\"" ] && break
      name='' value=''
    elif [ "$name" = "\"$1\"" ]; then
      value+=$token
    fi
    last=$token
    case $token in '{' | '[') depth=$((depth + 1)) ;; esac
  done < <(tokens)
  [ "$name" = "\"$1\"" ] && printf '%s' "$value"
}

# Any output as a text of JSON: printable ASCII only, and not more than Belfry keeps.
as_json_text() {
  printf '"%s"' "$(LC_ALL=C tr -c '\40-\176' ' ' <"$1" | tail -c 8000 | sed 's/[\\"]/\\&/g')"
}

# Sleeps so that a signal ends it, and leaves no sleeper behind.
nap() {
  trap 'kill $sleeper 2>/dev/null; exit' TERM
  sleep "$1" &
  sleeper=$!
  wait "$sleeper"
}

# Keeps the lease of a token while a command runs, and ends the command when it shall stop.
beat() {
  while nap "$beat_seconds"; do
    case $(printf '{"workerId":"%s","leases":[{"token":"%s"}]}' "$worker" "$1" | post /v1/leases/heartbeat) in
    *'"outcome":"cancel_requested"'*) echo canceled >"$work/verdict" && kill "$2" ;;
    *'"outcome":"lease_lost"'*) echo lost >"$work/verdict" && kill "$2" ;;
    esac
  done
}

# Ends a command that is still there when the worker should be gone.
give_up() {
  nap "$grace_seconds"
  echo release >"$work/verdict"
  kill "$1"
}

# Performs the command for one run; its exit code is in $code.
perform() {
  local token=$1 beating waiting=
  shift
  rm -f "$work/verdict"
  "$@" <"$work/payload" >"$work/out" 2>"$work/err" &
  local command=$!
  beat "$token" "$command" >/dev/null 2>&1 &
  beating=$!
  # A signal to this shell ends the wait, but not the command.
  while kill -0 "$command" 2>/dev/null; do
    [ -n "$stopping" ] && [ -z "$waiting" ] && { give_up "$command" >/dev/null 2>&1 & waiting=$!; }
    wait "$command"
    code=$?
  done
  kill "$beating" $waiting 2>/dev/null
  wait "$beating" 2>/dev/null
}

finish() {
  local token=$1 end
  case $(cat "$work/verdict" 2>/dev/null):$code in
  *:0) end="\"status\":\"succeeded\",\"result\":$(as_json_text "$work/out")" ;;
  release:*)
    printf '{"workerId":"%s","leases":[{"token":"%s"}]}' "$worker" "$token" | post /v1/leases/release
    return
    ;;
  lost:*) return ;;
  canceled:*) end='"status":"canceled"' ;;
  :65) end="\"status\":\"failed\",\"error\":{\"message\":$(as_json_text "$work/err"),\"retryable\":false}" ;;
  :75) end='"status":"snoozed","retryIn":"1m"' ;;
  *) end="\"status\":\"failed\",\"error\":{\"message\":$(as_json_text "$work/err")}" ;;
  esac
  printf '{"workerId":"%s","results":[{"token":"%s",%s}]}' "$worker" "$token" "$end" | post /v1/leases/complete
}

echo "$worker works on $queue"
calls=0
while [ -z "$stopping" ]; do
  calls=$((calls + 1))
  call="{\"workerId\":\"$worker\",\"max\":1,\"waitMs\":$poll_ms,\"leaseMs\":$lease_ms,\"requestId\":\"$calls\"}"
  until printf '%s' "$call" | post "/v1/queues/$queue/lease" >"$work/answer"; do
    cat "$work/answer" >&2
    [ -n "$stopping" ] && exit 1
    sleep 2
  done
  # Somebody with more rights asked this worker to end; then it is given nothing.
  case $(head -c 200 "$work/answer") in '{"runs":[]'*'"draining":true'*) stopping=1 ;; esac
  token=$(field_of_run token <"$work/answer" | tr -d '"')
  [ -z "$token" ] && continue
  export BELFRY_RUN_ID BELFRY_ATTEMPT
  BELFRY_RUN_ID=$(field_of_run runId <"$work/answer" | tr -d '"')
  BELFRY_ATTEMPT=$(field_of_run attempt <"$work/answer")
  field_of_run payload <"$work/answer" >"$work/payload"
  code=143
  echo release >"$work/verdict"
  echo "$BELFRY_RUN_ID attempt $BELFRY_ATTEMPT begins"
  [ -z "$stopping" ] && perform "$token" "$@"
  echo "$BELFRY_RUN_ID attempt $BELFRY_ATTEMPT ended with $code: $(finish "$token")"
done
curl -sS -K "$work/key" -X DELETE "$url/v1/workers/$worker"
echo stopped
