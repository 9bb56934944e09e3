"""The clusterings the paper compares with: rows and pair codes in, cluster numbers out."""

from sdulearn.baselines.accuracy import clustering_accuracy
from sdulearn.baselines.constrained_kmeans import ConstrainedKMeans
from sdulearn.baselines.itml import ITMLKMeans
from sdulearn.baselines.spectral import SpectralPairs

__all__ = ["ConstrainedKMeans", "ITMLKMeans", "SpectralPairs", "clustering_accuracy"]
