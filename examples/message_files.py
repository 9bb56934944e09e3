"""Write a table of short customer messages, for the command line.

    python examples/message_files.py

writes messages.csv into the current folder: 240 messages about deliveries, payments or passwords, each with an id and,
for trying things out, its topic.
"""

import numpy as np
import pandas as pd

TOPICS = {
    "delivery": [
        "my parcel has not arrived", "the courier left the package at the wrong door", "when will you ship my order",
        "the tracking number does not work", "the box was damaged in transit", "delivery is three days late",
        "where is the shipment that I ordered", "nobody rang the bell and the parcel went back",
    ],
    "payment": [
        "I was charged twice this month", "please refund the invoice", "my credit card was declined",
        "the bill shows the wrong amount", "can I pay by bank transfer", "there is a fee that I do not understand",
        "the refund is not on my account yet", "I want to change how I pay the invoice",
    ],
    "password": [
        "I cannot log in any more", "the reset link for my password is expired", "my account is locked",
        "how do I change my password", "the login code never comes", "it says that my user name is unknown",
        "two factor login does not accept the code", "please unlock my login",
    ],
}  # fmt: skip
OPENINGS = ["hello,", "hi there,", "good morning,", "", "urgent:", "second message:"]
CLOSINGS = ["thanks", "please help", "what can I do?", "", "I have been waiting since Monday", "kind regards"]

rng = np.random.default_rng(0)
topics = rng.choice(list(TOPICS), 240, p=[0.4, 0.35, 0.25])
texts = [" ".join([rng.choice(OPENINGS), rng.choice(TOPICS[topic]), rng.choice(CLOSINGS)]).strip() for topic in topics]
ids = [f"m{k}" for k in range(len(texts))]
pd.DataFrame({"id": ids, "message": texts, "topic": topics}).to_csv("messages.csv", index=False)
