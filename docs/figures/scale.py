"""Time and memory of a fit as the rows grow, from the tables of benchmarks/scale.md."""

from pathlib import Path

import matplotlib.pyplot as plt

COLOURS = {"squared": "#2166ac", "logistic": "#d55e00", "double_hinge": "#4d9221"}


def table(text, title):
    """Rows of the first table under a heading, by column."""
    lines = [line for line in text.split(f"## {title}\n")[1].split("\n## ")[0].splitlines() if line.startswith("|")]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(head, row, strict=True)) for row in rows]


def size(text):
    """10^6 as a number."""
    return 10.0 ** int(text.removeprefix("10^"))


# A figure is drawn in its own folder.
page = Path("../../benchmarks/scale.md").read_text()
fits, reads = table(page, "Fits from disk"), table(page, "Reading alone")
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
left.plot(
    [size(row["rows"]) for row in reads],
    [float(row["`ParquetFile.iter_batches`, s"]) for row in reads],
    "k--",
    label="reading alone, by pyarrow",
)
for loss, colour in COLOURS.items():
    own = [row for row in fits if row["loss"] == loss]
    rows = [size(row["rows"]) for row in own]
    left.plot(rows, [float(row["seconds"]) for row in own], "o-", c=colour, label=loss.replace("_", " "))
    right.plot(rows, [float(row["peak GB"]) for row in own], "o-", c=colour)
left.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds of a fit")
left.legend(frameon=False)
right.axhline(1.5, c="0.6", ls=":")
right.text(rows[0], 1.52, "wanted: below", c="0.4")
right.set(xscale="log", ylim=(0, 1.7), xlabel="rows", ylabel="peak memory, GB")
