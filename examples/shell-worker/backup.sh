#!/usr/bin/env bash
# What one run does: here, it says what it would do. Ends with 65 when the payload cannot be understood.
payload=$(cat)
database=$(printf '%s' "$payload" | sed -n 's/^{"database":"\([a-z0-9_]*\)"}$/\1/p')
if [ -z "$database" ]; then
  echo "no database in $payload" >&2
  exit 65
fi
# Whoever ends this script ends what it has started.
trap 'kill $! 2>/dev/null; exit 143' TERM
sleep "${BACKUP_SECONDS:-0}" &
wait $!
echo "backup of $database done by attempt $BELFRY_ATTEMPT of $BELFRY_RUN_ID"
