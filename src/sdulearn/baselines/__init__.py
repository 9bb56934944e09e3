"""The clusterings the paper compares with: rows and pair codes in, cluster numbers out."""

from sdulearn.baselines.accuracy import clustering_accuracy
from sdulearn.baselines.constrained_kmeans import ConstrainedKMeans
from sdulearn.baselines.itml import ITMLKMeans
from sdulearn.baselines.kmeans import KMeansBaseline
from sdulearn.baselines.pck_means import PCKMeans
from sdulearn.baselines.spectral import SpectralPairs

__all__ = ["ConstrainedKMeans", "ITMLKMeans", "KMeansBaseline", "PCKMeans", "SpectralPairs", "clustering_accuracy"]
