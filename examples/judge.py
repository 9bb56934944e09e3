"""A stand-in for a language model that answers the questions of `sdulearn ask --command`.

    sdulearn ask messages.csv --text message --classes auto --command 'python examples/judge.py' -o machine.jsonl

reads one question per line and writes one reply per line. This script counts words, and is sometimes unsure or wrong.
In your own script, ask a model which of the texts are about the same topic.
"""

import json
import sys

WORDS = {
    "delivery": {"parcel", "courier", "package", "ship", "order", "tracking", "box", "transit", "delivery", "shipment"},
    "payment": {"charged", "refund", "invoice", "credit", "card", "bill", "amount", "pay", "bank", "fee"},
    "password": {"log", "reset", "password", "locked", "login", "code", "unlock"},
}


def topic(text):
    """Return the topic that has most words in common with the text; None if none has any."""
    words = set(text.lower().replace(",", " ").split())
    counts = {name: len(words & own) for name, own in WORDS.items()}
    return max(counts, key=counts.get) if any(counts.values()) else None


for line in sys.stdin:
    question = json.loads(line)
    first, *others = [topic(item["text"]) for item in question["items"]]
    if question["form"] == "sort":
        answer = [first, *others]
    elif first is None:
        answer = "unsure"
    elif question["form"] == "pair":
        answer = "same" if others[0] == first else "different"
    else:
        answer = others.index(first) if first in others else "none"
    reply = {"question": question["question"], "answer": answer, "cost": 0.0001}
    print(json.dumps(reply), flush=True)
