"""Data to learn and to measure with: ten benchmark sets, and the paper's way of drawing pairs."""

from sdulearn.datasets.benchmark import BENCHMARKS, load_benchmark
from sdulearn.datasets.multiclass import MULTICLASS, load_multiclass
from sdulearn.datasets.sampling import sample_sdu
from sdulearn.datasets.waveform import make_waveform

__all__ = ["BENCHMARKS", "MULTICLASS", "load_benchmark", "load_multiclass", "make_waveform", "sample_sdu"]
