"""Test the assumptions: findings with numbers and a severity.

    python examples/assumptions.py

Pairs come from one population and unlabeled rows from another: the first two columns are shifted, as if another clinic
had measured them. A model would then learn the difference between the clinics.
"""

from sdulearn.datasets import make_waveform, sample_sdu
from sdulearn.diagnostics import check_assumptions

X, y = make_waveform(5000, random_state=0)
rows, codes = sample_sdu(X, y, n_pairs=200, n_unlabeled=500, prior=0.7, random_state=0)
print(f"as drawn: {len(check_assumptions(rows, codes))} findings")

rows[codes == 0, :2] += 1.0
for finding in check_assumptions(rows, codes):
    print(finding.severity, finding.code, finding.numbers())
