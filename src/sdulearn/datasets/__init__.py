"""Data to try things on: Breiman's waveforms, and pairs drawn from labelled points."""

from sdulearn.datasets.sampling import sample_sdu
from sdulearn.datasets.waveform import make_waveform

__all__ = ["make_waveform", "sample_sdu"]
