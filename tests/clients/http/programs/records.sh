#!/bin/sh
# Writes a record and reads it: records.sh BASE TOPIC
set -eu
curl -fsS -H 'content-type: application/json' "$1/api/v1/topics/$2/records" \
  -d '{"records":[{"key":"curl","value":{"from":"curl","n":9223372036854775807}}]}'
echo
curl -fsS "$1/api/v1/topics/$2/records?from=earliest&wait=5000"
