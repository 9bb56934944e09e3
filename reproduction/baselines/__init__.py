"""The clusterings that the paper compares with, and two for more classes: rows and ``y`` in, cluster numbers out."""

from reproduction.baselines.base import KMeansBaseline
from reproduction.baselines.constrained_kmeans import ConstrainedKMeans
from reproduction.baselines.itml import ITMLKMeans
from reproduction.baselines.pck_means import PCKMeans
from reproduction.baselines.spectral import SpectralPairs

__all__ = ["ConstrainedKMeans", "ITMLKMeans", "KMeansBaseline", "PCKMeans", "SpectralPairs"]
