"""A client that behaves: it asks for the node's Lease again and again until its standard input ends.

`python normal_client.py HOST:PORT CA TOKEN LEASE`; on stdout it says how long each answer took, and which renewals it
saw. Every other request comes on a connection of its own.
"""

import http.client
import json
import select
import ssl
import sys
import time

PAUSE_SECONDS = 0.05
ANSWER_SECONDS = 30


def main():
    host, authority, token, path = sys.argv[1:]
    context = ssl.create_default_context(cafile=authority)
    headers = {"Authorization": f"Bearer {token}"}
    kept = None
    took, failed, renewed = [], [], []
    number = 0
    while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
        number += 1
        begun = time.monotonic()
        fresh = http.client.HTTPSConnection(host, context=context, timeout=ANSWER_SECONDS)
        kept = kept or http.client.HTTPSConnection(host, context=context, timeout=ANSWER_SECONDS)
        used = kept if number % 2 else fresh
        try:
            used.request("GET", path, headers=headers)
            answer = used.getresponse()
            body = answer.read()
            if answer.status != 200:
                failed.append(f"{answer.status} {body[:200]!r}")
            elif (renewal := json.loads(body)["spec"]["renewTime"]) not in renewed[-1:]:
                renewed.append(renewal)
        except (OSError, http.client.HTTPException) as error:
            failed.append(repr(error))
            used.close()
        fresh.close()
        took.append(time.monotonic() - begun)
    print(json.dumps({"took": took, "failed": failed, "renewed": renewed}))


if __name__ == "__main__":
    main()
