"""Writes a record and reads it: records.py BASE TOPIC"""
import json
import sys
from urllib.request import Request, urlopen

records = f"{sys.argv[1]}/api/v1/topics/{sys.argv[2]}/records"
body = json.dumps({"records": [{"key": "python", "value": {"from": "python", "n": 9223372036854775807}}]})
print(urlopen(Request(records, body.encode(), {"content-type": "application/json"})).read().decode())
print(urlopen(f"{records}?from=earliest&wait=5000").read().decode())
