"""Fit a raw table in Python, as `sdulearn fit` and `sdulearn predict` do.

    python examples/two_files.py && python examples/table_model.py

reads points.csv, answers.csv, few.csv and new.csv from the current folder, and writes model.sdu.
"""

from pyarrow.csv import read_csv

from sdulearn import fit_table, load_model

model = fit_table("points.csv", "answers.csv", labels="few.csv")  # or pandas, polars or pyarrow frames
accuracy = model.report.accuracy
print(f"classes: {', '.join(model.classes)}")
print(f"accuracy estimated from the answers: {accuracy.value:.1%} ({accuracy.low:.1%} to {accuracy.high:.1%})")
for finding in model.report.findings:
    print(finding.severity, finding.code, finding.numbers())

model.save("model.sdu")
again = load_model("model.sdu")
print(again.predict(read_csv("new.csv"))[:5])
